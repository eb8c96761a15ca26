"""Which side of a line a point is on, exactly, for doubles as they are given.

A filter settles nearly all cases with one multiplication more than the plain formula. What it can't settle is summed
without rounding, as an expansion: a sum of doubles that do not overlap, whose largest part has the sign of the whole.
The midpoint of two points need not be a double; its side is the sign of a sum of two determinants, and is exact too.

Exact means: as long as no product over- or underflows, which coordinates between 1e-70 and 1e70 (or 0) never do.
"""

import numpy as np
from numba import njit

__all__ = ["midpoint_above", "midpoint_side", "side"]

_FILTER = 3.3306690738754716e-16  # (3 + 16 eps) eps, the bound of the rounding of the plain determinant
_SPLITTER = 134217729.0  # 2**27 + 1
_PARTS = 16  # of one determinant


@njit(inline="always", cache=True)
def _two_sum(a, b):
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


@njit(inline="always", cache=True)
def _two_product(a, b):
    product = a * b
    high = _SPLITTER * a
    a_high = high - (high - a)
    a_low = a - a_high
    high = _SPLITTER * b
    b_high = high - (high - b)
    b_low = b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@njit(cache=True)
def _grow(parts, count, value):
    """Add a double to an expansion, whose parts stay in order of magnitude and do not overlap."""
    for i in range(count):
        value, parts[i] = _two_sum(value, parts[i])
    parts[count] = value
    return count + 1


@njit(cache=True)
def _add_product(parts, count, a, a_tail, b, b_tail, sign):
    for x in (a, a_tail):
        for y in (b, b_tail):
            if x != 0.0 and y != 0.0:
                product, tail = _two_product(x, y)
                count = _grow(parts, count, sign * tail)
                count = _grow(parts, count, sign * product)
    return count


@njit(cache=True)
def _add_side(parts, count, ax, ay, bx, by, px, py):
    """Add the determinant of (a, b, p) to an expansion."""
    acx, acx_tail = _two_sum(ax, -px)
    acy, acy_tail = _two_sum(ay, -py)
    bcx, bcx_tail = _two_sum(bx, -px)
    bcy, bcy_tail = _two_sum(by, -py)
    count = _add_product(parts, count, acx, acx_tail, bcy, bcy_tail, 1.0)
    return _add_product(parts, count, acy, acy_tail, bcx, bcx_tail, -1.0)


@njit(inline="always", cache=True)
def _sign(parts, count):
    for i in range(count - 1, -1, -1):
        if parts[i] != 0.0:
            return 1 if parts[i] > 0.0 else -1
    return 0


@njit(cache=True)
def _side_exactly(ax, ay, bx, by, px, py):
    parts = np.zeros(_PARTS)
    return _sign(parts, _add_side(parts, 0, ax, ay, bx, by, px, py))


@njit(inline="always", cache=True)
def side(ax, ay, bx, by, px, py):
    """1 if p is left of the line from a to b, -1 if right, 0 if on it."""
    left = (ax - px) * (by - py)
    right = (ay - py) * (bx - px)
    determinant = left - right
    bound = _FILTER * (abs(left) + abs(right))
    if determinant > bound:
        return 1
    if determinant < -bound:
        return -1
    return _side_exactly(ax, ay, bx, by, px, py)


@njit(cache=True)
def midpoint_side(ax, ay, bx, by, px, py, qx, qy):
    """The side of the point half way between p and q."""
    of_p = side(ax, ay, bx, by, px, py)
    of_q = side(ax, ay, bx, by, qx, qy)
    if of_p == of_q or of_q == 0:
        return of_p
    if of_p == 0:
        return of_q
    parts = np.zeros(2 * _PARTS)
    count = _add_side(parts, 0, ax, ay, bx, by, px, py)
    return _sign(parts, _add_side(parts, count, ax, ay, bx, by, qx, qy))


@njit(inline="always", cache=True)
def midpoint_above(p, q, level):
    """Whether (p + q) / 2 > level. The rounded sum decides unless it is the level's double, then what was rounded."""
    total, tail = _two_sum(p, q)
    twice = 2.0 * level
    return total > twice or (total == twice and tail > 0.0)
