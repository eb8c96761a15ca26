"""Sets of filters as bits, 64 to a word, and what is done with them for every message.

100,000 filters are 12.5 kB, which stays in the first-level cache while a message is matched. Each step takes some
microseconds, so it keeps the interpreter's lock: a thread that gives it away waits for whoever takes it, for a switch
interval and not for microseconds. What a table is built with gives it away.
"""

import numpy as np
from numba import njit

__all__ = [
    "ONE", "Bits", "Filters", "count_up", "distinct", "empty_bits", "exclude_all_but", "exclude_all_but_counted",
    "exclude_violated", "packed", "place_of_number", "prefix_rows", "remaining", "set_bits", "set_range", "set_ranges",
    "settle", "size_of", "words",
]  # fmt: skip

Bits = np.ndarray  # of uint64
Filters = np.ndarray  # of int32: numbers of filters

ONE = np.uint64(1)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # every six bits in a row occur once
_PLACES = np.zeros(64, np.int64)
for _place in range(64):
    _PLACES[(0x03F79D71B4CB0A89 << _place & 0xFFFFFFFFFFFFFFFF) >> 58] = _place


def words(size: int) -> int:
    return (size + 63) // 64


def empty_bits(size: int) -> Bits:
    return np.zeros(words(size), np.uint64)


@njit(cache=True, nogil=True)
def distinct(filters):
    """Each once and in order, faster than by sorting or hashing them."""
    last = -1
    for f in filters:
        last = max(last, f)
    flags = np.zeros(last + 1, np.bool_)
    count = 0
    for f in filters:
        count += not flags[f]
        flags[f] = True
    found = np.empty(count, np.int32)
    count = 0
    for f in range(last + 1):
        if flags[f]:
            found[count] = f
            count += 1
    return found


def packed(flags: np.ndarray) -> Bits:
    """Booleans as bits; what is left of the last word is set, so that no filter is seen there."""
    padded = np.ones(words(len(flags)) * 64, np.bool_)
    padded[: len(flags)] = flags
    found: Bits = np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64, copy=False)
    return found


@njit(cache=True)
def set_bits(out, filters):
    for i in range(len(filters)):
        f = filters[i]
        out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def set_range(out, first, last):
    for f in range(first, last):
        out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def set_ranges(out, starts, places):
    """From `starts[place]` up to the next, of each of these places."""
    for place in places:
        for f in range(starts[place], starts[place + 1]):
            out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def exclude_violated(out, rows, block, order, highs, lows, strict, high, low, rest):
    """Those whose bound a value reaches: they come first in the order. Row k is the set of the first k * block.

    Numbers are sums of two doubles; `rest` is the sign of what the value is besides.
    """
    count, end = 0, len(order)
    if high != high:  # a NaN is below no bound
        count = end
    while count < end:
        middle = (count + end) // 2
        if highs[middle] != high:
            is_violated = highs[middle] < high
        elif lows[middle] != low:
            is_violated = lows[middle] < low
        else:
            is_violated = rest > 0 or (rest == 0 and strict[middle])
        if is_violated:
            count = middle + 1
        else:
            end = middle
    step = count // block
    if step:
        for i in range(len(out)):
            out[i] |= rows[step, i]
    for i in range(step * block, count):
        f = order[i]
        out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def place_of_number(highs, lows, high, low):
    """Where a number is among these, which are in order; -1 if it is not."""
    first, end = 0, len(highs)
    while first < end:
        middle = (first + end) // 2
        if highs[middle] < high or (highs[middle] == high and lows[middle] < low):
            first = middle + 1
        else:
            end = middle
    return first if first < len(highs) and highs[first] == high and lows[first] == low else -1


@njit(cache=True, nogil=True)
def prefix_rows(order, block, rows):
    """Row k becomes the set of the first k * block of the order."""
    for k in range(1, len(rows)):
        rows[k] = rows[k - 1]
        for i in range((k - 1) * block, k * block):
            f = order[i]
            rows[k, f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def exclude_all_but(out, every, members, satisfied):
    """Exclude all members except those satisfied. `every` are the members as bits; without words, they are a list."""
    kept = np.empty(len(satisfied), np.int32)
    count = 0
    for i in range(len(satisfied)):
        f = satisfied[i]
        if not (out[f >> 6] >> np.uint64(f & 63)) & ONE:
            kept[count] = f
            count += 1
    if len(every):
        for i in range(len(every)):
            out[i] |= every[i]
    else:
        for i in range(len(members)):
            f = members[i]
            out[f >> 6] |= ONE << np.uint64(f & 63)
    for i in range(count):
        f = kept[i]
        out[f >> 6] &= ~(ONE << np.uint64(f & 63))


@njit(cache=True)
def exclude_all_but_counted(out, members, need, satisfied):
    """The same where a filter may be a member several times: it must be satisfied as often."""
    seen = np.zeros(len(need), np.int32)
    for i in range(len(satisfied)):
        seen[satisfied[i]] += 1
    for i in range(len(members)):
        f = members[i]
        if seen[f] != need[f]:
            out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def count_up(counts, filters):
    for i in range(len(filters)):
        counts[filters[i]] += 1


@njit(inline="always", cache=True)
def _count(word):
    """How many bits are set, without a branch."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def size_of(out, among):
    """How many of these are not excluded."""
    count = 0
    for i in range(len(among)):
        count += _count(~out[i] & among[i])
    return count


@njit(inline="always", cache=True)
def _lowest(word):
    """The place of the lowest set bit: multiplied by it, the sequence has another beginning for each."""
    return _PLACES[((word & (~word + ONE)) * _DE_BRUIJN) >> np.uint64(58)]


@njit(cache=True)
def remaining(out, owners):
    """The owners of the filters that are not excluded, each once: the filters of an owner lie side by side."""
    count = 0
    for i in range(len(out)):
        count += _count(~out[i])
    found = np.empty(count, np.int32)  # of the right size at once: an array that grows makes the loop slow
    count = 0
    last = -1
    for i in range(len(out)):
        word = ~out[i]
        while word:
            owner = owners[i * 64 + _lowest(word)]
            word &= word - ONE
            if owner != last:
                found[count] = owner
                count += 1
                last = owner
    return found[:count]


@njit(cache=True)
def settle(out, decided, owners, starts):
    """The owners that match already by a filter of which everything is decided; all their filters are excluded."""
    found = np.empty(size_of(out, decided), np.int32)
    count = 0
    for i in range(len(out)):
        word = ~out[i] & decided[i]
        while word:
            owner = owners[i * 64 + _lowest(word)]
            found[count] = owner
            count += 1
            for f in range(starts[owner], starts[owner + 1]):
                out[f >> 6] |= ONE << np.uint64(f & 63)
            word = ~out[i] & decided[i]
    return found[:count]
