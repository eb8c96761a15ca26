"""Which zones cover a point: the search in the cells of `matcher.engines.cells`, compiled.

An answer is certain or it is none. An edge so near that rounding could decide, a rim nearer than half a centimetre, and
a point on the antimeridian or a pole, where places have several names, are handed back as doubts, a complement of the
slot each, and the plain code decides them.
"""

import math

import numpy as np
from numba import njit

from matcher.engines.cells import (
    BITS,
    CIRCLE,
    COUNT_BIT,
    COVERS,
    EDGES,
    FAN,
    INSIDE_BIT,
    KIND_BIT,
    RECTANGLE,
    SLOT_MASK,
    TOP,
    cell_of,
    reference_point,
    sphere_point,
    walk,
)

__all__ = ["MANY_NAMES", "find", "find_many"]

MANY_NAMES = np.iinfo(np.int64).min  # stands for all zones that reach an end of the map

_A = 6378137.0
_F = 1 / 298.257223563
_B = _A * (1 - _F)
_MARGIN_M = 0.005  # ten times what Vincenty's formula is off by
_ROUNDS = 30
_ABREAST = 32  # points
_LINE = 8  # words in a line of the cache
_CACHED = 1 << 20  # words that a cache may hold: there is no need to wait for them together
_FULL = -1


@njit(cache=True)
def _distance_m(lon_a, lat_a, lon_b, lat_b):
    """The length of the geodesic by Vincenty's formula; NaN if it does not converge."""
    radians = math.pi / 180
    difference = (lon_b - lon_a) * radians
    u1 = math.atan2((1 - _F) * math.sin(lat_a * radians), math.cos(lat_a * radians))
    u2 = math.atan2((1 - _F) * math.sin(lat_b * radians), math.cos(lat_b * radians))
    sin1, cos1, sin2, cos2 = math.sin(u1), math.cos(u1), math.sin(u2), math.cos(u2)
    lam = difference
    for _ in range(_ROUNDS):
        sin_lam, cos_lam = math.sin(lam), math.cos(lam)
        across, along = cos2 * sin_lam, cos1 * sin2 - sin1 * cos2 * cos_lam
        sin_sigma = math.sqrt(across * across + along * along)
        if sin_sigma == 0.0:
            return 0.0
        cos_sigma = sin1 * sin2 + cos1 * cos2 * cos_lam
        sigma = math.atan2(sin_sigma, cos_sigma)
        sin_alpha = cos1 * cos2 * sin_lam / sin_sigma
        cos2_alpha = 1 - sin_alpha * sin_alpha
        middle = cos_sigma - 2 * sin1 * sin2 / cos2_alpha if cos2_alpha > 1e-12 else 0.0
        c = _F / 16 * cos2_alpha * (4 + _F * (4 - 3 * cos2_alpha))
        before = lam
        lam = difference + (1 - c) * _F * sin_alpha * (
            sigma + c * sin_sigma * (middle + c * cos_sigma * (2 * middle * middle - 1))
        )
        if abs(lam - before) < 1e-13:
            u = cos2_alpha * (_A * _A - _B * _B) / (_B * _B)
            large = 1 + u / 16384 * (4096 + u * (u * (320 - 175 * u) - 768))
            small = u / 1024 * (256 + u * (u * (74 - 47 * u) - 128))
            bend = small * sin_sigma * (
                middle
                + small / 4 * (
                    cos_sigma * (2 * middle * middle - 1)
                    - small / 6 * middle * (4 * sin_sigma * sin_sigma - 3) * (4 * middle * middle - 3)
                )
            )  # fmt: skip
            return _B * large * (sigma - bend)
    return math.nan


@njit(inline="always", cache=True)
def _in_circle(figures, slot, px, py, pz, lon, lat):
    """1 or 0, or -1 next to the rim."""
    dx, dy, dz = px - figures[slot, 0], py - figures[slot, 1], pz - figures[slot, 2]
    chord = dx * dx + dy * dy + dz * dz
    if chord <= figures[slot, 3] or chord > figures[slot, 4]:
        return np.int64(chord <= figures[slot, 3])
    beyond = _distance_m(figures[slot, 5], figures[slot, 6], lon, lat) - figures[slot, 7]
    return np.int64(1 if beyond < -_MARGIN_M else 0 if beyond > _MARGIN_M else -1)


@njit(inline="always", cache=True)
def _in_rectangle(figures, slot, lon, lat):
    west, south, east, north = figures[slot, 0], figures[slot, 1], figures[slot, 2], figures[slot, 3]
    is_in_lons = (west <= lon) & (lon <= east) if west <= east else (west <= lon) | (lon <= east)
    return np.int64((south <= lat) & (lat <= north) & is_in_lons)


@njit(cache=True)
def find(records, pool, figures, lon, lat, row, rows, found, count):
    """Write the slots of the zones that cover a point behind the `count` that are there; the new count, -1 if full.

    With each goes the row of the point.
    """
    if not _is_plain(lon, lat):
        if count == len(found):
            return _FULL
        rows[count], found[count] = row, MANY_NAMES
        return count + 1
    x, y = cell_of(lon + 180.0), cell_of(lat + 90.0)
    record, shift = np.int64(0), TOP
    while records[record, 0]:
        count = _find_covering(records, pool, record, row, rows, found, count)
        if count < 0:
            return _FULL
        shift -= BITS
        record = _part(records[record, 0], x, y, shift)
    return _find_in_cell(
        records, pool, pool.view(np.float64), figures, lon, lat, x, y, record, shift, row, rows, found, count
    )


@njit(inline="always", cache=True)
def _is_plain(lon, lat):
    """Whether a point has one name only."""
    return -180.0 < lon < 180.0 and -90.0 < lat < 90.0


@njit(inline="always", cache=True)
def _part(block, x, y, shift):
    return np.int64(block) + ((y >> shift) & (FAN - 1)) * FAN + ((x >> shift) & (FAN - 1))


@njit(inline="always", cache=True)
def _find_covering(records, pool, record, row, rows, found, count):
    """The same for the entries of a cell that is divided: zones that cover all of it."""
    start, used = records[record, 1], records[record, 2]
    if count < 0 or count + used > len(found):
        return np.int64(_FULL)
    for at in range(start, start + used):
        rows[count], found[count] = row, pool[at]
        count += 1
    return np.int64(count)


@njit(inline="always", cache=True)
def _find_in_cell(records, pool, floats, figures, lon, lat, x, y, record, shift, row, rows, found, count):
    """The same for the entries of a cell that is not divided."""
    at = np.int64(records[record, 1])
    end = at + records[record, 2]
    if count + (end - at) > len(found):
        return _FULL
    rx, ry = reference_point((x >> shift) << shift, (y >> shift) << shift, shift)
    has_circles = False
    while at < end:
        word = pool[at]
        at += 1
        kind, slot = (word >> KIND_BIT) & 7, word & SLOT_MASK
        if kind == EDGES:
            points = word >> COUNT_BIT
            verdict = walk(floats, at, points, (word >> INSIDE_BIT) & 1, lon, lat, rx, ry)
            at += 2 * points
        elif kind == COVERS:
            verdict = np.int64(1)
        elif kind == RECTANGLE:
            verdict = _in_rectangle(figures, slot, lon, lat)
        elif kind == CIRCLE:
            has_circles = True
            continue
        else:
            verdict = np.int64(-1)
        # Without a branch, for none could be foreseen: the slot, or its complement for -1, stays if it is counted.
        rows[count] = row
        found[count] = slot ^ (verdict >> 63)
        count += verdict != 0
    if has_circles:  # apart from the rest, which is faster without the registers that they need
        count = _find_circles(records, pool, figures, lon, lat, record, row, rows, found, count)
    return count


@njit(cache=True)
def _find_circles(records, pool, figures, lon, lat, record, row, rows, found, count):
    at = np.int64(records[record, 1])
    end = at + records[record, 2]
    x, y, z = sphere_point(lon, lat)
    while at < end:
        word = pool[at]
        at += 1 + 2 * (word >> COUNT_BIT)
        if (word >> KIND_BIT) & 7 == CIRCLE:
            slot = word & SLOT_MASK
            verdict = _in_circle(figures, slot, x, y, z, lon, lat)
            rows[count] = row
            found[count] = slot ^ (verdict >> 63)
            count += verdict != 0
    return count


@njit(cache=True, nogil=True)
def find_many(records, pool, figures, lons, lats, row, rows, found):
    """Pairs of a row and what `find` says of it, from `row` on until there is no more room.

    How many, the next row, how many of the pairs are doubts, and a number without meaning.

    In a large grid most of the time is spent waiting for memory. So a number of points go down side by side, a level
    at a time, and the processor waits for all of them at once.
    """
    xs, ys = np.empty(_ABREAST, np.int64), np.empty(_ABREAST, np.int64)
    cells, shifts = np.empty(_ABREAST, np.int64), np.empty(_ABREAST, np.int64)
    going = np.empty(_ABREAST, np.int64)
    passed = np.empty((_ABREAST, TOP // BITS), np.int64)  # the cells on the way that zones cover
    many_passed = np.empty(_ABREAST, np.int64)  # -1: the point has several names
    floats = pool.view(np.float64)
    is_large = len(pool) > _CACHED
    touched = 0
    count = 0
    while row < len(lons):
        abreast = min(_ABREAST, len(lons) - row)
        still = 0
        for i in range(abreast):
            many_passed[i] = -1
            if _is_plain(lons[row + i], lats[row + i]):
                xs[i], ys[i] = cell_of(lons[row + i] + 180.0), cell_of(lats[row + i] + 90.0)
                cells[i] = 0
                many_passed[i] = 0
                going[still] = i
                still += 1
        shift = TOP
        while still:
            before, still = still, 0
            for j in range(before):
                i = going[j]
                cell = cells[i]
                block, used = records[cell, 0], records[cell, 2]
                if block:
                    passed[i, many_passed[i]] = cell
                    many_passed[i] += used != 0
                    cells[i] = _part(block, xs[i], ys[i], shift - BITS)
                    going[still] = i
                    still += 1
                else:
                    shifts[i] = shift
                    if is_large:
                        start = records[cell, 1]
                        for line in range(start, start + min(used, 3 * _LINE), _LINE):
                            touched ^= pool[line]
            shift -= BITS
        for i in range(abreast):
            lon, lat = lons[row], lats[row]
            if many_passed[i] < 0:
                after = find(records, pool, figures, lon, lat, row, rows, found, count)
            else:
                after = count
                for k in range(many_passed[i]):
                    after = _find_covering(records, pool, passed[i, k], row, rows, found, after)
                if after >= 0:
                    after = _find_in_cell(
                        records, pool, floats, figures, lon, lat, xs[i], ys[i], cells[i], shifts[i],
                        row, rows, found, after,
                    )  # fmt: skip
            if after < 0:
                return count, row, _doubts(found, count), touched
            count = after
            row += 1
    return count, row, _doubts(found, count), touched


@njit(cache=True)
def _doubts(found, count):
    doubts = 0
    for i in range(count):
        doubts += found[i] < 0
    return doubts
