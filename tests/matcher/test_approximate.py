"""Algorithm 1: its table, its points, what it gets right, and the errors it is known for."""

import math
from collections import Counter
from random import Random

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from matcher.approximate import (
    MAX_POINTS,
    WITNESSES,
    Density,
    DensityInvalid,
    RegionNotSimple,
    Sampled,
    approximate_relation,
    relate_sampled,
)
from matcher.planar import PlanarRegion, from_geometry, from_rings
from matcher.relations import inverse, relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import KINDS, draw_pair, four_intersections, star

randoms = st.integers(0, 2**64).map(Random)

UNIVERSE = (0.0, 0.0, 10.0, 10.0)
CORNERS_ONLY = Density(0, UNIVERSE)
DENSE = Density(2_000, UNIVERSE)  # the publication's: a point each hundredth here


def region(wkt: str) -> PlanarRegion:
    return from_geometry(shapely.from_wkt(wkt))


SQUARE = region("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))")
EIGHT = {
    "disjoint": "POLYGON ((5 0, 6 0, 6 1, 5 0))",
    "meets": "POLYGON ((4 1, 6 1, 6 3, 4 3, 4 1))",
    "overlaps": "POLYGON ((3 3, 6 3, 6 6, 3 6, 3 3))",
    "equals": "POLYGON ((4 4, 0 4, 0 0, 2 0, 4 0, 4 4))",
    "inside": "POLYGON ((-1 -1, 5 -1, 5 5, -1 5, -1 -1))",
    "contains": "POLYGON ((1 1, 2 1, 2 2, 1 1))",
    "covers": "POLYGON ((0 0, 4 0, 2 2, 0 0))",
    "covered-by": "POLYGON ((0 0, 4 0, 8 8, 0 4, 0 0))",
}


# --- the table ---------------------------------------------------------------------------------------


def test_the_table_names_each_relation_once() -> None:
    assert set(WITNESSES) == set(Relation)
    assert len(set(WITNESSES.values())) == 8
    assert {str(relation): "".join("01"[there] for there in row) for relation, row in WITNESSES.items()} == {
        "disjoint": "0001",
        "meets": "1001",
        "overlaps": "1111",
        "equals": "1000",
        "inside": "0100",
        "contains": "0011",
        "covers": "1011",
        "covered-by": "1100",
    }


def test_the_table_holds_for_simple_regions() -> None:
    """The intersections by exact arithmetic, and the relation by exact arithmetic, on pairs of all kinds."""
    rng = Random(4)
    seen: set[Relation] = set()
    while len(seen) < 8 or rng.randrange(600):
        a, b = draw_pair(rng)
        if a.is_simple and b.is_simple:
            found = relate(a, b)
            seen.add(found)
            assert four_intersections(a, b) == WITNESSES[found], (a.rings, b.rings)


def test_the_table_does_not_hold_with_holes() -> None:
    holed = region("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))")
    assert relate(holed, SQUARE) is Relation.COVERED_BY
    assert four_intersections(holed, SQUARE)[:2] == WITNESSES[Relation.COVERED_BY][:2]
    assert relate(SQUARE, holed) is Relation.COVERS
    assert four_intersections(SQUARE, holed) != WITNESSES[Relation.COVERS]  # that of no relation: 1010


@pytest.mark.parametrize(
    "wkt",
    [
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((2 2, 3 2, 3 3, 2 2)))",
    ],
)
def test_holes_and_parts_are_refused(wkt: str) -> None:
    for pair in ((SQUARE, region(wkt)), (region(wkt), SQUARE)):
        with pytest.raises(RegionNotSimple) as refused:
            approximate_relation(*pair, DENSE)
        assert refused.value.code == "region_not_simple"
        assert "2 rings" in refused.value.sentence
        assert "exact" in refused.value.hint


# --- points ------------------------------------------------------------------------------------------


def points_of(sampled: Sampled) -> list[tuple[float, float]]:
    return list(zip(sampled.x.tolist(), sampled.y.tolist(), strict=True))


def test_density_is_of_half_the_universe() -> None:
    assert Density(2_000, (0.0, 0.0, 10.0, 10.0)).per_unit == 100
    assert Density(2_000, (-5.0, 1.0, 15.0, 31.0)).per_unit == 40


def test_corners_are_always_walked_and_points_come_in_addition() -> None:
    ring = SQUARE.rings[0]
    assert points_of(Sampled(SQUARE, CORNERS_ONLY)) == list(ring)
    assert Sampled(SQUARE, CORNERS_ONLY).halo.tolist() == [2.0] * 4
    quarters = Sampled(SQUARE, Density(15, UNIVERSE))  # 0.75 a unit: three on each edge
    assert quarters.count == 16
    assert points_of(quarters)[::4] == list(ring)
    assert set(points_of(quarters)) >= {(1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (4.0, 1.0), (0.0, 2.0)}
    assert quarters.halo.tolist() == [0.5] * 16


def test_corners_can_count_towards_the_density() -> None:
    assert Sampled(SQUARE, Density(15, UNIVERSE), vertices_count=True).count == 12
    assert points_of(Sampled(SQUARE, Density(3, UNIVERSE), vertices_count=True)) == list(SQUARE.rings[0])


def test_the_halo_of_a_corner_is_that_of_its_nearer_neighbour() -> None:
    long = from_rings([[(0, 0), (8, 0), (8, 1), (0, 1)]])
    assert Sampled(long, CORNERS_ONLY).halo.tolist() == [0.5] * 4
    halo = dict(zip(points_of(sampled := Sampled(long, Density(10, UNIVERSE))), sampled.halo.tolist(), strict=True))
    assert sampled.count == 4 + 9  # half a point for a unit
    assert halo[1.6, 0.0] == pytest.approx(0.8)
    assert halo[8.0, 0.0] == 0.5
    assert halo[0.0, 0.0] == 0.25  # two halves of a point were left for the last edge


@given(randoms)
def test_points_are_as_many_as_asked_and_on_the_boundary(rng: Random) -> None:
    drawn = star(rng, rng.randrange(3, 40), (5.0, 5.0), 4.0)
    density = Density(rng.choice((0, 7, 333.3, 5_000)), UNIVERSE)
    sampled = Sampled(drawn, density)
    outline = shapely.LinearRing(drawn.rings[0])
    assert sampled.length == pytest.approx(outline.length)
    assert abs(sampled.count - len(drawn.rings[0]) - sampled.length * density.per_unit) <= 1
    assert set(drawn.rings[0]) <= set(points_of(sampled))
    assert shapely.distance(outline, shapely.points(sampled.x, sampled.y)).max() < 1e-12
    # Halos reach half way to the next point, and no further.
    gaps = np.hypot(np.diff(sampled.x, append=sampled.x[0]), np.diff(sampled.y, append=sampled.y[0]))
    assert (sampled.halo * 2 <= np.minimum(gaps, np.roll(gaps, 1)) + 1e-9).all()


@pytest.mark.parametrize(
    ("points", "universe"),
    [
        (-1, UNIVERSE),
        (math.nan, UNIVERSE),
        (math.inf, UNIVERSE),
        (MAX_POINTS + 1, UNIVERSE),
        (10, (3.0, 3.0, 3.0, 3.0)),
        (10, (0.0, 0.0, math.inf, 1.0)),
    ],
)
def test_a_density_without_meaning_is_refused(points: float, universe: tuple[float, float, float, float]) -> None:
    with pytest.raises(DensityInvalid):
        Density(points, universe)


# --- relations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", EIGHT)
@pytest.mark.parametrize("halo", [True, False])
def test_all_eight_are_found_where_nothing_is_near(expected: str, halo: bool) -> None:
    other = region(EIGHT[expected])
    assert relate(SQUARE, other) == expected
    assert approximate_relation(SQUARE, other, DENSE, halo) == expected
    assert approximate_relation(other, SQUARE, DENSE, halo) == inverse(Relation(expected))


def test_touching_between_two_points_is_missed_without_a_halo() -> None:
    """A corner of the longer boundary on an edge of the shorter one: the walk sets foot on its two sides only."""
    pointed = region("POLYGON ((4 1.2345, 9 0, 9 9, 4 1.2345))")
    assert relate(SQUARE, pointed) is Relation.MEETS
    for density in (CORNERS_ONLY, DENSE):
        assert approximate_relation(SQUARE, pointed, density, halo=False) is Relation.DISJOINT
    assert approximate_relation(SQUARE, pointed, DENSE, halo=True) is Relation.MEETS


@pytest.mark.parametrize("gap", [0.004, 0.006])
def test_a_halo_takes_what_is_near_for_touching(gap: float) -> None:
    """Points are a hundredth apart, so all within half of that is met."""
    beside = from_rings([[(4 + gap, 0), (5, 0), (5, 4), (4 + gap, 4)]])
    within = from_rings([[(1, 1), (4 - gap, 1), (4 - gap, 3)]])
    assert relate(SQUARE, beside) is Relation.DISJOINT
    assert relate(SQUARE, within) is Relation.CONTAINS
    assert approximate_relation(SQUARE, beside, DENSE, halo=False) is Relation.DISJOINT
    assert approximate_relation(SQUARE, within, DENSE, halo=False) is Relation.CONTAINS
    near = gap < 0.005
    assert approximate_relation(SQUARE, beside, DENSE) is (Relation.MEETS if near else Relation.DISJOINT)
    assert approximate_relation(SQUARE, within, DENSE) is (Relation.COVERS if near else Relation.CONTAINS)


def test_a_halo_around_corners_only_swallows_the_region() -> None:
    """Half an edge reaches the other boundary from every corner: all of them meet, and that is `equals`."""
    around = region("POLYGON ((-1 -1, 5 -1, 5 5, -1 5, -1 -1))")
    assert relate(SQUARE, around) is Relation.INSIDE
    assert approximate_relation(SQUARE, around, CORNERS_ONLY, halo=True) is Relation.EQUALS
    assert approximate_relation(SQUARE, around, CORNERS_ONLY, halo=False) is Relation.INSIDE


def test_a_spike_between_two_points_is_not_seen() -> None:
    spike = region("POLYGON ((3.9 2.501, 9 2, 9 3, 3.9 2.501))")
    assert relate(SQUARE, spike) is Relation.OVERLAPS
    assert approximate_relation(spike, SQUARE, CORNERS_ONLY, halo=False) is Relation.OVERLAPS  # its tip is a corner
    through = region("POLYGON ((-1 2, 5 2, 5 2.001, -1 2.001, -1 2))")
    assert relate(SQUARE, through) is Relation.OVERLAPS
    assert approximate_relation(SQUARE, through, CORNERS_ONLY, halo=False) is Relation.DISJOINT
    assert approximate_relation(SQUARE, through, DENSE, halo=False) is Relation.OVERLAPS


def test_the_shorter_boundary_is_walked_and_the_answer_translated() -> None:
    rng = Random(9)
    for _ in range(100):
        a, b = KINDS["general"](rng)
        walk_a, walk_b = Sampled(a, DENSE), Sampled(b, DENSE)
        for halo in (True, False):
            found = approximate_relation(a, b, DENSE, halo)
            assert relate_sampled(walk_a, walk_b, halo) is found
            assert relate_sampled(walk_b, walk_a, halo) is inverse(found)


def test_long_walks_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(10)
    pairs = [KINDS["general"](rng) for _ in range(60)]
    whole = [approximate_relation(a, b, DENSE) for a, b in pairs]
    monkeypatch.setattr("matcher.approximate._MOST_CELLS", 64)
    assert [approximate_relation(a, b, DENSE) for a, b in pairs] == whole


def errors(pairs: list[tuple[PlanarRegion, PlanarRegion]], density: Density, halo: bool) -> float:
    wrong = Counter(approximate_relation(a, b, density, halo) != relate(a, b) for a, b in pairs)
    return wrong[True] / len(pairs)


def test_more_points_make_fewer_errors_and_halos_err_most_in_general_position() -> None:
    rng = Random(5)
    pairs = [
        (star(rng, 12, (5.0, 5.0), 3.0), star(rng, 9, (rng.uniform(1, 9), rng.uniform(1, 9)), 2.0)) for _ in range(400)
    ]
    rates = {
        (points, halo): errors(pairs, Density(points, UNIVERSE), halo)
        for points in (0, 100, 2_000)
        for halo in (True, False)
    }
    for halo in (True, False):
        assert rates[0, halo] > rates[100, halo] > rates[2_000, halo] or rates[100, halo] == rates[2_000, halo] == 0
    assert all(rates[points, True] >= rates[points, False] for points in (0, 100, 2_000))
    assert rates[2_000, True] < 0.01
    assert rates[2_000, False] < 0.005


def test_where_regions_touch_a_halo_is_needed() -> None:
    rng = Random(6)
    pairs: list[tuple[PlanarRegion, PlanarRegion]] = []
    while len(pairs) < 600:
        a, b = KINDS["lattice"](rng)
        if a.is_simple and b.is_simple:
            pairs.append((a, b))
    density = Density(2_000, (-4.0, -4.0, 24.0, 24.0))
    assert errors(pairs, density, halo=True) == 0
    assert errors(pairs, density, halo=False) > 0
