"""Index of tests of regions: a packed tree for the bulk, or a look at each if few filters are left.

The tree says at once which of all tests hold, passing over filters that are excluded already. When other attributes
have excluded nearly everything, it is cheaper to ask of the filters that are left: most are settled by their boxes.
"""

from collections.abc import Sequence

import numpy as np

from matcher.constraints import RegionTest
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import PlanarRegion
from matcher.table.bits import Bits, empty_bits, set_bits, size_of
from matcher.table.families import Satisfiable
from matcher.table.pairs import exclude_each

__all__ = ["RegionIndex", "edge_region"]

_FEW = 128  # one in so many of the tests is so few that a look at each is faster (measured)
_CODES = {name: code for code, name in enumerate(NAMES)}


class RegionIndex:
    def __init__(self, entries: Sequence[tuple[int, RegionTest]], size: int) -> None:
        filters = np.fromiter((number for number, _ in entries), np.int32)
        self._relations = np.fromiter((_CODES[test.relation] for _, test in entries), np.int8)
        self._regions = EdgeRegions.of([edge_region(test.region) for _, test in entries])
        self._tree = PackedTree(filters, self._relations, self._regions)
        self._family = Satisfiable(filters, size)
        self._among = empty_bits(size)
        set_bits(self._among, self._family.members)
        self._starts = np.zeros(size + 1, np.int64)  # entries come in the order of filters
        np.cumsum(np.bincount(filters, minlength=size), out=self._starts[1:])

    def exclude(self, value: PlanarRegion, out: Bits) -> None:
        left = size_of(out, self._among)
        if not left:
            return
        region = edge_region(value)
        if left * _FEW > len(self._relations):
            self._family.exclude_all_but(self._tree.search(region, out), out)
            return
        regions = self._regions
        exclude_each(
            region.edges, region.rings, region.box, self._relations, regions.edges, regions.edge_starts,
            regions.rings, regions.ring_starts, regions.boxes, self._starts, self._among, out,
        )  # fmt: skip


def edge_region(region: PlanarRegion) -> EdgeRegion:
    """`EdgeRegion.of`, faster for one ring."""
    if len(region.rings) > 1:
        return EdgeRegion.of(region)
    points = np.array(region.rings[0])
    edges = np.empty((len(points), 4))
    edges[:, :2] = points
    edges[:-1, 2:] = points[1:]
    edges[-1, 2:] = points[0]
    return EdgeRegion(edges, np.array((0, len(points))), np.array(region.box))
