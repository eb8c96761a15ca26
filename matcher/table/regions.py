"""Tests of regions: scanned while they are few or recent, in a packed tree for the bulk.

The tree says at once which of all tests hold, passing over filters that are excluded already. When other attributes
have excluded nearly everything, it is cheaper to ask of the filters that are left: most are settled by their boxes.

Regions are kept as arrays of edges only. The compiled code is exact for coordinates that are 0 or between 1e-70 and
1e70 in size; a region with others, in a test or in a message, is decided in plain Python.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matcher.constraints import RegionTest
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import DISJOINT, NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import PlanarRegion
from matcher.relations import relate
from matcher.table.bits import Bits, Filters, copy_runs, empty_bits, set_bits, size_of
from matcher.table.families import Satisfiable
from matcher.table.growing import Columns
from matcher.table.pairs import exclude_each
from matcher.table.plain import ConstraintIndex, Holds, PlainStore
from matcher.table.scans import append_ring, exclude_regions, is_in_domain

__all__ = ["RegionStore", "edge_region"]

_FEW = 128  # one in so many of the tests is so few that a look at each is faster (measured)
_CODES = {name: code for code, name in enumerate(NAMES)}
_KEPT = "edge_region"


class RegionStore:
    def __init__(self, holds: Holds) -> None:
        self._tests = Columns(np.int32, np.int8, (np.float64, 4))  # filter, relation, box
        self._starts = Columns(np.int64, np.int64)  # of the edges and the rings; one row more, for the end of the last
        self._edges = Columns((np.float64, 4))
        self._rings = Columns(np.int64)
        for starts in self._starts.with_room():
            starts[0] = 0
        self._starts.count = 1
        self._odd = PlainStore(holds)

    def add(self, number: int, test: RegionTest) -> None:
        rings = test.region.rings
        sizes = [len(ring) for ring in rings]
        (edges,) = self._edges.with_room(sum(sizes))
        (ring_starts,) = self._rings.with_room(len(rings) + 1)
        first_edge, first_ring = self._edges.count, self._rings.count
        at, fits = 0, True
        for place, ring in enumerate(rings):
            ring_starts[first_ring + place] = at
            fits = append_ring(np.array(ring, np.float64), edges, first_edge + at) and fits
            at += sizes[place]
        if not fits:
            self._odd.add(number, test)  # the edges are not published, the next test overwrites them
            return
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
        if is_in_domain(region.edges):
            edge_starts, ring_starts = self._starts.arrays
            exclude_regions(
                region.edges, region.rings, region.box, filters, relations, boxes, edge_starts, ring_starts,
                self._edges.arrays[0], self._rings.arrays[0], count, out, size,
            )  # fmt: skip
        else:
            self.exclude_plainly(value, out, int(np.searchsorted(filters[:count], size)))
        if len(self._odd):
            self._odd.exclude(value, out, size)

    def exclude_plainly(self, value: PlanarRegion, out: Bits, count: int) -> None:
        """The first so many tests; for a value with coordinates that the compiled code can't be asked about."""
        filters, relations, boxes = (array[:count] for array in self._tests.arrays)
        x0, y0, x1, y1 = value.box
        apart = (boxes[:, 0] > x1) | (boxes[:, 1] > y1) | (boxes[:, 2] < x0) | (boxes[:, 3] < y0)
        set_bits(out, filters[apart & (relations != DISJOINT)])
        for place in np.flatnonzero(~apart).tolist():
            if relate(value, self._region(place)) != NAMES[relations[place]]:
                set_bits(out, filters[place : place + 1])

    def _region(self, place: int) -> PlanarRegion:
        """The region of a test, as it was given."""
        edge_starts, ring_starts = self._starts.arrays
        edges = self._edges.arrays[0][edge_starts[place] : edge_starts[place + 1], :2]
        cuts = self._rings.arrays[0][ring_starts[place] : ring_starts[place + 1]].tolist()
        rings = tuple(tuple((x, y) for x, y in edges[start:stop].tolist()) for start, stop in pairwise(cuts))
        x0, y0, x1, y1 = self._tests.arrays[2][place].tolist()
        return PlanarRegion(rings, (x0, y0, x1, y1))

    def filters(self) -> Filters:
        return np.union1d(self._tests.rows()[0], self._odd.filters())

    def merged(self, parts: "Sequence[tuple[RegionStore, Filters]]") -> "RegionStore":
        store = RegionStore(self._odd.holds)
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
        store._odd = self._odd.merged([(part._odd, new) for part, new in parts])
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
        self._store = store
        self._regions = store.all_regions()
        self._tree = PackedTree(filters, self._relations, self._regions)
        self._family = Satisfiable(filters, size)
        self._among = empty_bits(size)
        set_bits(self._among, self._family.members)
        self._starts = _starts(np.bincount(filters, minlength=size))  # tests come in the order of filters
        self._odd = store._odd.index(size) if len(store._odd) else None

    def exclude(self, value: PlanarRegion, out: Bits) -> None:
        left = size_of(out, self._among)
        if left:
            region = edge_region(value)
            if not is_in_domain(region.edges):
                self._store.exclude_plainly(value, out, len(self._relations))
            elif left * _FEW > len(self._relations):
                self._family.exclude_all_but(self._tree.search(region, out), out)
            else:
                regions = self._regions
                exclude_each(
                    region.edges, region.rings, region.box, self._relations, regions.edges, regions.edge_starts,
                    regions.rings, regions.ring_starts, regions.boxes, self._starts, self._among, out,
                )  # fmt: skip
        if self._odd is not None:
            self._odd.exclude(value, out)


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
