"""The compiled code on ten million pairs: what shapely says differently is settled by rational arithmetic.

All ordered pairs within groups of regions (`tests.matcher.region_groups`) go through three implementations: the
compiled relation, the search of a packed tree that has every region of the group with each of the eight relations, and
`shapely.relate`. A random part goes through the plain relation and the rational reference as well.
"""

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
import shapely
from numba import njit

from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES, relate_edges
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import PlanarRegion
from matcher.relations import inverse, relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import geometry_of, reference_relation, relation_of_matrix
from tests.matcher.region_groups import GROUP_KINDS, has_hole, part_count

_INVERSE = np.array([NAMES.index(inverse(Relation(name))) for name in NAMES])
_PLAIN_SHARE, _RATIONAL_SHARE = 200, 500  # one in so many pairs is related by the plain code, by the reference


@njit(cache=True)
def _all_pairs(edges, edge_starts, rings, ring_starts, boxes):
    """The code of each ordered pair."""
    size = len(boxes)
    codes = np.empty((size, size), np.int8)
    for i in range(size):
        a, a_rings = edges[edge_starts[i] : edge_starts[i + 1]], rings[ring_starts[i] : ring_starts[i + 1]]
        for j in range(size):
            b, b_rings = edges[edge_starts[j] : edge_starts[j + 1]], rings[ring_starts[j] : ring_starts[j + 1]]
            codes[i, j] = relate_edges(a, a_rings, boxes[i], b, b_rings, boxes[j])
    return codes


class Tally:
    """What was seen, and a failure at the first pair that is wrong."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in GROUP_KINDS}
        self.by_relation: Counter[str] = Counter()
        self._codes: dict[str, int] = {}

    @property
    def total(self) -> Counter[str]:
        return sum(self.by_kind.values(), Counter())

    def try_group(self, kind: str, size: int) -> None:
        regions = GROUP_KINDS[kind](self.rng, size)
        edges = [EdgeRegion.of(region) for region in regions]
        together = EdgeRegions.of(edges)
        codes = _all_pairs(together.edges, together.edge_starts, together.rings, together.ring_starts, together.boxes)
        np.testing.assert_array_equal(codes.T, _INVERSE[codes])
        figures = self.by_kind[kind]
        figures["pairs"] += codes.size
        self._count(figures, regions)
        self.by_relation.update({NAMES[code]: int(n) for code, n in enumerate(np.bincount(codes.ravel(), minlength=8))})
        self._search(edges, together, codes)
        self._compare_with_shapely(figures, regions, codes)
        self._compare_some(figures, regions, codes)

    def _count(self, figures: Counter[str], regions: list[PlanarRegion]) -> None:
        holes, parts = sum(map(has_hole, regions)), sum(part_count(region) > 1 for region in regions)
        figures["pairs_with_a_hole"] += len(regions) ** 2 - (len(regions) - holes) ** 2
        figures["pairs_with_several_parts"] += len(regions) ** 2 - (len(regions) - parts) ** 2

    def _search(self, edges: list[EdgeRegion], together: EdgeRegions, codes: np.ndarray) -> None:
        """Of the eight constraints on each region exactly one holds: that of the relation."""
        size = len(edges)
        tree = PackedTree(
            np.arange(8 * size), np.tile(np.arange(8), size), together.taken(np.repeat(np.arange(size), 8))
        )
        for i, query in enumerate(edges):
            found = np.sort(tree.search(query))
            np.testing.assert_array_equal(found, 8 * np.arange(size) + codes[i])

    def _compare_with_shapely(self, figures: Counter[str], regions: list[PlanarRegion], codes: np.ndarray) -> None:
        geometries = np.array([geometry_of(region) for region in regions], dtype=object)
        for i, matrices in enumerate(shapely.relate(geometries[:, None], geometries[None, :])):
            said = np.array([self._code(matrix) for matrix in matrices])
            for j in np.flatnonzero(said != codes[i]):
                figures["shapely_differs"] += 1
                truth = reference_relation(regions[i], regions[j])
                figures["shapely_was_right"] += truth == NAMES[said[j]]
                assert truth == NAMES[codes[i, j]], (regions[i].rings, regions[j].rings)

    def _compare_some(self, figures: Counter[str], regions: list[PlanarRegion], codes: np.ndarray) -> None:
        for share, implementation, name in (
            (_PLAIN_SHARE, relate, "by_the_plain_code_too"),
            (_RATIONAL_SHARE, reference_relation, "by_rational_arithmetic_too"),
        ):
            for _ in range(codes.size // share):
                i, j = self.rng.randrange(len(regions)), self.rng.randrange(len(regions))
                assert implementation(regions[i], regions[j]) == NAMES[codes[i, j]], (
                    regions[i].rings,
                    regions[j].rings,
                )
                figures[name] += 1

    def _code(self, matrix: str) -> int:
        code = self._codes.get(matrix)
        if code is None:
            code = self._codes[matrix] = NAMES.index(relation_of_matrix(matrix))
        return code


def assert_hard(tally: Tally) -> None:
    """The generators are worth nothing if they draw easy pairs only."""
    assert set(tally.by_relation) == set(NAMES)
    assert min(tally.by_relation.values()) > tally.total["pairs"] / 200
    assert tally.total["pairs_with_a_hole"] > tally.total["pairs"] / 20
    assert tally.total["pairs_with_several_parts"] > tally.total["pairs"] / 20
    assert tally.total["shapely_differs"] > 0


@pytest.mark.slow
def test_all_pairs_of_small_groups_are_related_exactly() -> None:
    tally = Tally(20261118)
    for kind in GROUP_KINDS:
        for _ in range(2):
            tally.try_group(kind, 60)
    assert_hard(tally)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_ten_million_pairs_are_related_exactly(
    full_size: bool, record_result: Callable[[str, dict[str, Any]], None]
) -> None:
    """Each time other ones; the seed is recorded."""
    seed, began = time.time_ns(), time.process_time()
    tally = Tally(seed)
    for _ in range(32 if full_size else 1):
        for kind in GROUP_KINDS:
            tally.try_group(kind, 200)
    assert_hard(tally)
    if full_size:
        assert tally.total["pairs"] >= 10_000_000
    record_result(
        "ten_million_pairs",
        {
            "seed": seed,
            "cpu_s": round(time.process_time() - began, 1),
            **tally.total,
            "shapely_was_right": tally.total["shapely_was_right"],
            "wrong": 0,  # the first one would have failed the test
            "by_relation": dict(tally.by_relation),
            "by_kind": {kind: dict(figures) for kind, figures in tally.by_kind.items()},
        },
    )
