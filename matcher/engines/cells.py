"""Zones shared out among the cells of a grid that is fine where zones are dense, compiled.

A cell is a square of 512 degrees or one of the 16 that it was divided into. A zone that covers a whole cell is kept
with that cell, once for all below it, and a point there is answered at once. A zone whose boundary meets a cell that
is not divided is kept with what decides inside that cell: of a polygon the edges that meet it, and whether the cell's
reference point is inside. Between that and any point of the cell only these edges can lie. Too many edges divide a
cell, and a division reads and writes nothing outside of it: so changes cost what they touch.

What meets a cell is judged for a cell that is a little wider, which can only send an edge to more cells than it
needs. Where rounding leaves a doubt, the entry says so (`PLAIN`), and who searches asks the plain code.

`records` has a row for each cell: where its 16 parts begin (0: not divided), then of its run of entries in `pool` the
start, the words in use, and the room. An entry is a word of slot, kind, whether the reference point is inside and the
number of points; then come these, the edges as chains of points with not-a-number between two chains. By slot,
`figures` has the numbers of circles and rectangles, `reaches` the first and the last cell, x and y, that a zone may
have to do with, and `spent` and `budget` words of the pool.

Nothing grows in here: when room is short, `state[FAILED]` is set, and the caller removes the zone, makes room and
places it again.
"""

import math

import numpy as np
from numba import njit

__all__ = [
    "BITS",
    "CIRCLE",
    "COVERS",
    "EDGES",
    "FAILED",
    "FAN",
    "FIRST_RECORDS",
    "GARBAGE",
    "INSIDE_BIT",
    "KIND_BIT",
    "COUNT_BIT",
    "PLAIN",
    "POOL_USED",
    "RECORDS_USED",
    "RECTANGLE",
    "SLOT_MASK",
    "STATE_SIZE",
    "TOP",
    "compacted",
    "cell_of",
    "place",
    "reference_point",
    "remove",
    "sphere_point",
    "walk",
]

TOP = 30  # bits of a coordinate of the finest grid; the whole is one cell of 512 degrees
BITS = 2  # of them that tell the parts of a cell apart, each way
FAN = 1 << BITS
_PARTS = FAN * FAN
_LEVELS = TOP // BITS + 1
_UNITS = 2.0**21  # to a degree
_LEAST_SHIFT = 4  # cells of 1 m are not divided
FIRST_RECORDS = _PARTS  # the first of them is the whole; parts begin at multiples of 16, so 0 is none

_CHILD, _START, _USED, _ROOM = 0, 1, 2, 3
RECORDS_USED, POOL_USED, GARBAGE, FAILED, _FREE = 0, 1, 2, 3, 4
STATE_SIZE = 5

COVERS, EDGES, RECTANGLE, CIRCLE, PLAIN = 0, 1, 2, 3, 4
KIND_BIT, INSIDE_BIT, COUNT_BIT = 32, 36, 40
SLOT_MASK = (1 << 32) - 1

_MOST = 20  # points in a cell; a figure counts as six
_SLACK = 1e-9  # degrees; the coordinates of cells are rounded by less than 1e-13
_FLATTENING = 1 / 298.257223563
_POLAR = (1 - _FLATTENING) ** 2
_STEEPEST = 1 / (1 - _FLATTENING) + 1e-9  # how much faster than the latitude the reduced one can change

# Not a half: the corners of zones like round numbers, and a reference point on an edge would be of no use.
_REFERENCE_X, _REFERENCE_Y = 0.48716320719, 0.51926317053

_FILTER = 3.3306690738754716e-16  # as in `matcher.engines.orientation`
_UNDERFLOW = 1e-300
_WIDEST = 512.0  # degrees; more than any two points differ by
_OUTSIDE, _PARTLY, _WHOLLY = 0, 1, 2
_IN, _ON, _DOUBT = 1, 2, -1


@njit(inline="always", cache=True)
def cell_of(degrees):
    """The finest cell, in one direction, of degrees from the grid's corner."""
    return np.int64(degrees * _UNITS)


@njit(inline="always", cache=True)
def reference_point(x, y, shift):
    """A point of the cell that begins at x and y, the same for all who ask."""
    size = np.float64(np.int64(1) << shift)
    return (x + _REFERENCE_X * size) / _UNITS - 180.0, (y + _REFERENCE_Y * size) / _UNITS - 90.0


@njit(inline="always", cache=True)
def sphere_point(lon, lat):
    """The point of the unit sphere by its reduced latitude, as in `zones.circles`."""
    lam, phi = lon * (math.pi / 180), lat * (math.pi / 180)
    cos, sin = math.cos(phi), math.sin(phi)
    scale = 1 / math.sqrt(cos * cos + _POLAR * sin * sin)
    return cos * scale * math.cos(lam), cos * scale * math.sin(lam), (1 - _FLATTENING) * sin * scale


@njit(cache=True)
def _crosses(ax, ay, bx, by, px, py, rx, ry):
    """Whether the way from p to r crosses an edge (1 or 0) or begins on it (2); -1 if rounding may decide."""
    wx, wy = rx - px, ry - py
    ux, uy, vx, vy = ax - px, ay - py, bx - px, by - py
    if (ux == 0.0 and uy == 0.0) or (vx == 0.0 and vy == 0.0):
        return _ON
    # On which side of the line from p to r are the ends of the edge?
    left, right = wx * uy, wy * ux
    begin, begin_doubt = left - right, _FILTER * (abs(left) + abs(right)) + _UNDERFLOW
    left, right = wx * vy, wy * vx
    end, end_doubt = left - right, _FILTER * (abs(left) + abs(right)) + _UNDERFLOW
    if (begin > begin_doubt and end > end_doubt) or (begin < -begin_doubt and end < -end_doubt):
        return 0
    left, right = ux * vy, uy * vx
    side = left - right
    if abs(side) <= _FILTER * (abs(left) + abs(right)) + _UNDERFLOW:
        # Edges along an axis are common, and their lines are told exactly. Beyond the ends of an edge, the way to r
        # leaves its line at once.
        if ux == 0.0 and vx == 0.0 and wx != 0.0:
            return _ON if (uy <= 0.0 <= vy) or (vy <= 0.0 <= uy) else 0
        if uy == 0.0 and vy == 0.0 and wy != 0.0:
            return _ON if (ux <= 0.0 <= vx) or (vx <= 0.0 <= ux) else 0
        return _DOUBT
    if abs(begin) <= begin_doubt or abs(end) <= end_doubt:
        return _DOUBT
    left, right = (ax - rx) * (by - ry), (ay - ry) * (bx - rx)
    other = left - right
    if abs(other) <= _FILTER * (abs(left) + abs(right)) + _UNDERFLOW:
        return _DOUBT
    return 1 if (side > 0.0) != (other > 0.0) else 0


@njit(inline="always", cache=True)
def walk(floats, at, count, inside, px, py, rx, ry):
    """Go from r, which is inside (1) or not (0), to p: 1 and 0 for p then, 2 on an edge, -1 if rounding may decide."""
    # Without branches: which edges are crossed is not to be foreseen, and a wrong guess costs the processor more than
    # some products. An edge to or from not-a-number compares as false and is not met.
    wx, wy = rx - px, ry - py
    doubt = _FILTER * _WIDEST * (abs(wx) + abs(wy)) + _UNDERFLOW
    ux, uy = floats[at] - px, floats[at + 1] - py
    tx, ty = floats[at] - rx, floats[at + 1] - ry
    begin = wx * uy - wy * ux
    crossings = np.int64(0)
    doubts = np.int64(0)
    for i in range(at + 2, at + 2 * count, 2):
        vx, vy = floats[i] - px, floats[i + 1] - py
        zx, zy = floats[i] - rx, floats[i + 1] - ry
        end = wx * vy - wy * vx
        is_met = ((begin <= doubt) & (end >= -doubt)) | ((end <= doubt) & (begin >= -doubt))
        left, right = ux * vy, uy * vx
        side, side_doubt = left - right, _FILTER * (abs(left) + abs(right)) + _UNDERFLOW
        left, right = tx * zy, ty * zx
        other, other_doubt = left - right, _FILTER * (abs(left) + abs(right)) + _UNDERFLOW
        is_clear = (abs(begin) > doubt) & (abs(end) > doubt) & (abs(side) > side_doubt) & (abs(other) > other_doubt)
        crossings += is_met & ((side > 0.0) != (other > 0.0))
        doubts += is_met & (not is_clear)
        ux, uy, tx, ty, begin = vx, vy, zx, zy, end
    if doubts == 0:
        return inside ^ (crossings & 1)
    return _walk_slowly(floats, at, count, inside, px, py, rx, ry)


@njit(cache=True)
def _walk_slowly(floats, at, count, inside, px, py, rx, ry):
    for i in range(at + 2, at + 2 * count, 2):
        if math.isnan(floats[i]) or math.isnan(floats[i - 2]):
            continue
        crossing = _crosses(floats[i - 2], floats[i - 1], floats[i], floats[i + 1], px, py, rx, ry)
        if crossing == 1:
            inside ^= 1
        elif crossing != 0:
            return crossing
    return inside


@njit(cache=True)
def _keep_meeting(source, at, count, target, to, x, y, shift):
    """Copy the edges that meet a cell, at most three points for each; how many points."""
    half = np.float64(np.int64(1) << shift) / (2 * _UNITS)
    mx, my = x / _UNITS - 180.0 + half, y / _UNITS - 90.0 + half
    half += _SLACK
    end = to
    is_chained = False
    for i in range(at + 2, at + 2 * count, 2):
        ax, ay, bx, by = source[i - 2] - mx, source[i - 1] - my, source[i] - mx, source[i + 1] - my
        dx, dy = bx - ax, by - ay
        # Written so that not-a-number is not kept.
        if (
            min(ax, bx) <= half
            and max(ax, bx) >= -half
            and min(ay, by) <= half
            and max(ay, by) >= -half
            and abs(dx * ay - dy * ax) <= (abs(dx) + abs(dy)) * half
        ):
            if not is_chained:
                if end > to:
                    target[end] = target[end + 1] = math.nan
                    end += 2
                target[end], target[end + 1] = source[i - 2], source[i - 1]
                end += 2
                is_chained = True
            target[end], target[end + 1] = source[i], source[i + 1]
            end += 2
        else:
            is_chained = False
    if end - to == 4:  # one edge or two: the processor foresees best what is always the same
        target[end] = target[end + 1] = math.nan
        end += 2
    return (end - to) // 2


@njit(cache=True)
def _figure_in_cell(kind, figure, x, y, shift):
    half = np.float64(np.int64(1) << shift) / (2 * _UNITS)
    lon, lat = x / _UNITS - 180.0 + half, y / _UNITS - 90.0 + half
    half += _SLACK
    if kind == RECTANGLE:
        west, south, east, north = figure[0], figure[1], figure[2], figure[3]
        if lat + half < south or lat - half > north:
            return _OUTSIDE
        in_lats = south <= lat - half and lat + half <= north
        if west <= east:
            if lon + half < west or lon - half > east:
                return _OUTSIDE
            return _WHOLLY if in_lats and west <= lon - half and lon + half <= east else _PARTLY
        if lon + half < west and lon - half > east:
            return _OUTSIDE
        return _WHOLLY if in_lats and (lon - half >= west or lon + half <= east) else _PARTLY
    px, py, pz = sphere_point(lon, lat)
    dx, dy, dz = px - figure[0], py - figure[1], pz - figure[2]
    middle = math.sqrt(dx * dx + dy * dy + dz * dz)
    # Squared chords are at most (change of reduced lat)^2 + (cosine * change of lon)^2: so far is the cell's corner.
    cos = 1.0
    if lat - half > 0.0 and lat + half < 90.0:
        cos = min(1.0, math.cos((lat - half) * (math.pi / 180)) * _STEEPEST)
    elif lat + half < 0.0 and lat - half > -90.0:
        cos = min(1.0, math.cos((lat + half) * (math.pi / 180)) * _STEEPEST)
    radians = half * (math.pi / 180)
    reach = radians * math.sqrt(_STEEPEST * _STEEPEST + cos * cos) + 1e-12
    if middle - reach > 0.0 and (middle - reach) ** 2 > figure[4]:
        return _OUTSIDE
    return _WHOLLY if (middle + reach) ** 2 < figure[3] else _PARTLY


@njit(inline="always", cache=True)
def _reaches(reach, x, y, shift):
    """Whether a cell is among those that a zone may have to do with."""
    size = np.int64(1) << shift
    return x <= reach[2] and x + size > reach[0] and y <= reach[3] and y + size > reach[1]


@njit(cache=True)
def _append(records, pool, state, record, word, source, at, count):
    """Add an entry to the run of a cell, which moves to a larger room if it has to."""
    words = 1 + 2 * count
    used = records[record, _USED]
    if used + words > records[record, _ROOM]:
        room = used + words if used == 0 else (used + words) * 3 // 2
        begin = state[POOL_USED]
        if begin + room > len(pool):
            state[FAILED] = 1
            return
        old = records[record, _START]
        pool[begin : begin + used] = pool[old : old + used]
        state[POOL_USED] += room
        state[GARBAGE] += records[record, _ROOM]
        records[record, _START], records[record, _ROOM] = begin, room
    to = records[record, _START] + used
    pool[to] = word
    floats = pool.view(np.float64)
    for i in range(2 * count):
        floats[to + 1 + i] = source[at + i]
    records[record, _USED] = used + words


@njit(cache=True)
def _in_part(word, figures, reaches, source, at, count, rx, ry, target, to, x, y, shift):
    """What of an entry of a cell, whose reference point is r, goes to one of its parts: a word (-1: none) and edges."""
    kind, slot = (word >> KIND_BIT) & 7, word & SLOT_MASK
    if not _reaches(reaches[slot], x, y, shift):
        return np.int64(-1), 0
    if kind == PLAIN:
        return word, 0
    if kind in (RECTANGLE, CIRCLE):
        verdict = _figure_in_cell(kind, figures[slot], x, y, shift)
        return (np.int64(-1) if verdict == _OUTSIDE else slot if verdict == _WHOLLY else word), 0
    sx, sy = reference_point(x, y, shift)
    inside = walk(source, at, count, (word >> INSIDE_BIT) & 1, sx, sy, rx, ry)
    kept = _keep_meeting(source, at, count, target, to, x, y, shift)
    if inside in (_ON, _DOUBT):
        return slot | (np.int64(PLAIN) << KIND_BIT), 0
    if kept == 0:
        return (slot if inside else np.int64(-1)), 0
    return (
        slot | (np.int64(EDGES) << KIND_BIT) | (np.int64(inside) << INSIDE_BIT) | (np.int64(kept) << COUNT_BIT)
    ), kept


@njit(cache=True)
def _is_crowded(records, pool, spent, budget, record):
    """Whether dividing a cell is worth it: its zones have too many edges here, and most of these may be spent for.

    A budget bounds what a zone may cause to be written. Without it, zones that share a border would divide the cells
    along it to the last.
    """
    start = records[record, _START]
    at, end = start, start + records[record, _USED]
    wanting, total = 0, 0
    while at < end:
        word = pool[at]
        kind, count = (word >> KIND_BIT) & 7, word >> COUNT_BIT
        at += 1 + 2 * count
        if kind == COVERS:
            continue
        cost = count if kind == EDGES else 6
        total += cost
        slot = word & SLOT_MASK
        if kind != PLAIN and spent[slot] < budget[slot]:
            wanting += cost
    return wanting > _MOST and 2 * wanting > total


@njit(cache=True)
def _new_block(records, state):
    block = state[_FREE]
    if block:
        state[_FREE] = records[block, _START]
    else:
        block = state[RECORDS_USED]
        if block + _PARTS > len(records):
            state[FAILED] = 1
            return 0
        state[RECORDS_USED] += _PARTS
    records[block : block + _PARTS] = 0
    return block


@njit(cache=True)
def _divide(records, pool, state, spent, budget, figures, reaches, record, shift, x, y):
    """Share out the entries of a cell among its parts, but for those that cover all of it."""
    start, used = records[record, _START], records[record, _USED]
    # Each part may get all of it, and growing by a half each time takes up to 4.5 times as much.
    if state[POOL_USED] + 5 * _PARTS * used > len(pool):
        state[FAILED] = 1
        return
    block = _new_block(records, state)
    if not block:
        return
    floats = pool.view(np.float64)
    target = np.empty(3 * used + 6)
    rx, ry = reference_point(x, y, shift)
    part_shift = shift - BITS
    at = to = start
    while at < start + used:
        word = pool[at]
        slot, count = word & SLOT_MASK, word >> COUNT_BIT
        if (word >> KIND_BIT) & 7 == COVERS:
            pool[to] = word
            to += 1
            at += 1
            continue
        for part in range(_PARTS):
            part_x, part_y = x + ((part & (FAN - 1)) << part_shift), y + ((part >> BITS) << part_shift)
            new, kept = _in_part(
                word, figures, reaches, floats, at + 1, count, rx, ry, target, 0, part_x, part_y, part_shift
            )
            if new >= 0:
                _append(records, pool, state, block + part, new, target, 0, kept)
                if new != slot:
                    spent[slot] += 1 + 2 * kept
        spent[slot] -= 1 + 2 * count
        at += 1 + 2 * count
    records[record, _USED] = to - start
    if to == start:
        state[GARBAGE] += records[record, _ROOM]
        records[record, _ROOM] = 0
    records[record, _CHILD] = block


@njit(cache=True)
def _divide_where_crowded(records, pool, state, spent, budget, figures, reaches, record, shift, x, y):
    # Not by recursion: compiled code that calls itself does not survive numba's cache.
    stack = np.empty((_LEVELS * _PARTS, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = record, shift, x, y
    depth = 1
    while depth:
        depth -= 1
        record, shift, x, y = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if shift < _LEAST_SHIFT + BITS or not _is_crowded(records, pool, spent, budget, record):
            continue
        _divide(records, pool, state, spent, budget, figures, reaches, record, shift, x, y)
        if state[FAILED]:
            return
        shift -= BITS
        for part in range(_PARTS):
            stack[depth, 0], stack[depth, 1] = records[record, _CHILD] + part, shift
            stack[depth, 2], stack[depth, 3] = x + ((part & (FAN - 1)) << shift), y + ((part >> BITS) << shift)
            depth += 1


@njit(cache=True)
def _place_in(records, pool, state, spent, budget, figures, reaches, word, record, shift, x, y, edges, count):
    """Place what is partly in a cell, with it or below; `edges` has room for a copy at every level."""
    slot = word & SLOT_MASK
    # Of the cells from the first down to the current one: record, x, y, entry, its edges, and the next part.
    path = np.empty((_LEVELS, 7), np.int64)
    path[0, 0], path[0, 1], path[0, 2], path[0, 3], path[0, 4], path[0, 5], path[0, 6] = record, x, y, word, 0, count, 0
    depth = 0
    while depth >= 0:
        record, x, y, word, at, count, part = path[depth]
        here = shift - depth * BITS
        block = records[record, _CHILD]
        if block == 0:
            _append(records, pool, state, record, word, edges, at, count)
            if state[FAILED]:
                return
            spent[slot] += 1 + 2 * count
            _divide_where_crowded(records, pool, state, spent, budget, figures, reaches, record, here, x, y)
            if state[FAILED]:
                return
            depth -= 1
            continue
        if part == _PARTS:
            depth -= 1
            continue
        path[depth, 6] += 1
        rx, ry = reference_point(x, y, here)
        here -= BITS
        x, y = x + ((part & (FAN - 1)) << here), y + ((part >> BITS) << here)
        behind = at + 2 * count
        new, kept = _in_part(word, figures, reaches, edges, at, count, rx, ry, edges, behind, x, y, here)
        if new < 0:
            continue
        if new == slot:
            _append(records, pool, state, block + part, new, edges, behind, 0)
            if state[FAILED]:
                return
            continue
        depth += 1
        path[depth, 0], path[depth, 1], path[depth, 2], path[depth, 3] = block + part, x, y, new
        path[depth, 4], path[depth, 5], path[depth, 6] = behind, kept, 0


@njit(cache=True)
def _is_inside(points, px, py):
    """1 or 0 for a point, by the edges that a ray to the east crosses; -1 if rounding may decide."""
    inside = 0
    for i in range(1, len(points)):
        ax, ay, bx, by = points[i - 1, 0], points[i - 1, 1], points[i, 0], points[i, 1]
        if math.isnan(ay) or math.isnan(by):
            continue
        if (ay > py) == (by > py):
            if ay == py and by == py:
                return _DOUBT
            continue
        left, right = (ax - px) * (by - py), (ay - py) * (bx - px)
        side = left - right
        if abs(side) <= _FILTER * (abs(left) + abs(right)) + _UNDERFLOW:
            return _DOUBT
        if (side > 0.0) == (by > ay):
            inside ^= 1
    return inside


@njit(cache=True)
def place(records, pool, state, spent, budget, figures, reaches, slot, kind, points):
    """Put a zone, of which nothing is there, in all cells it meets."""
    reach = reaches[slot]
    record, shift, x, y = 0, TOP, np.int64(0), np.int64(0)
    while records[record, _CHILD]:
        part_shift = shift - BITS
        if reach[0] >> part_shift != reach[2] >> part_shift or reach[1] >> part_shift != reach[3] >> part_shift:
            break
        part_x, part_y = (reach[0] >> part_shift) & (FAN - 1), (reach[1] >> part_shift) & (FAN - 1)
        x, y = x + (part_x << part_shift), y + (part_y << part_shift)
        record, shift = records[record, _CHILD] + part_y * FAN + part_x, part_shift
    count = len(points)
    chains = np.empty(6 * count * (_LEVELS + 1) + 4)  # a copy at every level, three points for each edge at the worst
    chains[: 2 * count] = points.ravel()
    word = np.int64(slot) | (np.int64(kind) << KIND_BIT)
    if kind == EDGES:
        inside = _is_inside(points, *reference_point(x, y, shift))
        if inside == _DOUBT:
            word, count = np.int64(slot) | (np.int64(PLAIN) << KIND_BIT), 0
        else:
            word |= (np.int64(inside) << INSIDE_BIT) | (np.int64(count) << COUNT_BIT)
    spent[slot] = 0
    _place_in(records, pool, state, spent, budget, figures, reaches, word, record, shift, x, y, chains, count)


@njit(cache=True)
def _drop(records, pool, state, slot, record):
    """Take a zone's entry out of the run of one cell, if there is one."""
    start = records[record, _START]
    at, end = start, start + records[record, _USED]
    while at < end:
        word = pool[at]
        words = 1 + 2 * (word >> COUNT_BIT)
        if word & SLOT_MASK == slot:
            for i in range(at, end - words):
                pool[i] = pool[i + words]
            records[record, _USED] -= words
            if records[record, _USED] == 0:
                state[GARBAGE] += records[record, _ROOM]
                records[record, _ROOM] = 0
            return
        at += words


@njit(cache=True)
def remove(records, pool, state, slot, reach):
    """Take a zone, or what has been placed of it, out of all cells; cells whose parts are empty are whole again."""
    path = np.zeros((_LEVELS, 4), np.int64)  # record, x, y, next part
    depth = 0
    while depth >= 0:
        record, x, y, part = path[depth]
        if part == 0:
            _drop(records, pool, state, slot, record)
        block = records[record, _CHILD]
        if block == 0:
            depth -= 1
            continue
        if part == _PARTS:
            if not records[block : block + _PARTS, _USED].any() and not records[block : block + _PARTS, _CHILD].any():
                records[record, _CHILD] = 0
                records[block, _START] = state[_FREE]
                state[_FREE] = block
            depth -= 1
            continue
        path[depth, 3] += 1
        shift = TOP - (depth + 1) * BITS
        x, y = x + ((part & (FAN - 1)) << shift), y + ((part >> BITS) << shift)
        if _reaches(reach, x, y, shift):
            depth += 1
            path[depth, 0], path[depth, 1], path[depth, 2], path[depth, 3] = block + part, x, y, 0


@njit(cache=True)
def compacted(records, pool, state, room):
    """A pool with this much room, in which no run has any to spare."""
    new = np.empty(room, np.int64)
    to = 0
    for record in range(state[RECORDS_USED]):
        used = records[record, _USED]
        if used:
            start = records[record, _START]
            new[to : to + used] = pool[start : start + used]
            records[record, _START] = to
            to += used
        if records[record, _ROOM]:
            records[record, _ROOM] = used
    state[POOL_USED], state[GARBAGE] = to, 0
    return new
