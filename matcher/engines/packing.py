"""How constraints are laid out for a packed tree: flat arrays in the order of a Hilbert curve, and the nodes' boxes."""

import numpy as np
from numba import njit

from matcher.engines.pairs import CONTAINS, DISJOINT
from matcher.engines.regions import EdgeRegions

__all__ = ["LEAF", "Packing"]

LEAF = 8  # entries in a leaf, and children of a node
_HILBERT_BITS = 16


class Packing:
    """One tree: flat arrays, leaves first, the root last."""

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
    sizes = [(len(entries) + LEAF - 1) // LEAF]
    while sizes[-1] > 1:
        sizes.append((sizes[-1] + LEAF - 1) // LEAF)
    starts = np.zeros(len(sizes) + 1, np.int64)
    for level in range(len(sizes)):
        starts[level + 1] = starts[level] + sizes[level]
    boxes = np.empty((starts[-1], 4))
    for level in range(len(sizes)):
        below = entries if level == 0 else boxes[starts[level - 1] : starts[level]]
        for node in range(sizes[level]):
            first = node * LEAF
            x0, y0, x1, y1 = below[first, 0], below[first, 1], below[first, 2], below[first, 3]
            for child in range(first + 1, min(first + LEAF, len(below))):
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
