"""What the indexes of numbers and strings are built with: compiled, in few long steps without the interpreter's lock.

A merge runs beside threads that match. Whenever it takes the lock again one of them may have to wait, so a hundred
short steps of NumPy, each of which gives the lock away and takes it back, cost them more than one long step here.
"""

import numpy as np
from numba import njit

__all__ = [
    "append_coded", "append_comparisons", "bounds_of", "in_order", "number_codes", "runs_by_code", "with_operator",
]  # fmt: skip


@njit(cache=True, nogil=True)
def append_comparisons(new, filters, allowed, highs, lows, to_filters, to_allowed, to_highs, to_lows, at):
    """Those whose filter has a new number, behind the first `at`; how many there are then."""
    for i in range(len(filters)):
        number = new[filters[i]]
        if number >= 0:
            to_filters[at], to_allowed[at], to_highs[at], to_lows[at] = number, allowed[i], highs[i], lows[i]
            at += 1
    return at


@njit(cache=True, nogil=True)
def append_coded(new, filters, codes, to_filters, to_codes, used, at):
    """The same for codes; which of them occur is noted in `used`."""
    for i in range(len(filters)):
        number = new[filters[i]]
        if number >= 0:
            to_filters[at], to_codes[at] = number, codes[i]
            used[codes[i]] = True
            at += 1
    return at


@njit(cache=True, nogil=True)
def with_operator(filters, allowed, highs, lows, wanted):
    """The filters and the numbers of the comparisons with one operator."""
    count = 0
    for i in range(len(allowed)):
        count += allowed[i] == wanted
    found, found_highs, found_lows = np.empty(count, np.int32), np.empty(count), np.empty(count)
    count = 0
    for i in range(len(allowed)):
        if allowed[i] == wanted:
            found[count], found_highs[count], found_lows[count] = filters[i], highs[i], lows[i]
            count += 1
    return found, found_highs, found_lows


@njit(cache=True, nogil=True)
def bounds_of(filters, allowed, highs, lows, strict, loose, sign):
    """Those with one of two operators, their numbers times the sign, and whether it is the strict one."""
    count = 0
    for i in range(len(allowed)):
        count += (allowed[i] == strict) | (allowed[i] == loose)
    found, found_highs, found_lows = np.empty(count, np.int32), np.empty(count), np.empty(count)
    is_strict = np.empty(count, np.bool_)
    count = 0
    for i in range(len(allowed)):
        if allowed[i] == strict or allowed[i] == loose:
            found[count], found_highs[count], found_lows[count] = filters[i], sign * highs[i], sign * lows[i]
            is_strict[count] = allowed[i] == strict
            count += 1
    return found, found_highs, found_lows, is_strict


@njit(cache=True, nogil=True)
def in_order(order, filters, highs, lows, strict):
    count = len(order)
    to_filters, to_highs, to_lows = np.empty(count, np.int32), np.empty(count), np.empty(count)
    to_strict = np.empty(count, np.bool_)
    for i in range(count):
        at = order[i]
        to_filters[i], to_highs[i], to_lows[i], to_strict[i] = filters[at], highs[at], lows[at], strict[at]
    return to_filters, to_highs, to_lows, to_strict


@njit(cache=True, nogil=True)
def number_codes(order, highs, lows):
    """The code of each number, and the numbers of the codes; `order` sorts the numbers."""
    codes = np.empty(len(order), np.int32)
    of_highs, of_lows = np.empty(len(order)), np.empty(len(order))
    count = 0
    for at in order:
        if count == 0 or highs[at] != of_highs[count - 1] or lows[at] != of_lows[count - 1]:
            of_highs[count], of_lows[count] = highs[at], lows[at]
            count += 1
        codes[at] = count - 1
    return codes, of_highs[:count].copy(), of_lows[:count].copy()


@njit(cache=True, nogil=True)
def runs_by_code(filters, codes, count):
    """The filters in the order of their codes, and where those of each code begin."""
    starts = np.zeros(count + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for code in range(count):
        starts[code + 1] += starts[code]
    places = starts.copy()
    found = np.empty(len(filters), np.int32)
    for i in range(len(filters)):
        found[places[codes[i]]] = filters[i]
        places[codes[i]] += 1
    return found, starts
