"""Walks through a packed tree, compiled: which constraints hold for a region, and which its box leaves open.

The stack of a walk holds a node and its level; below a leaf's node are entries. What a walk passes over as a whole is
copied as one run. `entries` has a line of the cache for each constraint: its box, and where it touches that.
"""

import numpy as np
from numba import njit

from matcher.engines.packing import LEAF
from matcher.engines.pairs import (
    CONTAINS,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    OVERLAPS,
    locate,
    pair_holds,
    relate_edges,
)

__all__ = ["candidates_across", "entries_around", "search_across", "search_around"]

_ONE = np.uint64(1)


@njit(cache=True)
def _prepared(edges, slack):
    """Of each edge what the search asks for again and again: its box, its line dx y - dy x = c, and how far from 0 that
    must be for a sign that is certain."""
    rows = np.empty((edges.shape[0], 8))
    for i in range(edges.shape[0]):
        ax, ay, bx, by = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        dx, dy = bx - ax, by - ay
        rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3] = min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
        rows[i, 4], rows[i, 5], rows[i, 6] = dx, dy, dx * ay - dy * ax
        rows[i, 7] = slack * (abs(dx) + abs(dy)) + 1e-300  # what underflows is less
    return rows


@njit(cache=True)
def _rays(edges):
    """Of each edge its lower and upper y, x at its lower end and how it changes with y: what a ray needs."""
    count = edges.shape[0]
    lows, highs, xs, slopes = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        if y0 > y1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        lows[i], highs[i], xs[i] = y0, y1, x0
        slopes[i] = (x1 - x0) / (y1 - y0) if y1 > y0 else 0.0
    return lows, highs, xs, slopes


@njit(cache=True)
def _is_inside(edges, lows, highs, xs, slopes, slack, x, y):
    """Whether a point that is certainly not on the boundary is in the interior; what is doubtful is done exactly."""
    crossings = doubts = 0
    for i in range(len(lows)):
        ahead = xs[i] + (y - lows[i]) * slopes[i] - x
        is_level = (lows[i] <= y) & (y < highs[i])
        crossings += is_level & (ahead > slack)
        doubts += is_level & (not (abs(ahead) > slack))
    if doubts:
        return locate(edges, x, y) > 0
    return crossings % 2 == 1


@njit(inline="always", cache=True)
def _meets_box(rows, i, x0, y0, x1, y1):
    """Whether an edge may meet a box: no only if it certainly does not."""
    if rows[i, 2] < x0 or rows[i, 0] > x1 or rows[i, 3] < y0 or rows[i, 1] > y1:
        return False
    p0, p1, q0, q1 = rows[i, 4] * y0, rows[i, 4] * y1, rows[i, 5] * x0, rows[i, 5] * x1
    lowest, highest = min(p0, p1) - max(q0, q1) - rows[i, 6], max(p0, p1) - min(q0, q1) - rows[i, 6]
    return not (lowest > rows[i, 7] or highest < -rows[i, 7])


@njit(inline="always", cache=True)
def _crosses_box(edges, i, entry):
    """Whether both ends of an edge that meets a box are outside: then it has all of its line that is in the box."""
    x0, y0, x1, y1 = entry[0], entry[1], entry[2], entry[3]
    ax, ay, bx, by = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
    return not ((x0 <= ax <= x1 and y0 <= ay <= y1) or (x0 <= bx <= x1 and y0 <= by <= y1))


@njit(inline="always", cache=True)
def _cuts_extremes(rows, i, entry):
    """Whether of the points where a region touches its box one is certainly left of an edge's line and one right."""
    dx, dy, c, limit = rows[i, 4], rows[i, 5], rows[i, 6], rows[i, 7]
    west, south = dx * entry[4] - dy * entry[0] - c, dx * entry[1] - dy * entry[5] - c
    east, north = dx * entry[6] - dy * entry[2] - c, dx * entry[3] - dy * entry[7] - c
    return max(max(west, east), max(south, north)) > limit and min(min(west, east), min(south, north)) < -limit


@njit(cache=True)
def _sides(rows, i, region):
    """Where the corners of a region are: 1 certainly on both sides of an edge's line, 0 certainly on one, else -1."""
    dx, dy, c, limit = rows[i, 4], rows[i, 5], rows[i, 6], rows[i, 7]
    left = right = 0
    for j in range(region.shape[0]):
        where = dx * region[j, 1] - dy * region[j, 0] - c
        left += where > limit
        right += where < -limit
    if left > 0 and right > 0:
        return 1
    return 0 if left + right == region.shape[0] else -1


@njit(cache=True)
def _copy(found, count, ids, start, end):
    for i in range(start, end):
        found[count] = ids[i]
        count += 1
    return count


@njit(cache=True, nogil=True)
def search_across(
    edges, rings, box, scale, boxes, levels, entries, ids, relations, all_edges, edge_starts, all_rings,
    ring_starts, disjoint_ids, disjoint_before, contains_ids, contains_before, skipped, found, count,
):  # fmt: skip
    # A cross product of numbers up to `scale` rounds by less than this, with much to spare.
    slack = 1e-14 * max(scale, max(max(abs(box[0]), abs(box[1])), max(abs(box[2]), abs(box[3]))))
    rows = _prepared(edges, slack)
    lows, highs, xs, slopes = _rays(edges)
    size = len(ids)
    height = len(levels) - 1
    edge_count = edges.shape[0]
    # The edges that meet a node are kept behind those of its parent: at most all of them for each level.
    kept = np.empty(edge_count * (height + 3), np.int64)
    for i in range(edge_count):
        kept[i] = i
    stack = np.empty((LEAF * (height + 1) + 1, 4), np.int64)  # level, node, first kept edge, how many
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = height - 1, 0, 0, edge_count
    depth = 1
    span = np.int64(1)
    while depth > 0:
        depth -= 1
        level, node, start, many = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        row = levels[level] + node
        x0, y0, x1, y1 = boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3]
        own = start + many
        mine = 0
        is_apart = x1 < box[0] or x0 > box[2] or y1 < box[1] or y0 > box[3]
        if x0 <= box[0] and y0 <= box[1] and x1 >= box[2] and y1 >= box[3]:
            own, mine = start, many  # all of the region is in this node: so are its edges
        elif not is_apart:
            for k in range(start, start + many):
                if _meets_box(rows, kept[k], x0, y0, x1, y1):
                    kept[own + mine] = kept[k]
                    mine += 1
        if mine == 0:
            span = LEAF ** (level + 1)
            first, last = node * span, min((node + 1) * span, size)
            if is_apart or not _is_inside(edges, lows, highs, xs, slopes, slack, x0, y0):
                count = _copy(found, count, disjoint_ids, disjoint_before[first], disjoint_before[last])
            else:
                count = _copy(found, count, contains_ids, contains_before[first], contains_before[last])
            continue
        if level > 0:
            end = min((node + 1) * LEAF, levels[level] - levels[level - 1])
            for child in range(node * LEAF, end):
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = level - 1, child, own, mine
                depth += 1
            continue
        for entry in range(node * LEAF, min((node + 1) * LEAF, size)):
            if len(skipped) and (skipped[ids[entry] >> 6] >> np.uint64(ids[entry] & 63)) & np.uint64(1):
                continue
            relation = relations[entry]
            ex0, ey0, ex1, ey1 = entries[entry, 0], entries[entry, 1], entries[entry, 2], entries[entry, 3]
            if relation == CONTAINS:
                if not (box[0] < ex0 and box[1] < ey0 and box[2] > ex1 and box[3] > ey1):
                    continue
            elif relation == COVERS:
                if not (box[0] <= ex0 and box[1] <= ey0 and box[2] >= ex1 and box[3] >= ey1):
                    continue
            elif box[0] > ex1 or box[2] < ex0 or box[1] > ey1 or box[3] < ey0:
                if relation == DISJOINT:
                    found[count] = ids[entry]
                    count += 1
                continue
            # A region of one ring is cut in two by an edge that crosses its box and has corners of it on both sides:
            # its interior is connected, so it has a point of the edge, and both overlap.
            near = 0
            is_cut = is_box_met = False
            first, last = edge_starts[entry], edge_starts[entry + 1]
            for k in range(own, own + mine):
                i = kept[k]
                if _meets_box(rows, i, ex0, ey0, ex1, ey1):
                    is_box_met = True
                    if _crosses_box(edges, i, entries[entry]):
                        if _cuts_extremes(rows, i, entries[entry]):
                            is_cut = True
                            break
                        sides = _sides(rows, i, all_edges[first:last])
                        if sides == 0:
                            continue
                        if sides > 0 and ring_starts[entry + 1] - ring_starts[entry] == 2:
                            is_cut = True
                            break
                    kept[own + mine + near] = i
                    near += 1
            if is_cut:
                holds = relation == OVERLAPS
            elif near > 0:
                holds = pair_holds(
                    relation,
                    edges,
                    rings,
                    box,
                    kept[own + mine : own + mine + near],
                    all_edges[first:last],
                    all_rings[ring_starts[entry] : ring_starts[entry + 1]],
                    entries[entry],
                )
            elif relation in (CONTAINS, DISJOINT):
                # All of it is inside or all outside. So is its box, unless an edge has cut off a corner of that.
                x, y = (all_edges[first, 0], all_edges[first, 1]) if is_box_met else (ex0, ey0)
                holds = (relation == CONTAINS) == _is_inside(edges, lows, highs, xs, slopes, slack, x, y)
            else:
                holds = False
            if holds:
                found[count] = ids[entry]
                count += 1
    return count


@njit(cache=True, nogil=True)
def search_around(
    edges, rings, box, boxes, levels, entries, ids, relations, all_edges, edge_starts, all_rings, ring_starts,
    skipped, found, count,
):  # fmt: skip
    end = entries_around(box, boxes, levels, entries, relations, found, count)
    for i in range(count, end):  # what holds takes the place of what was open
        entry = found[i]
        if len(skipped) and (skipped[ids[entry] >> 6] >> np.uint64(ids[entry] & 63)) & _ONE:
            continue
        code = relate_edges(
            edges,
            rings,
            box,
            all_edges[edge_starts[entry] : edge_starts[entry + 1]],
            all_rings[ring_starts[entry] : ring_starts[entry + 1]],
            entries[entry],
        )
        if code == relations[entry]:
            found[count] = ids[entry]
            count += 1
    return count


@njit(cache=True, nogil=True)
def entries_around(box, boxes, levels, entries, relations, found, count):
    """The places of the constraints that need a box around the region's and have one, behind the first `count`."""
    size = len(entries)
    height = len(levels) - 1
    stack = np.empty((LEAF * (height + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = height - 1, 0
    depth = 1
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        row = levels[level] + node
        if boxes[row, 0] > box[0] or boxes[row, 1] > box[1] or boxes[row, 2] < box[2] or boxes[row, 3] < box[3]:
            continue
        if level > 0:
            for child in range(node * LEAF, min((node + 1) * LEAF, levels[level] - levels[level - 1])):
                stack[depth, 0], stack[depth, 1] = level - 1, child
                depth += 1
            continue
        for entry in range(node * LEAF, min((node + 1) * LEAF, size)):
            relation = relations[entry]
            ex0, ey0 = entries[entry, 0], entries[entry, 1]
            ex1, ey1 = entries[entry, 2], entries[entry, 3]
            if ex0 > box[0] or ey0 > box[1] or ex1 < box[2] or ey1 < box[3]:
                continue
            if relation == INSIDE:
                if not (ex0 < box[0] and ey0 < box[1] and ex1 > box[2] and ey1 > box[3]):
                    continue
            elif relation == EQUALS and not (ex0 == box[0] and ey0 == box[1] and ex1 == box[2] and ey1 == box[3]):
                continue
            found[count] = entry
            count += 1
    return count


@njit(cache=True, nogil=True)
def candidates_across(
    box, is_simple, boxes, levels, entries, ids, relations, ring_starts, disjoint_ids, disjoint_before, certain,
    possible, counts,
):  # fmt: skip
    size = len(ids)
    height = len(levels) - 1
    stack = np.empty((LEAF * (height + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = height - 1, 0
    depth = 1
    span = np.int64(1)
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        row = levels[level] + node
        if boxes[row, 0] > box[2] or boxes[row, 1] > box[3] or boxes[row, 2] < box[0] or boxes[row, 3] < box[1]:
            span = LEAF ** (level + 1)
            first, last = node * span, min((node + 1) * span, size)
            counts[0] = _copy(certain, counts[0], disjoint_ids, disjoint_before[first], disjoint_before[last])
            continue
        if level > 0:
            for child in range(node * LEAF, min((node + 1) * LEAF, levels[level] - levels[level - 1])):
                stack[depth, 0], stack[depth, 1] = level - 1, child
                depth += 1
            continue
        for entry in range(node * LEAF, min((node + 1) * LEAF, size)):
            relation = relations[entry]
            ex0, ey0 = entries[entry, 0], entries[entry, 1]
            ex1, ey1 = entries[entry, 2], entries[entry, 3]
            if ex0 > box[2] or ey0 > box[3] or ex1 < box[0] or ey1 < box[1]:
                if relation == DISJOINT:
                    certain[counts[0]] = ids[entry]
                    counts[0] += 1
                continue
            if relation == CONTAINS:
                if not (box[0] < ex0 and box[1] < ey0 and box[2] > ex1 and box[3] > ey1):
                    continue
            elif relation == COVERS:
                if not (box[0] <= ex0 and box[1] <= ey0 and box[2] >= ex1 and box[3] >= ey1):
                    continue
            elif relation == OVERLAPS:
                if ex0 == box[2] or ey0 == box[3] or ex1 == box[0] or ey1 == box[1]:
                    continue
            elif relation == DISJOINT and is_simple and ring_starts[entry + 1] - ring_starts[entry] == 2:
                are_equal = ex0 == box[0] and ey0 == box[1] and ex1 == box[2] and ey1 == box[3]
                if are_equal:
                    continue
            possible[counts[1]] = ids[entry]
            counts[1] += 1
