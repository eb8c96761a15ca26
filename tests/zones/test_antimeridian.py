import math

import pytest
import shapely
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.zones.drawing import box, polygon
from tests.zones.reference import covers_reference
from tests.zones.strategies import lats, quantised, stars
from zones.antimeridian import lon_hull, normalise_lon, plain_boxes, ring_of_box
from zones.covers import prepare
from zones.errors import ShapeInvalid
from zones.shapes import MultiPolygon, Polygon, Rectangle
from zones.validation import check_shape


@pytest.mark.parametrize(
    ("lon", "normal"),
    [(0, 0), (180, 180), (-180, -180), (181, -179), (-181, 179), (360, 0), (540, -180), (190.1, 190.1 - 360)],
)
def test_longitudes_come_to_one_turn(lon, normal):
    assert normalise_lon(lon) == normal


def bbox(west: float, east: float) -> Rectangle:
    return Rectangle((float(west), 0.0, float(east), 1.0))


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (bbox(170, 190), bbox(170, -170)),
        (bbox(170, -170), bbox(170, -170)),
        (bbox(-190, -170), bbox(170, -170)),
        (bbox(170, 180), bbox(170, 180)),
        (bbox(170, -180), bbox(170, 180)),
        (bbox(180, 190), bbox(-180, -170)),
        (bbox(180, -170), bbox(-180, -170)),
        (bbox(-180, -170), bbox(-180, -170)),
        (bbox(-190, -180), bbox(170, 180)),
        (bbox(185, 190), bbox(-175, -170)),
        (bbox(0, 360), bbox(-180, 180)),
        (bbox(-180, 180), bbox(-180, 180)),
        (bbox(-360, -350), bbox(0, 10)),
        (bbox(10, 9), bbox(10, 9)),
    ],
)
def test_a_rectangle_has_one_form_however_it_is_written(written, stored):
    assert check_shape(written) == stored
    assert check_shape(stored) == stored


def test_a_polygon_across_is_cut_in_two():
    shape = check_shape(polygon(box(170, 0, 190, 2)))
    assert isinstance(shape, MultiPolygon)
    (west,), (east,) = shape.coordinates
    assert shapely.LinearRing(west).is_ccw
    assert shapely.LinearRing(east).is_ccw
    assert set(west) == set(box(170, 0, 180, 2))
    assert set(east) == set(box(-180, 0, -170, 2))


def test_a_polygon_beyond_the_line_is_only_moved():
    assert check_shape(polygon(box(180, 0, 190, 2))) == polygon(box(-180, 0, -170, 2))
    assert check_shape(polygon(box(-200, 0, -190, 2))) == polygon(box(160, 0, 170, 2))


def test_a_polygon_that_ends_at_the_line_is_left_alone():
    assert check_shape(polygon(box(170, 0, 180, 2))) == polygon(box(170, 0, 180, 2))


def test_a_zigzag_over_the_line_gives_a_piece_for_each_tooth():
    teeth = ((179.0, 0.0), (181.0, 1.0), (179.0, 2.0), (181.0, 3.0), (179.0, 4.0), (178.0, 2.0), (179.0, 0.0))
    shape = check_shape(Polygon((teeth,)))
    assert isinstance(shape, MultiPolygon)
    assert len(shape.coordinates) == 3


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(stars(west=170, east=190), st.floats(-20, 20).map(quantised), lats())
def test_cutting_changes_no_answer(star, offset, lat):
    """A polygon far from the line and the same one across it cover the same points."""
    assume(any(lon > 180 for lon, _ in star))
    drawn = Polygon((star,))
    moved = Polygon((tuple((lon - 180, lat) for lon, lat in star),))
    try:
        across, plain = check_shape(drawn), check_shape(moved)
    except ShapeInvalid:
        assume(False)
    edges = shapely.LineString(moved.coordinates[0])
    for spot in [(offset, lat), *((lon - 180, at) for lon, at in star), (0.0, star[0][1])]:
        lon, at = spot
        # Next to a cut edge its new corner is rounded, by a hundredth of a nanometre.
        if edges.distance(shapely.Point(lon, at)) < 1e-12:
            continue
        there = (normalise_lon(lon + 180), at)
        assert prepare(across).covers(there) is prepare(plain).covers(spot)
        assert covers_reference(across, there) is covers_reference(plain, spot)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(stars(west=170, east=190))
def test_cutting_only_adds_corners_on_the_line(star):
    try:
        shape = check_shape(Polygon((star,)))
    except ShapeInvalid:
        assume(False)
    parts = shape.coordinates if isinstance(shape, MultiPolygon) else (shape.coordinates,)
    corners = {corner for rings in parts for ring in rings for corner in ring}
    given_corners = {(lon - 360 if lon > 180 else lon, lat) for lon, lat in star}
    assert {corner for corner in corners if abs(corner[0]) != 180} == {
        corner for corner in given_corners if abs(corner[0]) != 180
    }
    area = sum(shapely.Polygon(rings[0]).area for rings in parts)
    assert math.isclose(area, shapely.Polygon(star).area, rel_tol=1e-9)


def test_the_shortest_stretch_of_longitude():
    assert lon_hull([(10, 20)]) == (10, 20)
    assert lon_hull([(10, 20), (-30, 15)]) == (-30, 20)
    assert lon_hull([(170, 180), (-180, -170)]) == (170, -170)
    assert lon_hull([(100, 110), (-100, -90), (170, 175)]) == (100, -90)
    assert lon_hull([(-180, 180)]) == (-180, 180)


def test_boxes_are_drawn_in_steps_that_are_not_ambiguous():
    for plain in plain_boxes((10.0, 0.0, 9.0, 1.0)):
        assert check_shape(Polygon((ring_of_box(plain),))) == Polygon((ring_of_box(plain),))
    assert plain_boxes((170.0, 0.0, -170.0, 1.0)) == ((170.0, 0.0, 180.0, 1.0), (-180.0, 0.0, -170.0, 1.0))
