"""The eight relations: drawn cases, and agreement with rational arithmetic on pairs that are hard to tell apart."""

import math
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.planar import PlanarRegion, from_geometry, from_parts, from_rings, from_shape, orientation
from matcher.relations import Place, inverse, locate, relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import KINDS, draw_pair, geometry_of, moved, reference_relation, relation_of_matrix, star
from zones.errors import CoordinateInvalid, GeoJsonInvalid, RingHasSpike, RingTooShort, ShapeEmpty
from zones.geodesy import distance_m
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle

randoms = st.integers(0, 2**64).map(Random)  # a drawn Random would run out of choices: regions are drawn until valid


def region(wkt: str) -> PlanarRegion:
    return from_geometry(shapely.from_wkt(wkt))


SQUARE = region("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))")
RING = region("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))")
BUTTERFLY = region("MULTIPOLYGON (((0 0, 2 2, 0 4, 0 0)), ((4 0, 4 4, 2 2, 4 0)))")


# --- relations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (SQUARE, "POLYGON ((5 0, 6 0, 6 1, 5 0))", "disjoint"),
        (SQUARE, "POLYGON ((4 4, 6 4, 6 6, 4 4))", "meets"),  # at a corner
        (SQUARE, "POLYGON ((4 2, 6 1, 6 3, 4 2))", "meets"),  # a corner on an edge
        (SQUARE, "POLYGON ((4 1, 6 1, 6 3, 4 3, 4 1))", "meets"),  # along part of an edge
        (SQUARE, "POLYGON ((4 -1, 6 -1, 6 9, 4 9, 4 -1))", "meets"),  # along a longer one
        (SQUARE, "POLYGON ((3 3, 6 3, 6 6, 3 6, 3 3))", "overlaps"),
        (SQUARE, "POLYGON ((-1 1, 5 1, 5 3, -1 3, -1 1))", "overlaps"),
        (SQUARE, "POLYGON ((2 -1, 5 2, 2 5, -1 2, 2 -1))", "overlaps"),
        (SQUARE, "POLYGON ((2 -2, 6 2, 2 6, -2 2, 2 -2))", "covered-by"),  # its corners on all four edges
        (SQUARE, "POLYGON ((0 0, 4 4, 0 8, 0 0))", "overlaps"),  # through corners: no two edges cross properly
        (SQUARE, "POLYGON ((-1 -1, 5 5, -1 5, -1 -1))", "overlaps"),
        (SQUARE, "POLYGON ((0 0, 2 0, 4 0, 4 4, 0 4, 0 0))", "equals"),
        (SQUARE, "POLYGON ((4 4, 0 4, 0 0, 4 0, 4 4))", "equals"),
        (SQUARE, "POLYGON ((-1 -1, 5 -1, 5 5, -1 5, -1 -1))", "inside"),
        (SQUARE, "POLYGON ((1 1, 2 1, 2 2, 1 1))", "contains"),
        (SQUARE, "POLYGON ((0 0, 2 1, 1 2, 0 0))", "covers"),  # at a corner
        (SQUARE, "POLYGON ((0 0, 4 0, 4 4, 0 0))", "covers"),  # along two edges
        (SQUARE, "POLYGON ((0 0, 4 0, 8 8, 0 4, 0 0))", "covered-by"),
        (SQUARE, RING, "covers"),
        (RING, "POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))", "meets"),  # what was cut out
        (RING, "POLYGON ((1.5 1.5, 2 1.5, 2 2, 1.5 1.5))", "disjoint"),  # in the hole
        (RING, "POLYGON ((1 1, 2 1.5, 1.5 2, 1 1))", "meets"),  # in the hole, at its corner
        (RING, "POLYGON ((0.5 0.5, 3.5 0.5, 3.5 3.5, 0.5 3.5, 0.5 0.5))", "overlaps"),  # boundaries don't touch
        (RING, "POLYGON ((-1 -1, 5 -1, 5 5, -1 5, -1 -1), (2 2, 2.5 2, 2 2.5, 2 2))", "inside"),
        (RING, "POLYGON ((-1 -1, 5 -1, 5 5, -1 5, -1 -1), (1 1, 3 1, 3 3, 1 3, 1 1))", "covered-by"),
        (BUTTERFLY, "POLYGON ((0 0, 4 0, 2 2, 0 0))", "meets"),  # between the wings, at the point they share
        (BUTTERFLY, "POLYGON ((2 2, 3 2, 3 2.5, 2 2))", "covers"),  # in a wing, from that point
        (BUTTERFLY, "POLYGON ((2 2, 2.5 3, 1.5 3, 2 2))", "meets"),
        (BUTTERFLY, "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "covered-by"),
        (BUTTERFLY, "MULTIPOLYGON (((0 0, 4 0, 2 2, 0 0)), ((0 4, 2 2, 4 4, 0 4)))", "meets"),  # the other wings
    ],
)
def test_a_drawn_pair(a: PlanarRegion, b: PlanarRegion | str, expected: str) -> None:
    b = region(b) if isinstance(b, str) else b
    assert relate(a, b) == expected
    assert relate(b, a) == inverse(Relation(expected))
    assert reference_relation(a, b) == expected


def test_one_float_more_or_less_decides() -> None:
    """0.1 + 0.2 lies just beyond 0.3, and a third of 1 just beside the line through it."""
    left = from_rings([[(0, 0), (0.3, 0), (0.3, 1), (0, 1)]])
    assert relate(left, from_rings([[(0.3, 0), (1, 0), (1, 1), (0.3, 1)]])) is Relation.MEETS
    assert relate(left, from_rings([[(0.1 + 0.2, 0), (1, 0), (1, 1), (0.1 + 0.2, 1)]])) is Relation.DISJOINT
    below = from_rings([[(0, 0), (3, 0), (3, 1)]])  # the line y = x / 3
    assert relate(below, from_rings([[(1, 1 / 3), (1, 2), (0, 2)]])) is Relation.OVERLAPS  # 1/3 rounds down
    assert relate(below, from_rings([[(1.5, 0.5), (1, 2), (0, 2)]])) is Relation.MEETS


def test_relations_are_inverse_to_each_other() -> None:
    assert {relation: inverse(relation) for relation in Relation if inverse(relation) is not relation} == {
        Relation.INSIDE: Relation.CONTAINS,
        Relation.CONTAINS: Relation.INSIDE,
        Relation.COVERS: Relation.COVERED_BY,
        Relation.COVERED_BY: Relation.COVERS,
    }


def check_pair(a: PlanarRegion, b: PlanarRegion) -> Relation:
    found = relate(a, b)
    assert found == reference_relation(a, b), (a.rings, b.rings)
    assert relate(b, a) == inverse(found), (a.rings, b.rings)
    assert relate(a, a) == relate(b, b) == Relation.EQUALS, (a.rings, b.rings)
    return found


@given(randoms)
@settings(max_examples=400)
def test_any_pair_is_related_as_rational_arithmetic_says(rng: Random) -> None:
    check_pair(*draw_pair(rng))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_pair_gives_many_relations(kind: str) -> None:
    """The generators are worth nothing if they draw easy pairs only."""
    rng = Random(20261118)
    seen = Counter(check_pair(*KINDS[kind](rng)) for _ in range(300))
    assert len(seen) >= (4 if kind == "general" else 5), seen
    if kind != "general":
        assert seen[Relation.MEETS] + seen[Relation.COVERS] + seen[Relation.COVERED_BY] + seen[Relation.EQUALS] > 50


def scaled(region: PlanarRegion, k: float) -> PlanarRegion:
    return moved(region, lambda x, y: (x * k, y * k))


def test_size_makes_no_difference() -> None:
    """Scaling by a power of two is exact; far out, products overflow, and far in, they underflow."""
    rng = Random(7)
    for _ in range(200):
        a, b = KINDS[rng.choice(("lattice", "related", "nudged"))](rng)
        k = 2.0 ** rng.choice((-1020, -700, -530, 500, 900, 1015))
        assert relate(scaled(a, k), scaled(b, k)) == relate(a, b)


def test_large_regions_are_swept() -> None:
    """Two of 1,000 corners, none of which is decided by the first edges: a hundred times less than all pairs take."""
    rng = Random(3)
    outer = star(rng, 1000)
    inner = scaled(outer, 0.25)
    started = time.process_time()
    for _ in range(5):
        assert relate(inner, outer) in (Relation.INSIDE, Relation.OVERLAPS)
        assert relate(outer, outer) is Relation.EQUALS
        assert relate(outer, moved(outer, lambda x, y: (x + 10, y))) is Relation.DISJOINT
    assert time.process_time() - started < 5


def compare_with_shapely(rng: Random, count: int) -> Counter[str]:
    """Relate pairs of all kinds; what shapely says differently is settled by rational arithmetic."""
    figures: Counter[str] = Counter()
    pairs = [draw_pair(rng) for _ in range(count)]
    drawn = [[geometry_of(region) for region in pair] for pair in pairs]
    matrices = shapely.relate([a for a, _ in drawn], [b for _, b in drawn])
    for (a, b), matrix in zip(pairs, matrices, strict=True):
        found = relate(a, b)
        figures[str(found)] += 1
        assert relate(b, a) == inverse(found), (a.rings, b.rings)
        if relation_of_matrix(matrix) != found:
            figures["shapely_differs"] += 1
            assert reference_relation(a, b) == found, (a.rings, b.rings)
        elif rng.randrange(20) == 0:
            figures["reference_too"] += 1
            assert reference_relation(a, b) == found, (a.rings, b.rings)
    return figures


def test_shapely_differs_only_where_it_is_wrong() -> None:
    figures = compare_with_shapely(Random(11), 2_000)
    assert figures["shapely_differs"] < 40, figures
    assert set(Relation) <= set(figures)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_relations_at_full_size(full_size: bool, record_result: Callable[[str, dict[str, Any]], None]) -> None:
    """Two million pairs, each time other ones."""
    seed = time.time_ns()
    rng, figures = Random(seed), Counter[str]()
    for _ in range(200 if full_size else 1):
        figures += compare_with_shapely(rng, 10_000)
    record_result("relations", {"seed": seed, "pairs": sum(figures[relation] for relation in Relation), **figures})


# --- points and orientation --------------------------------------------------------------------------


def test_points_of_a_region_with_a_hole_and_a_part() -> None:
    drawn = from_parts([[[(0, 0), (6, 0), (6, 6), (0, 6)], [(1, 1), (4, 1), (1, 4)]], [[(6, 6), (8, 6), (8, 8)]]])
    signs = {Place.IN: "#", Place.ON: "o", Place.OUT: "."}
    picture = ["".join(signs[locate((x, y), drawn)] for x in range(-1, 10)) for y in range(9, -2, -1)]
    assert picture == [
        "...........",
        ".........o.",
        "........oo.",
        ".ooooooooo.",
        ".o#####o...",
        ".oo####o...",
        ".ooo###o...",
        ".oo.o##o...",
        ".ooooo#o...",
        ".ooooooo...",
        "...........",
    ]


@given(randoms)
def test_a_point_is_where_rational_arithmetic_says(rng: Random) -> None:
    """A triangle so small that no corner of the region but the point itself is near has one relation that fits."""
    a, b = draw_pair(rng)
    for x, y in rng.choice(b.rings):
        # The corners of a region are multiples of a float's last place, so a triangle of that size holds no other.
        small = [(x, y), (math.nextafter(x, math.inf), y), (x, math.nextafter(y, math.inf))]
        fits = {
            Place.IN: {Relation.INSIDE, Relation.COVERED_BY, Relation.OVERLAPS},
            Place.ON: {Relation.MEETS, Relation.COVERED_BY, Relation.OVERLAPS, Relation.COVERS, Relation.EQUALS},
            Place.OUT: {Relation.DISJOINT, Relation.MEETS, Relation.OVERLAPS},
        }
        assert reference_relation(from_rings([small]), a) in fits[locate((x, y), a)]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6))
def test_the_orientation_of_any_doubles_is_exact(values: list[float]) -> None:
    (px, py, qx, qy, rx, ry) = map(Fraction, values)
    exact = (px - rx) * (qy - ry) - (py - ry) * (qx - rx)
    p, q, r = zip(values[::2], values[1::2], strict=True)
    assert orientation(p, q, r) == (exact > 0) - (exact < 0)


@given(randoms)
def test_the_orientation_near_a_line_is_exact(rng: Random) -> None:
    x, y = rng.uniform(0, 1), rng.uniform(0, 1)
    for _ in range(20):
        t = rng.uniform(0, 3)
        p, q, r = (0.0, 0.0), (x, y), (t * x, t * y)
        exact = Fraction(q[0]) * Fraction(r[1]) - Fraction(q[1]) * Fraction(r[0])
        assert orientation(p, q, r) == (exact > 0) - (exact < 0)
        assert orientation(q, p, r) == -orientation(p, q, r) == orientation(r, q, p)


def test_products_that_underflow_are_not_trusted() -> None:
    """Both products are subnormal and each was rounded by more than the relative bound says; their order is wrong."""
    p = float.fromhex("0x1.27d5d374b3dc8p-512"), float.fromhex("0x1.9555994bfceb8p-513")
    q = float.fromhex("0x1.3bd93531bf4eap-513"), float.fromhex("0x1.b0c1536576c02p-514")
    r = float.fromhex("0x1.f1cc8516e1636p-566"), 0.0
    (px, py), (qx, qy), (rx, ry) = (tuple(map(Fraction, point)) for point in (p, q, r))
    exact = (px - rx) * (qy - ry) - (py - ry) * (qx - rx)
    assert orientation(p, q, r) == (exact > 0) - (exact < 0)


# --- regions -----------------------------------------------------------------------------------------


def test_the_interior_is_on_the_left_however_rings_are_drawn() -> None:
    outer, hole = [(0, 0), (4, 0), (4, 4), (0, 4), (0, 0)], [(1, 1), (2, 1), (2, 2), (1, 1)]
    for drawn in ([outer, hole], [outer[::-1], hole], [outer, hole[::-1]], [outer[:-1], hole[:-1]]):
        made = from_rings(drawn)
        assert [shapely.is_ccw(shapely.LinearRing(ring)) for ring in made.rings] == [True, False]
        assert relate(made, from_rings([outer, hole])) is Relation.EQUALS
        assert not made.is_simple
        assert made.vertex_count == len(made.edges) == 7


def test_edges_without_length_go_and_everything_else_stays() -> None:
    made = from_rings(
        [[(0.1, 0.1), (0.1, 0.1), (0.7, 0.2), (0.4, 0.15), (0.3, 0.9), (0.3, 0.9), (0.1, 0.1), (0.1, 0.1)]]
    )
    assert made.rings == (((0.1, 0.1), (0.7, 0.2), (0.4, 0.15), (0.3, 0.9)),)
    assert made.box == (0.1, 0.1, 0.7, 0.9)
    assert made.is_simple


def test_a_thin_ring_is_wound_rightly_where_its_area_rounds_to_nothing() -> None:
    up = 0.5 + 2.0**-53
    thin = [(0.0, 0.0), (1e10, 1e10), (0.5, up)]
    for ring in (thin, thin[::-1]):
        (made,) = from_rings([ring]).rings
        assert orientation(*made) == 1


def test_every_shape_becomes_a_region() -> None:
    ring = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0))
    assert relate(from_shape(Polygon((ring,))), SQUARE) is Relation.EQUALS
    assert relate(from_shape(Rectangle((0.0, 0.0, 4.0, 4.0))), SQUARE) is Relation.EQUALS
    wings = tuple(((*ring, ring[0]),) for ring in BUTTERFLY.rings)
    assert relate(from_shape(MultiPolygon(wings)), BUTTERFLY) is Relation.EQUALS
    across = from_shape(Rectangle((170.0, 0.0, -170.0, 1.0)))
    assert len(across.rings) == 2
    assert across.box == (-180.0, 0.0, 180.0, 1.0)


@pytest.mark.parametrize("center", [(0.0, 0.0), (116.37, 39.91), (-70.0, -55.0), (179.9999, 10.0)])
@pytest.mark.parametrize("radius_m", [0.5, 250.0, 100_000.0])
def test_a_circle_is_an_inscribed_polygon(center: tuple[float, float], radius_m: float) -> None:
    made = from_shape(Circle(center, radius_m))
    assert locate(center, made) is Place.IN
    assert made == from_shape(Circle(center, radius_m))
    for ring in made.rings:
        for (x, y), (next_x, next_y) in zip(ring, ring[1:] + ring[:1], strict=True):
            if not abs(x) == abs(next_x) == 180:  # where it is cut at the antimeridian
                for t in (0.0, 0.5):
                    metres = distance_m(center, (x + t * (next_x - x), y + t * (next_y - y)))
                    assert radius_m * 0.9987 - 1e-7 < metres < radius_m + 1e-7


@pytest.mark.parametrize("pole", [90, -90])
def test_a_circle_around_a_pole_goes_up_to_it(pole: int) -> None:
    made = from_shape(Circle((20.0, pole * 0.999), 50_000.0))
    assert {made.box[0], made.box[2]} == {-180.0, 180.0}
    assert pole in (made.box[1], made.box[3])
    assert locate((20.0, pole * 0.9999), made) is Place.IN
    assert locate((-160.0, pole * 0.9999), made) is Place.IN
    assert locate((20.0, pole * 0.99), made) is Place.OUT
    assert geometry_of(made).is_valid


def test_what_is_no_region_is_refused() -> None:
    with pytest.raises(ShapeEmpty):
        from_geometry(shapely.from_wkt("POLYGON EMPTY"))
    with pytest.raises(GeoJsonInvalid):
        from_geometry(shapely.Point(1, 2))
    with pytest.raises(RingTooShort):
        from_rings([[(0, 0), (1, 1), (0, 0)]])
    with pytest.raises(RingHasSpike):
        from_rings([[(0, 0), (1, 1), (2, 2)]])
    for bad in (math.nan, math.inf):
        with pytest.raises(CoordinateInvalid):
            from_rings([[(0, 0), (1, 0), (1, bad)]])
