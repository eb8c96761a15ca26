"""Many regions at once are what they are one by one."""

import math
from random import Random

import pytest
import shapely

from matcher.many_rings import RegionFault, planar_regions
from matcher.planar import from_parts, orientation
from matcher.region_matcher import _edge_regions
from tests.matcher.exact_pairs import draw_pair, geometry_of
from zones.errors import FencepostError

SQUARE = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0))
HOLE = ((1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.0, 2.0), (1.0, 1.0))


def drawn(rng: Random):
    """Parts as GeoJSON has them, rings running either way, with some points twice."""
    geometry = geometry_of(rng.choice(draw_pair(rng)[:2]))
    parts = []
    for polygon in shapely.get_parts(geometry):
        rings = []
        for ring in (polygon.exterior, *polygon.interiors):
            points = [tuple(point) for point in shapely.get_coordinates(ring).tolist()]
            if rng.randrange(2):
                points.reverse()
            for _ in range(rng.choice((0, 0, 1, 3))):
                place = rng.randrange(len(points))
                points.insert(place, points[place])
            rings.append(tuple(points))
        parts.append(tuple(rings))
    return tuple(parts)


def scaled(parts, factor: float):
    return tuple(tuple(tuple((x * factor, y * factor) for x, y in ring) for ring in part) for part in parts)


@pytest.mark.parametrize("factor", [1.0, 2.0**-500, 2.0**300, 2.0**990])
def test_regions_are_those_of_the_plain_code(factor: float):
    rng = Random(7)
    parts = [scaled(drawn(rng), factor) for _ in range(400)]
    # GEOS takes some of the hugest for invalid.
    valid = [each for each in parts if shapely.is_valid(shapely.MultiPolygon([(part[0], part[1:]) for part in each]))]
    assert len(valid) > 200
    assert planar_regions(valid) == [from_parts(each) for each in valid]


def test_a_ring_that_almost_turns_back_is_decided_exactly():
    """Slivers whose turn at the least point is lost in rounding."""
    rng = Random(9)
    parts = []
    while len(parts) < 200:
        x, y = rng.random(), rng.random()
        tip = (x / 3, y / 3)
        near = (math.nextafter(x / 2 + tip[0] / 2, rng.choice((0, 1))), y / 2 + tip[1] / 2)
        ring = (tip, (x, y), near)
        if orientation(*ring):
            parts.append((((*ring, tip),),))
    assert [each.rings for each in planar_regions(parts)] == [from_parts(each).rings for each in parts]


def test_none_are_none():
    assert planar_regions([]) == []


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ((), "shape_empty"),
        (((),), "shape_empty"),
        (((SQUARE,), ()), "shape_empty"),
        (((SQUARE, ()),), "ring_too_short"),
        (((SQUARE[:2] + SQUARE[:1],),), "ring_too_short"),
        (((SQUARE[:4],),), "ring_unclosed"),
        (((SQUARE, HOLE[:4]),), "ring_unclosed"),
        (((((0.0, 0.0), (math.nan, 0.0), (4.0, 4.0), (0.0, 0.0)),),), "coordinate_invalid"),
        (((((0.0, 0.0), (4.0, 4.0), (4.0, 0.0), (0.0, 4.0), (0.0, 0.0)),),), "ring_crosses_itself"),
        (((((0.0, 0.0), (4.0, 0.0), (8.0, 0.0), (0.0, 0.0)),),), "zero_area"),
        ((((SQUARE[0],) * 4,),), "zero_area"),
        (((HOLE, SQUARE),), "hole_outside"),
        (((SQUARE,), (HOLE,)), "parts_overlap"),
    ],
)
def test_what_is_no_region_is_told_with_its_place(parts, code: str):
    for before in ([], [((SQUARE, HOLE),)], [((SQUARE,),)] * 9):
        with pytest.raises(RegionFault) as caught:
            planar_regions([*before, parts, ((SQUARE,),)])
        assert (caught.value.index, caught.value.fault.code) == (len(before), code)
        assert isinstance(caught.value.fault, FencepostError)


def test_edges_of_many_regions_are_those_of_each():
    from matcher.engines.regions import EdgeRegion, EdgeRegions

    rng = Random(11)
    for count in (0, 1, 50):
        regions = [rng.choice(draw_pair(rng)[:2]) for _ in range(count)]
        made, expected = _edge_regions(regions), EdgeRegions.of([EdgeRegion.of(region) for region in regions])
        for name in ("edges", "edge_starts", "rings", "ring_starts", "boxes"):
            ours, theirs = getattr(made, name), getattr(expected, name)
            assert (ours.dtype, ours.tolist()) == (theirs.dtype, theirs.tolist()), name
