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

from matcher.engines.packing import Packing
from matcher.engines.pairs import COVERED_BY, EQUALS, INSIDE
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.engines.searches import candidates_across, entries_around, search_across, search_around

__all__ = ["PackedTree"]

_NONE_SKIPPED = np.empty(0, np.uint64)


class PackedTree:
    """Constraints that don't change. `ids` are the caller's numbers of them, below 2**31."""

    def __init__(self, ids: Sequence[int] | np.ndarray, relations: np.ndarray, regions: EdgeRegions) -> None:
        ids, relations = np.asarray(ids, np.int32), np.asarray(relations, np.int8)
        holding = (relations == INSIDE) | (relations == COVERED_BY) | (relations == EQUALS)
        self._size = len(ids)
        self._around = Packing(ids, relations, regions, np.flatnonzero(holding))
        self._across = Packing(ids, relations, regions, np.flatnonzero(~holding))

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
            count = search_across(
                region.edges, region.rings, region.box, half.scale, half.boxes, half.levels, half.entries,
                half.ids, half.relations, half.edges, half.edge_starts, half.rings, half.ring_starts,
                half.disjoint_ids, half.disjoint_before, half.contains_ids, half.contains_before, skipped, found, count,
            )  # fmt: skip
        half = self._around
        if half.size:
            count = search_around(
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
            candidates_across(
                region.box, is_simple, half.boxes, half.levels, half.entries, half.ids, half.relations,
                half.ring_starts, half.disjoint_ids, half.disjoint_before, certain, possible, counts,
            )  # fmt: skip
        if self._around.size:
            half = self._around
            first = counts[1]
            counts[1] = entries_around(
                region.box, half.boxes, half.levels, half.entries, half.relations, possible, first
            )
            possible[first : counts[1]] = half.ids[possible[first : counts[1]]]
        return certain[: counts[0]], possible[: counts[1]]
