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
from typing import Any

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
                region.edges, region.rings, region.box, half.scale, half.boxes, half.levels, half.entry_boxes,
                half.ids, half.relations, half.edges, half.edge_starts, half.rings, half.ring_starts,
                half.disjoint_ids, half.disjoint_before, half.contains_ids, half.contains_before, skipped, found, count,
            )  # fmt: skip
        half = self._around
        if half.size:
            count = _search_around(
                region.edges, region.rings, region.box, half.boxes, half.levels, half.entry_boxes, half.ids,
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
                region.box, is_simple, half.boxes, half.levels, half.entry_boxes, half.ids, half.relations,
                half.ring_starts, half.disjoint_ids, half.disjoint_before, certain, possible, counts,
            )  # fmt: skip
        if self._around.size:
            half = self._around
            _candidates_around(
                region.box, half.boxes, half.levels, half.entry_boxes, half.ids, half.relations, possible, counts
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
        self.entry_boxes = np.ascontiguousarray(regions.boxes[order])
        self.ids, self.relations = ids[order], relations[order]
        sorted_regions = regions.taken(order)
        self.edges, self.edge_starts = sorted_regions.edges, sorted_regions.edge_starts
        self.rings, self.ring_starts = sorted_regions.rings, sorted_regions.ring_starts
        self.disjoint_ids, self.disjoint_before = _run(self.ids, self.relations == DISJOINT)
        self.contains_ids, self.contains_before = _run(self.ids, self.relations == CONTAINS)
        self.boxes, self.levels = _pack(self.entry_boxes)
        self.scale = float(np.abs(self.entry_boxes).max())


def _run(ids: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    before = np.zeros(len(ids) + 1, np.int64)
    np.cumsum(wanted, out=before[1:])
    return np.ascontiguousarray(ids[wanted]), before


def _pack(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of all nodes, level by level from the leaves, and where each level begins."""
    parts, starts, level = [], [0], entries
    while True:
        cuts = np.arange(0, len(level), _LEAF)
        level = np.column_stack(
            [
                np.minimum.reduceat(level[:, 0], cuts),
                np.minimum.reduceat(level[:, 1], cuts),
                np.maximum.reduceat(level[:, 2], cuts),
                np.maximum.reduceat(level[:, 3], cuts),
            ]
        )
        parts.append(level)
        starts.append(starts[-1] + len(level))
        if len(level) == 1:
            return np.ascontiguousarray(np.concatenate(parts)), np.asarray(starts, np.int64)


def _hilbert(boxes: np.ndarray) -> np.ndarray:
    """The places of the boxes' centres along a Hilbert curve."""
    x = boxes[:, 0] / 2 + boxes[:, 2] / 2
    y = boxes[:, 1] / 2 + boxes[:, 3] / 2
    most = (1 << _HILBERT_BITS) - 1

    def cells(values: Any) -> np.ndarray:
        low, high = values.min(), values.max()
        width = high - low
        return ((values - low) / width * most).astype(np.int64) if width > 0 else np.zeros(len(values), np.int64)

    places: np.ndarray = _hilbert_places(cells(x), cells(y))
    return places


@njit(cache=True)
def _hilbert_places(xs, ys):
    places = np.empty(len(xs), np.int64)
    for i in range(len(xs)):
        x, y, place = xs[i], ys[i], 0
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


@njit(inline="always", cache=True)
def _meets_box(edges, i, x0, y0, x1, y1, slack):
    """Whether an edge may meet a box: no only if it certainly does not."""
    ax, ay, bx, by = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
    if max(ax, bx) < x0 or min(ax, bx) > x1 or max(ay, by) < y0 or min(ay, by) > y1:
        return False
    dx, dy = bx - ax, by - ay
    limit = slack * (abs(dx) + abs(dy)) + 1e-300  # what underflows is less
    s0 = dx * (y0 - ay) - dy * (x0 - ax)
    s1 = dx * (y0 - ay) - dy * (x1 - ax)
    s2 = dx * (y1 - ay) - dy * (x0 - ax)
    s3 = dx * (y1 - ay) - dy * (x1 - ax)
    if s0 > limit and s1 > limit and s2 > limit and s3 > limit:
        return False
    return not (s0 < -limit and s1 < -limit and s2 < -limit and s3 < -limit)


@njit(cache=True)
def _copy(found, count, ids, start, end):
    for i in range(start, end):
        found[count] = ids[i]
        count += 1
    return count


@njit(cache=True, nogil=True)
def _search_across(
    edges, rings, box, scale, boxes, levels, entry_boxes, ids, relations, all_edges, edge_starts, all_rings,
    ring_starts, disjoint_ids, disjoint_before, contains_ids, contains_before, skipped, found, count,
):  # fmt: skip
    # A cross product of numbers up to `scale` rounds by less than this, with much to spare.
    slack = 1e-14 * max(scale, max(max(abs(box[0]), abs(box[1])), max(abs(box[2]), abs(box[3]))))
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
        for k in range(start, start + many):
            i = kept[k]
            if _meets_box(edges, i, x0, y0, x1, y1, slack):
                kept[own + mine] = i
                mine += 1
        if mine == 0:
            span = _LEAF ** (level + 1)
            first, last = node * span, min((node + 1) * span, size)
            if x1 < box[0] or x0 > box[2] or y1 < box[1] or y0 > box[3] or locate(edges, x0, y0) < 0:
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
            ex0, ey0 = entry_boxes[entry, 0], entry_boxes[entry, 1]
            ex1, ey1 = entry_boxes[entry, 2], entry_boxes[entry, 3]
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
            near = 0
            for k in range(own, own + mine):
                i = kept[k]
                if _meets_box(edges, i, ex0, ey0, ex1, ey1, slack):
                    kept[own + mine + near] = i
                    near += 1
            if near == 0:
                if relation in (CONTAINS, DISJOINT):
                    is_in = locate(edges, ex0, ey0) > 0
                    if is_in == (relation == CONTAINS):
                        found[count] = ids[entry]
                        count += 1
                continue
            if pair_holds(
                relation,
                edges,
                rings,
                box,
                kept[own + mine : own + mine + near],
                all_edges[edge_starts[entry] : edge_starts[entry + 1]],
                all_rings[ring_starts[entry] : ring_starts[entry + 1]],
                entry_boxes[entry],
            ):
                found[count] = ids[entry]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _search_around(
    edges, rings, box, boxes, levels, entry_boxes, ids, relations, all_edges, edge_starts, all_rings, ring_starts,
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
            ex0, ey0 = entry_boxes[entry, 0], entry_boxes[entry, 1]
            ex1, ey1 = entry_boxes[entry, 2], entry_boxes[entry, 3]
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
                entry_boxes[entry],
            )
            if code == relation:
                found[count] = ids[entry]
                count += 1
    return count


@njit(cache=True, nogil=True)
def _candidates_across(
    box, is_simple, boxes, levels, entry_boxes, ids, relations, ring_starts, disjoint_ids, disjoint_before, certain,
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
            ex0, ey0 = entry_boxes[entry, 0], entry_boxes[entry, 1]
            ex1, ey1 = entry_boxes[entry, 2], entry_boxes[entry, 3]
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
def _candidates_around(box, boxes, levels, entry_boxes, ids, relations, possible, counts):
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
            ex0, ey0 = entry_boxes[entry, 0], entry_boxes[entry, 1]
            ex1, ey1 = entry_boxes[entry, 2], entry_boxes[entry, 3]
            if ex0 > box[0] or ey0 > box[1] or ex1 < box[2] or ey1 < box[3]:
                continue
            if relation == INSIDE:
                if not (ex0 < box[0] and ey0 < box[1] and ex1 > box[2] and ey1 > box[3]):
                    continue
            elif relation == EQUALS and not (ex0 == box[0] and ey0 == box[1] and ex1 == box[2] and ey1 == box[3]):
                continue
            possible[counts[1]] = ids[entry]
            counts[1] += 1
