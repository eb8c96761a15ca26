"""Tests of regions: scanned while they are few or recent, in a packed tree for the bulk.

The tree says at once which of all tests hold, passing over filters that are excluded already. When other attributes
have excluded nearly everything, it is cheaper to ask of the filters that are left: most are settled by their boxes.

Regions are kept as arrays of edges only.
"""

from collections.abc import Sequence

import numpy as np

from matcher.constraints import RegionTest
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.engines.runs import copy_runs
from matcher.planar import PlanarRegion
from matcher.table.bits import Bits, Filters, distinct, empty_bits, set_bits, size_of
from matcher.table.families import Satisfiable
from matcher.table.growing import Columns
from matcher.table.pairs import exclude_each
from matcher.table.plain import ConstraintIndex
from matcher.table.scans import append_ring, exclude_regions

__all__ = ["RegionStore", "edge_region"]

_FEW = 128  # one in so many of the tests is so few that a look at each is faster (measured)
_CODES = {name: code for code, name in enumerate(NAMES)}
_KEPT = "edge_region"


class RegionStore:
    def __init__(self) -> None:
        self._tests = Columns(np.int32, np.int8, (np.float64, 4))  # filter, relation, box
        self._starts = Columns(np.int64, np.int64)  # of the edges and the rings; one row more, for the end of the last
        self._edges = Columns((np.float64, 4))
        self._rings = Columns(np.int64)
        for starts in self._starts.with_room():
            starts[0] = 0
        self._starts.count = 1

    def add(self, number: int, test: RegionTest) -> None:
        rings = test.region.rings
        sizes = [len(ring) for ring in rings]
        (edges,) = self._edges.with_room(sum(sizes))
        (ring_starts,) = self._rings.with_room(len(rings) + 1)
        first_edge, first_ring = self._edges.count, self._rings.count
        at = 0
        for place, ring in enumerate(rings):
            ring_starts[first_ring + place] = at
            append_ring(np.array(ring, np.float64), edges, first_edge + at)
            at += sizes[place]
        ring_starts[first_ring + len(rings)] = at
        filters, relations, boxes = self._tests.with_room()
        row = self._tests.count
        filters[row], relations[row], boxes[row] = number, _CODES[test.relation], test.region.box
        edge_starts, starts_of_rings = self._starts.with_room()
        edge_starts[row + 1], starts_of_rings[row + 1] = first_edge + at, first_ring + len(rings) + 1
        self._edges.count = first_edge + at
        self._rings.count = first_ring + len(rings) + 1
        self._starts.count = row + 2
        self._tests.count = row + 1

    def exclude(self, value: PlanarRegion, out: Bits, size: int) -> None:
        count = self._tests.count
        filters, relations, boxes = self._tests.arrays
        region = edge_region(value)
        edge_starts, ring_starts = self._starts.arrays
        exclude_regions(
            region.edges, region.rings, region.box, filters, relations, boxes, edge_starts, ring_starts,
            self._edges.arrays[0], self._rings.arrays[0], count, out, size,
        )  # fmt: skip

    def filters(self) -> Filters:
        found: Filters = distinct(self._tests.rows()[0])
        return found

    def merged(self, parts: "Sequence[tuple[RegionStore, Filters]]") -> "RegionStore":
        store = RegionStore()
        tests, edges, rings = [], [], []
        lengths: list[tuple[np.ndarray, np.ndarray]] = []
        for part, new in parts:
            filters, relations, boxes = part._tests.rows()
            numbers = new[filters]
            places = np.flatnonzero(numbers >= 0)
            tests.append((numbers[places], relations[places], boxes[places]))
            edge_starts, ring_starts = part._starts.rows()
            edges.append((copy_runs(part._edges.rows()[0], edge_starts, places),))
            rings.append((copy_runs(part._rings.rows()[0].reshape(-1, 1), ring_starts, places)[:, 0],))
            lengths.append((np.diff(edge_starts)[places], np.diff(ring_starts)[places]))
        store._tests, store._edges, store._rings = Columns.joined(tests), Columns.joined(edges), Columns.joined(rings)
        store._starts = Columns.of(*(_starts(np.concatenate(of_all)) for of_all in zip(*lengths, strict=True)))
        return store

    def index(self, size: int) -> ConstraintIndex:
        return _RegionIndex(self, size)

    def all_regions(self) -> EdgeRegions:
        edge_starts, ring_starts = self._starts.rows()
        return EdgeRegions(
            self._edges.rows()[0], edge_starts, self._rings.rows()[0], ring_starts, self._tests.rows()[2]
        )


class _RegionIndex:
    def __init__(self, store: RegionStore, size: int) -> None:
        filters, self._relations, _ = store._tests.rows()
        self._regions = store.all_regions()
        self._tree = PackedTree(filters, self._relations, self._regions)
        self._family = Satisfiable(filters, size)
        self._among = empty_bits(size)
        set_bits(self._among, self._family.members)
        self._starts = _starts(np.bincount(filters, minlength=size))  # tests come in the order of filters

    def exclude(self, value: PlanarRegion, out: Bits) -> None:
        left = size_of(out, self._among)
        if left:
            region = edge_region(value)
            if left * _FEW > len(self._relations):
                self._family.exclude_all_but(self._tree.search(region, out), out)
            else:
                regions = self._regions
                exclude_each(
                    region.edges, region.rings, region.box, self._relations, regions.edges, regions.edge_starts,
                    regions.rings, regions.ring_starts, regions.boxes, self._starts, self._among, out,
                )  # fmt: skip


def edge_region(region: PlanarRegion) -> EdgeRegion:
    """`EdgeRegion.of`, faster for one ring. It stays with the region, because every part of a table wants it."""
    kept: EdgeRegion | None = region.__dict__.get(_KEPT)
    if kept is None:
        kept = region.__dict__[_KEPT] = _edge_region(region)
    return kept


def _edge_region(region: PlanarRegion) -> EdgeRegion:
    if len(region.rings) > 1:
        return EdgeRegion.of(region)
    points = np.array(region.rings[0])
    edges = np.empty((len(points), 4))
    edges[:, :2] = points
    edges[:-1, 2:] = points[1:]
    edges[-1, 2:] = points[0]
    return EdgeRegion(edges, np.array((0, len(points))), np.array(region.box))


def _starts(lengths: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
