"""A packed tree of spatial constraints, searched with a region.

The constraints lie in the order of a Hilbert curve, so every node is a run of them, and so are the `disjoint` and the
`contains` constraints below it. The search classifies a node's box against the region itself, not only against its
MBR: below a node outside the region every `disjoint` constraint holds and nothing else does, below a node inside it
every `contains`, and both are copied as one run. A node that the region's boundary meets passes down only the edges
that meet its box. `inside`, `covered-by` and `equals` need an MBR that holds the region's: they have a tree of their
own, whose search dies near the root.

Boxes are compared with slack, which can only send a search further down; what decides is `matcher.engines.pairs`.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from matcher.engines.pairs import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    OVERLAPS,
    locate,
    pair_holds,
    relate_edges,
)
from matcher.engines.regions import EdgeRegion, EdgeRegions

__all__ = ["PackedTree"]

_LEAF = 8  # entries in a leaf, and children of a node
_HILBERT_BITS = 16
_NONE_SKIPPED = np.empty(0, np.uint64)


class PackedTree:
    """Constraints that don't change. `ids` are the caller's numbers of them, below 2**31."""

    def __init__(self, ids: Sequence[int] | np.ndarray, relations: np.ndarray, regions: EdgeRegions) -> None:
        ids, relations = np.asarray(ids, np.int32), np.asarray(relations, np.int8)
        holding = (relations == INSIDE) | (relations == COVERED_BY) | (relations == EQUALS)
        self._size = len(ids)
        self._around = _Half(ids, relations, regions, np.flatnonzero(holding))
        self._across = _Half(ids, relations, regions, np.flatnonzero(~holding))

    def __len__(self) -> int:
        return self._size

    def search(self, region: EdgeRegion, skipped: np.ndarray = _NONE_SKIPPED) -> np.ndarray:
        """The ids of the constraints that hold for this region, in no order.

        `skipped` has a bit for each id, 64 to a word; of one that is set the search may say anything.
        """
        found = np.empty(self._size, np.int32)
        count = 0
        half = self._across
        if half.size:
            count = _search_across(
                region.edges, region.rings, region.box, half.scale, half.boxes, half.levels, half.entries,
                half.ids, half.relations, half.edges, half.edge_starts, half.rings, half.ring_starts,
                half.disjoint_ids, half.disjoint_before, half.contains_ids, half.contains_before, skipped, found, count,
            )  # fmt: skip
        half = self._around
        if half.size:
            count = _search_around(
                region.edges, region.rings, region.box, half.boxes, half.levels, half.entries, half.ids,
                half.relations, half.edges, half.edge_starts, half.rings, half.ring_starts, skipped, found, count,
            )  # fmt: skip
        return found[:count]

    def candidates(self, region: EdgeRegion) -> tuple[np.ndarray, np.ndarray]:
        """What the boxes leave to an evaluator other than ours: the ids of `disjoint` constraints that hold because
        boxes are apart, and of the constraints that may hold (`matcher.box_relations`), both in no order."""
        certain, possible = np.empty(self._size, np.int32), np.empty(self._size, np.int32)
        counts = np.zeros(2, np.int64)
        is_simple = len(region.rings) == 2
        if self._across.size:
            half = self._across
            _candidates_across(
                region.box, is_simple, half.boxes, half.levels, half.entries, half.ids, half.relations,
                half.ring_starts, half.disjoint_ids, half.disjoint_before, certain, possible, counts,
            )  # fmt: skip
        if self._around.size:
            half = self._around
            _candidates_around(
                region.box, half.boxes, half.levels, half.entries, half.ids, half.relations, possible, counts
            )
        return certain[: counts[0]], possible[: counts[1]]


class _Half:
    """One of the two trees: flat arrays, leaves first, the root last."""

    def __init__(self, ids: np.ndarray, relations: np.ndarray, regions: EdgeRegions, chosen: np.ndarray) -> None:
        self.size = len(chosen)
        if not self.size:
            return
        boxes = regions.boxes[chosen]
        order = chosen[np.argsort(_hilbert(boxes), kind="stable")]
        self.ids, self.relations = ids[order], relations[order]
        sorted_regions = regions.taken(order)
        self.edges, self.edge_starts = sorted_regions.edges, sorted_regions.edge_starts
        self.rings, self.ring_starts = sorted_regions.rings, sorted_regions.ring_starts
        self.disjoint_ids, self.disjoint_before = _run(self.ids, self.relations == DISJOINT)
        self.contains_ids, self.contains_before = _run(self.ids, self.relations == CONTAINS)
        self.boxes, self.levels = _pack(sorted_regions.boxes)
        self.scale = float(np.abs(sorted_regions.boxes).max())
        # A line of the cache for each: its box, then y of its westernmost point, x of its southernmost, and so on.
        self.entries = np.hstack(
            [sorted_regions.boxes, _touching_points(self.edges, self.edge_starts, self.ring_starts)]
        )


def _run(ids: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    before = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(wanted, out=before[1:])
    return np.ascontiguousarray(ids[wanted]), before


@njit(cache=True, nogil=True)
def _pack(entries):
    """The boxes of all nodes, level by level from the leaves, and where each level begins."""
    sizes = [(len(entries) + _LEAF - 1) // _LEAF]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + _LEAF - 1) // _LEAF)
    starts = np.zeros(len(sizes) + 1, np.int64)
    for level in range(len(sizes)):
        starts[level + 1] = starts[level] + sizes[level]
    boxes = np.empty((starts[-1], 4))
    for level in range(len(sizes)):
        below = entries if level == 0 else boxes[starts[level - 1] : starts[level]]
        for node in range(sizes[level]):
            first = node * _LEAF
            x0, y0, x1, y1 = below[first, 0], below[first, 1], below[first, 2], below[first, 3]
            for child in range(first + 1, min(first + _LEAF, len(below))):
                x0, y0 = min(x0, below[child, 0]), min(y0, below[child, 1])
                x1, y1 = max(x1, below[child, 2]), max(y1, below[child, 3])
            row = starts[level] + node
            boxes[row, 0], boxes[row, 1], boxes[row, 2], boxes[row, 3] = x0, y0, x1, y1
    return boxes, starts


@njit(cache=True, nogil=True)
def _touching_points(edges, edge_starts, ring_starts):
    """Where each region touches its box: y in the west, x in the south, y in the east, x in the north.

    Of several rings not a number, which nothing is left or right of.
    """
    points = np.full((len(edge_starts) - 1, 4), np.nan)
    for place in range(len(points)):
        if ring_starts[place + 1] - ring_starts[place] > 2:
            continue
        first = edge_starts[place]
        west = south = east = north = first
        for i in range(first + 1, edge_starts[place + 1]):
            if edges[i, 0] < edges[west, 0]:
                west = i
            if edges[i, 0] > edges[east, 0]:
                east = i
            if edges[i, 1] < edges[south, 1]:
                south = i
            if edges[i, 1] > edges[north, 1]:
                north = i
        points[place, 0], points[place, 2] = edges[west, 1], edges[east, 1]
        points[place, 1], points[place, 3] = edges[south, 0], edges[north, 0]
    return points


@njit(cache=True, nogil=True)
def _hilbert(boxes):
    """The places of the boxes' centres along a Hilbert curve."""
    count = len(boxes)
    places = np.empty(count, np.int64)
    x0 = y0 = np.inf
    x1 = y1 = -np.inf
    for i in range(count):  # half of a centre, so that the difference of two does not overflow
        x, y = boxes[i, 0] / 4 + boxes[i, 2] / 4, boxes[i, 1] / 4 + boxes[i, 3] / 4
        x0, y0, x1, y1 = min(x0, x), min(y0, y), max(x1, x), max(y1, y)
    most = (1 << _HILBERT_BITS) - 1
    width, height = x1 - x0, y1 - y0
    for i in range(count):
        across, up_to = boxes[i, 0] / 4 + boxes[i, 2] / 4 - x0, boxes[i, 1] / 4 + boxes[i, 3] / 4 - y0
        x = int(across / width * most) if width > 0 else 0
        y = int(up_to / height * most) if height > 0 else 0
        place = 0
        size = 1 << (_HILBERT_BITS - 1)
        while size > 0:
            right, up = (x & size) > 0, (y & size) > 0
            place += size * size * ((3 if right else 0) ^ (1 if up else 0))
            if not up:
                if right:
                    x, y = size - 1 - (x & (size - 1)), size - 1 - (y & (size - 1))
                    x, y = y, x
                else:
                    x, y = y & (size - 1), x & (size - 1)
            else:
                x, y = x & (size - 1), y & (size - 1)
            size >>= 1
        places[i] = place
    return places


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
def _search_across(
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
    stack = np.empty((_LEAF * (height + 1) + 1, 4), np.int64)  # level, node, first kept edge, how many
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
            span = _LEAF ** (level + 1)
            first, last = node * span, min((node + 1) * span, size)
            if is_apart or not _is_inside(edges, lows, highs, xs, slopes, slack, x0, y0):
                count = _copy(found, count, disjoint_ids, disjoint_before[first], disjoint_before[last])
            else:
                count = _copy(found, count, contains_ids, contains_before[first], contains_before[last])
            continue
        if level > 0:
            end = min((node + 1) * _LEAF, levels[level] - levels[level - 1])
            for child in range(node * _LEAF, end):
                stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = level - 1, child, own, mine
                depth += 1
            continue
        for entry in range(node * _LEAF, min((node + 1) * _LEAF, size)):
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
def _search_around(
    edges, rings, box, boxes, levels, entries, ids, relations, all_edges, edge_starts, all_rings, ring_starts,
    skipped, found, count,
):  # fmt: skip
    size = len(ids)
    height = len(levels) - 1
    stack = np.empty((_LEAF * (height + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = height - 1, 0
    depth = 1
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        row = levels[level] + node
        if boxes[row, 0] > box[0] or boxes[row, 1] > box[1] or boxes[row, 2] < box[2] or boxes[row, 3] < box[3]:
            continue
        if level > 0:
            for child in range(node * _LEAF, min((node + 1) * _LEAF, levels[level] - levels[level - 1])):
                stack[depth, 0], stack[depth, 1] = level - 1, child
                depth += 1
            continue
        for entry in range(node * _LEAF, min((node + 1) * _LEAF, size)):
            if len(skipped) and (skipped[ids[entry] >> 6] >> np.uint64(ids[entry] & 63)) & np.uint64(1):
                continue
            ex0, ey0 = entries[entry, 0], entries[entry, 1]
            ex1, ey1 = entries[entry, 2], entries[entry, 3]
            relation = relations[entry]
            if ex0 > box[0] or ey0 > box[1] or ex1 < box[2] or ey1 < box[3]:
                continue
            if relation == INSIDE:
                if not (ex0 < box[0] and ey0 < box[1] and ex1 > box[2] and ey1 > box[3]):
                    continue
            elif relation == EQUALS and not (ex0 == box[0] and ey0 == box[1] and ex1 == box[2] and ey1 == box[3]):
                continue
            code = relate_edges(
                edges,
                rings,
                box,
                all_edges[edge_starts[entry] : edge_starts[entry + 1]],
                all_rings[ring_starts[entry] : ring_starts[entry + 1]],
                entries[entry],
            )
            if code == relation:
                found[count] = ids[entry]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _candidates_across(
    box, is_simple, boxes, levels, entries, ids, relations, ring_starts, disjoint_ids, disjoint_before, certain,
    possible, counts,
):  # fmt: skip
    size = len(ids)
    height = len(levels) - 1
    stack = np.empty((_LEAF * (height + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = height - 1, 0
    depth = 1
    span = np.int64(1)
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        row = levels[level] + node
        if boxes[row, 0] > box[2] or boxes[row, 1] > box[3] or boxes[row, 2] < box[0] or boxes[row, 3] < box[1]:
            span = _LEAF ** (level + 1)
            first, last = node * span, min((node + 1) * span, size)
            counts[0] = _copy(certain, counts[0], disjoint_ids, disjoint_before[first], disjoint_before[last])
            continue
        if level > 0:
            for child in range(node * _LEAF, min((node + 1) * _LEAF, levels[level] - levels[level - 1])):
                stack[depth, 0], stack[depth, 1] = level - 1, child
                depth += 1
            continue
        for entry in range(node * _LEAF, min((node + 1) * _LEAF, size)):
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


@njit(cache=True, nogil=True)
def _candidates_around(box, boxes, levels, entries, ids, relations, possible, counts):
    size = len(ids)
    height = len(levels) - 1
    stack = np.empty((_LEAF * (height + 1) + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = height - 1, 0
    depth = 1
    while depth > 0:
        depth -= 1
        level, node = stack[depth, 0], stack[depth, 1]
        row = levels[level] + node
        if boxes[row, 0] > box[0] or boxes[row, 1] > box[1] or boxes[row, 2] < box[2] or boxes[row, 3] < box[3]:
            continue
        if level > 0:
            for child in range(node * _LEAF, min((node + 1) * _LEAF, levels[level] - levels[level - 1])):
                stack[depth, 0], stack[depth, 1] = level - 1, child
                depth += 1
            continue
        for entry in range(node * _LEAF, min((node + 1) * _LEAF, size)):
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
            possible[counts[1]] = ids[entry]
            counts[1] += 1
