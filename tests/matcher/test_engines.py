"""The compiled code says what the plain code says."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from matcher.engines.orientation import side
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES, locate, relate_edges
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import PlanarRegion, from_rings
from matcher.planar import side as plain_side
from matcher.relations import locate as plain_locate
from matcher.relations import relate
from tests.matcher.exact_pairs import draw_pair, reference_relation

_PLACES = {1: "in", 0: "on", -1: "out"}


def relation(a: EdgeRegion, b: EdgeRegion) -> str:
    return NAMES[relate_edges(a.edges, a.rings, a.box, b.edges, b.rings, b.box)]


def number(rng: Random) -> float:
    """Often the same, often a hair apart, so that nothing is settled by rounding."""
    whole = float(rng.randrange(-4, 5)) or 5.0
    return rng.choice([0.0, whole, whole / 3, np.nextafter(whole / 3, 9.0), whole * 0.1, rng.random()])


def test_the_side_of_a_point_is_exact():
    rng = Random(1)
    for _ in range(20_000):
        six = [number(rng) for _ in range(6)]
        assert side(*six) == plain_side(*six), six


def extreme_number(rng: Random) -> float:
    """From one float beside 0 to the largest there are, with few different bits, so that sums often vanish."""
    near = rng.choice(
        [5e-324, 1e-310, 2.0**-1022, 2.0**-1000, 1e-160, 1e-70, 1.0, 3.0, 1e70, 1e160, 2.0**1022, 1.7e308]
    )
    nudged = rng.choice([near, near, near / 2, float(np.nextafter(near, 0.0)), 0.0, number(rng)])
    return rng.choice([1, -1]) * nudged


def test_the_side_of_a_point_is_exact_where_products_underflow_or_overflow():
    rng = Random(5)
    seen = set()
    for _ in range(20_000):
        six = [extreme_number(rng) for _ in range(6)]
        if rng.randrange(2):  # p on the line, or almost
            six[4:] = [six[0] / 2 + six[2] / 2, six[1] / 2 + six[3] / 2]
        (ax, ay, bx, by, px, py) = map(Fraction, six)
        cross = (ax - px) * (by - py) - (ay - py) * (bx - px)
        seen.add(found := side(*six))
        assert found == (cross > 0) - (cross < 0), six
    assert seen == {-1, 0, 1}


def test_two_regions_have_the_relation_that_the_plain_code_finds(full_size: bool):
    rng = Random(3)
    seen = set()
    for _ in range(200_000 if full_size else 3_000):
        a, b = draw_pair(rng)[:2]
        found = relation(EdgeRegion.of(a), EdgeRegion.of(b))
        assert found == relate(a, b), (a.rings, b.rings)
        seen.add(found)
    assert seen == set(NAMES)


def test_regions_one_float_from_the_axes_are_related_exactly():
    """A corner that is not quite at 0 has products that underflow."""
    tiny = 5e-324
    triangle = from_rings([[(-tiny, 3), (-1, 2), (0, -2)]])
    for other in (
        from_rings([[(0, 0), (3, 0), (0, 3)]]),
        from_rings([[(-tiny, 0), (3, 0), (-tiny, 3)]]),
        from_rings([[(tiny, tiny), (3, 0), (tiny, 3)]]),
        from_rings([[(-tiny, 3), (0, -2), (3, 0.3)]]),
        from_rings([[(-tiny, 3), (0.0, 0.1), (3, 0.3)]]),
        from_rings([[(-tiny, 2), (tiny, 3), (3, 0.3)]]),
    ):
        a, b = EdgeRegion.of(triangle), EdgeRegion.of(other)
        assert relation(a, b) == relate(triangle, other) == reference_relation(triangle, other)
        assert relation(b, a) == relate(other, triangle)


def test_a_point_is_where_the_plain_code_finds_it():
    rng = Random(4)
    for _ in range(2_000):
        region, other = draw_pair(rng)[:2]
        for x, y in (*other.rings[0], *region.rings[0]):
            where = _PLACES[locate(EdgeRegion.of(region).edges, x, y)]
            assert where == plain_locate((x, y), region).name.lower()


@pytest.mark.parametrize("seed", range(6))
def test_a_search_of_the_tree_finds_what_a_look_at_each_finds(seed: int):
    rng = Random(seed)
    for size in (0, 1, 7, 8, 9, 65, 300):
        regions: list[PlanarRegion] = []
        while len(regions) < size:
            regions += draw_pair(rng)[:2]
        edges = [EdgeRegion.of(region) for region in regions[:size]]
        codes = np.array([rng.randrange(8) for _ in edges], np.int8)
        ids = np.array(rng.sample(range(10 * size), size), np.int32)
        tree = PackedTree(ids, codes, EdgeRegions.of(edges))
        assert len(tree) == size
        for _ in range(10):
            query = EdgeRegion.of(rng.choice(regions) if regions and rng.random() < 0.4 else draw_pair(rng)[0])
            holding = [
                int(i) for i, code, each in zip(ids, codes, edges, strict=True) if relation(query, each) == NAMES[code]
            ]
            assert sorted(tree.search(query).tolist()) == sorted(holding)
