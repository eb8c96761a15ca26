"""Which zones cover a point: the search in the cells of `matcher.engines.cells`, compiled.

An answer is certain or it is none. An edge so near that rounding could decide, a rim nearer than a centimetre, and a
point on the antimeridian or a pole, where places have several names, are handed back as doubts, a complement of the
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
_MARGIN_M = 0.01  # Vincenty's formula is off by less than 0.5 mm
_ROUNDS = 30
_ABREAST = 64  # points
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


@njit(cache=True)
def _in_circle(figure, px, py, pz, lon, lat):
    """1 or 0, or -1 next to the rim."""
    dx, dy, dz = px - figure[0], py - figure[1], pz - figure[2]
    chord = dx * dx + dy * dy + dz * dz
    if chord <= figure[3]:
        return 1
    if chord > figure[4]:
        return 0
    beyond = _distance_m(figure[5], figure[6], lon, lat) - figure[7]
    return 1 if beyond < -_MARGIN_M else 0 if beyond > _MARGIN_M else -1


@njit(inline="always", cache=True)
def _in_rectangle(figure, lon, lat):
    if not figure[1] <= lat <= figure[3]:
        return 0
    if figure[0] <= figure[2]:
        return 1 if figure[0] <= lon <= figure[2] else 0
    return 1 if lon >= figure[0] or lon <= figure[2] else 0


@njit(cache=True)
def find(records, pool, figures, lon, lat, found, count):
    """Write the slots of the zones that cover a point behind the `count` that are there; the new count, -1 if full."""
    room = len(found)
    if not _is_plain(lon, lat):
        if count == room:
            return _FULL
        found[count] = MANY_NAMES
        return count + 1
    x, y = cell_of(lon + 180.0), cell_of(lat + 90.0)
    record, shift = np.int64(0), TOP
    while records[record, 0]:
        start = records[record, 1]
        for at in range(start, start + records[record, 2]):
            if count == room:
                return _FULL
            found[count] = pool[at]
            count += 1
        shift -= BITS
        record = _part(records[record, 0], x, y, shift)
    return _find_in_cell(records, pool, figures, lon, lat, x, y, record, shift, found, count)


@njit(inline="always", cache=True)
def _is_plain(lon, lat):
    """Whether a point has one name only."""
    return -180.0 < lon < 180.0 and -90.0 < lat < 90.0


@njit(inline="always", cache=True)
def _part(block, x, y, shift):
    return np.int64(block) + ((y >> shift) & (FAN - 1)) * FAN + ((x >> shift) & (FAN - 1))


@njit(cache=True)
def _find_in_cell(records, pool, figures, lon, lat, x, y, record, shift, found, count):
    """The same for the entries of a cell that is not divided."""
    room = len(found)
    at = np.int64(records[record, 1])
    end = at + records[record, 2]
    floats = pool.view(np.float64)
    rx, ry = reference_point((x >> shift) << shift, (y >> shift) << shift, shift)
    is_on_sphere = False
    sx = sy = sz = 0.0
    while at < end:
        word = pool[at]
        at += 1
        kind, slot = (word >> KIND_BIT) & 7, word & SLOT_MASK
        if kind == EDGES:
            points = word >> COUNT_BIT
            verdict = walk(floats, at, points, (word >> INSIDE_BIT) & 1, lon, lat, rx, ry)
            at += 2 * points
        elif kind == COVERS:
            verdict = 1
        elif kind == RECTANGLE:
            verdict = _in_rectangle(figures[slot], lon, lat)
        elif kind == CIRCLE:
            if not is_on_sphere:
                sx, sy, sz = sphere_point(lon, lat)
                is_on_sphere = True
            verdict = _in_circle(figures[slot], sx, sy, sz, lon, lat)
        else:
            verdict = -1
        if verdict != 0:
            if count == room:
                return _FULL
            found[count] = slot if verdict > 0 else ~slot
            count += 1
    return count


@njit(cache=True, nogil=True)
def find_many(records, pool, figures, lons, lats, row, rows, found):
    """Pairs of a row and what `find` says of it, from `row` on until there is no more room: how many, and the next row.

    In a large grid most of the time is spent waiting for memory. So a number of points go down side by side, a level
    at a time, and the processor waits for all of them at once.
    """
    xs, ys = np.empty(_ABREAST, np.int64), np.empty(_ABREAST, np.int64)
    cells, shifts = np.empty(_ABREAST, np.int64), np.empty(_ABREAST, np.int64)
    going = np.empty(_ABREAST, np.int64)
    simple = np.empty(_ABREAST, np.bool_)  # nothing was found on the way
    touched = 0
    count = 0
    while row < len(lons):
        abreast = min(_ABREAST, len(lons) - row)
        still = 0
        for i in range(abreast):
            simple[i] = False
            if _is_plain(lons[row + i], lats[row + i]):
                xs[i], ys[i] = cell_of(lons[row + i] + 180.0), cell_of(lats[row + i] + 90.0)
                cells[i] = 0
                simple[i] = True
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
                    simple[i] &= used == 0
                    cells[i] = _part(block, xs[i], ys[i], shift - BITS)
                    going[still] = i
                    still += 1
                else:
                    shifts[i] = shift
                    if used:
                        touched ^= pool[records[cell, 1]]
            shift -= BITS
        for i in range(abreast):
            lon, lat = lons[row], lats[row]
            if simple[i]:
                after = _find_in_cell(records, pool, figures, lon, lat, xs[i], ys[i], cells[i], shifts[i], found, count)
            else:
                after = find(records, pool, figures, lon, lat, found, count)
            if after < 0:
                return count, row, touched
            for k in range(count, after):
                rows[k] = row
            count = after
            row += 1
    return count, row, touched
