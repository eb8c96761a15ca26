"""Which side of a line a point is on, exactly, for doubles as they are given.

A filter settles nearly all cases with one multiplication more than the plain formula. What it can't settle is summed
without rounding, as an expansion: a sum of doubles that do not overlap, whose largest part has the sign of the whole.

Products of coordinates between 1e-70 and 1e70 (or 0) never over- or underflow. With others, one float from 0 for
example, the sum is made of integers that are wide enough for the products of any two doubles.
"""

import math

import numpy as np
from numba import njit

__all__ = ["side"]

_FILTER = 3.3306690738754716e-16  # (3 + 16 eps) eps, the bound of the rounding of the plain determinant
_SPLITTER = 134217729.0  # 2**27 + 1
_PARTS = 16  # of one determinant
_UNDERFLOW = 1e-300  # far more than what products that underflow have lost
_LEAST, _MOST = 1e-70, 1e70  # in between, nothing under- or overflows

_LIMB_BITS = 32
_LIMBS = 140
_POINT = 71 * _LIMB_BITS  # the bit that is worth 1; the least product is worth 2**-2252, the largest below 2**2048


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


@njit(inline="always", cache=True)
def _is_tame(value):
    return value == 0.0 or _LEAST <= abs(value) <= _MOST


@njit(cache=True)
def _accumulate(limbs, a, b, sign):
    """Add a product to a wide integer, whatever its size."""
    if a == 0.0 or b == 0.0:
        return
    fraction, exponent = math.frexp(a)
    whole_a, place = np.int64(fraction * 2.0**53), exponent - 53
    fraction, exponent = math.frexp(b)
    whole_b, place = np.int64(fraction * 2.0**53), place + exponent - 53
    if whole_a < 0:
        whole_a, sign = -whole_a, -sign
    if whole_b < 0:
        whole_b, sign = -whole_b, -sign
    place += _POINT
    mask = (np.int64(1) << 27) - 1
    for i in range(2):
        for j in range(2):
            part = ((whole_a >> (27 * i)) & mask) * ((whole_b >> (27 * j)) & mask)
            for k in range(2):  # 27 bits at a time, so that a shift by up to 31 more stays in 64 bits
                bit = place + 27 * (i + j + k)
                value = ((part >> (27 * k)) & mask) << (bit % _LIMB_BITS)
                limbs[bit // _LIMB_BITS] += sign * (value & 0xFFFFFFFF)
                limbs[bit // _LIMB_BITS + 1] += sign * (value >> _LIMB_BITS)


@njit(cache=True)
def _accumulate_side(limbs, ax, ay, bx, by, px, py):
    """Add the determinant of (a, b, p), multiplied out."""
    _accumulate(limbs, ax, by, 1)
    _accumulate(limbs, ax, py, -1)
    _accumulate(limbs, px, by, -1)
    _accumulate(limbs, ay, bx, -1)
    _accumulate(limbs, ay, px, 1)
    _accumulate(limbs, py, bx, 1)


@njit(cache=True)
def _sign_of_limbs(limbs):
    carry = np.int64(0)
    some = False
    for i in range(len(limbs)):
        value = limbs[i] + carry
        carry = value >> _LIMB_BITS
        some = some or value & 0xFFFFFFFF != 0
    if carry < 0:
        return -1
    return 1 if some else 0


@njit(cache=True)
def _side_exactly(ax, ay, bx, by, px, py):
    if not (_is_tame(ax) and _is_tame(ay) and _is_tame(bx) and _is_tame(by) and _is_tame(px) and _is_tame(py)):
        limbs = np.zeros(_LIMBS, np.int64)
        _accumulate_side(limbs, ax, ay, bx, by, px, py)
        return _sign_of_limbs(limbs)
    parts = np.zeros(_PARTS)
    return _sign(parts, _add_side(parts, 0, ax, ay, bx, by, px, py))


@njit(inline="always", cache=True)
def side(ax, ay, bx, by, px, py):
    """1 if p is left of the line from a to b, -1 if right, 0 if on it."""
    left = (ax - px) * (by - py)
    right = (ay - py) * (bx - px)
    determinant = left - right
    bound = _FILTER * (abs(left) + abs(right)) + _UNDERFLOW
    if determinant > bound:
        return 1
    if determinant < -bound:
        return -1
    if (ax == px or by == py) and (ay == py or bx == px):
        return 0  # p is a or b, or all are on a line along an axis: touching regions are full of these
    return _side_exactly(ax, ay, bx, by, px, py)
