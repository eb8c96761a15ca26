"""What is fast agrees with what is plain, everywhere on the globe."""

import random

import shapely
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.zones.reference import corners, covers_reference
from tests.zones.strategies import circles, drawn_shapes, points, quantised, shapes
from zones.covers import outline, prepare
from zones.geodesy import destination, distance_m
from zones.shapes import Circle, Polygon, Rectangle
from zones.validation import check_shape

thorough = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def places_around(shape, seed):
    """Corners, points on and next to edges, points in the box, its other names, and some anywhere."""
    rng = random.Random(seed)
    spots = corners(shape)
    yield from spots
    for _ in range(12):
        (lon_a, lat_a), (lon_b, lat_b) = rng.choice(spots), rng.choice(spots)
        share = rng.choice([0.5, rng.random()])
        lon, lat = quantised(lon_a + (lon_b - lon_a) * share), quantised(lat_a + (lat_b - lat_a) * share)
        yield lon, lat
        yield max(-180.0, min(180.0, lon + rng.choice([-(2**-40), 2**-40, 2**-7]))), lat
        yield round(lon), round(lat)
    for lon in (180.0, -180.0):
        yield lon, rng.choice(spots)[1]
    for lat in (90.0, -90.0):
        yield rng.uniform(-180, 180), lat
    yield rng.uniform(-180, 180), rng.uniform(-90, 90)


@thorough
@given(drawn_shapes(), st.integers(0, 2**32))
def test_drawn_shapes_agree_with_exact_fractions(shape, seed):
    area = prepare(shape)
    for point in places_around(shape, seed):
        assert area.covers(point) is covers_reference(shape, point), point


@thorough
@given(circles(), st.floats(0, 360), st.floats(0.99, 1.01), points())
def test_circles_agree_with_geodesics(circle, bearing, share, anywhere):
    area = prepare(circle)
    for point in (destination(circle.center, bearing, circle.radius_m * share), anywhere):
        assume(abs(distance_m(circle.center, point) - circle.radius_m) > 1e-8)
        assert area.covers(point) is covers_reference(circle, point)


@thorough
@given(circles(), st.floats(0, 360))
def test_the_rim_is_within_a_millionth_of_the_radius(circle, bearing):
    slack = max(1e-6 * circle.radius_m, 2e-8)  # coordinates themselves are good for some nanometres
    assert prepare(circle).covers(destination(circle.center, bearing, max(circle.radius_m - slack, 0)))
    assert not prepare(circle).covers(destination(circle.center, bearing, circle.radius_m + slack))


@thorough
@given(shapes(), st.integers(0, 2**32), st.floats(0, 360))
def test_what_is_covered_is_in_bounds_boxes_and_outline(shape, seed, bearing):
    area = prepare(shape)
    drawn = outline(shape)
    west, south, east, north = area.bounds
    if isinstance(shape, Circle):
        places = [destination(shape.center, bearing + turn, shape.radius_m * (1 - 1e-12)) for turn in range(0, 360, 15)]
    else:
        places = list(places_around(shape, seed))
    for lon, lat in places:
        if not area.covers((lon, lat)):
            continue
        assert south <= lat <= north
        assert any(w <= lon <= e and s <= lat <= n for w, s, e, n in area.boxes), (lon, lat)
        if abs(lat) != 90 and abs(lon) != 180:
            assert west <= lon <= east if west <= east else lon >= west or lon <= east
            assert shapely.intersects_xy(drawn, lon, lat)


@thorough
@given(shapes())
def test_outlines_are_valid_and_on_the_globe(shape):
    drawn = outline(shape)
    assert shapely.is_valid(drawn), shapely.is_valid_reason(drawn)
    west, south, east, north = drawn.bounds
    assert -180 <= west < east <= 180
    assert -90 <= south < north <= 90


@thorough
@given(circles())
def test_a_circles_box_is_tight_away_from_the_poles(circle):
    west, south, east, north = prepare(circle).bounds
    assume(circle.radius_m > 1 and south > -89 and north < 89 and (west, east) != (-180, 180))
    lon, lat = circle.center
    assert distance_m((lon, lat), (lon, north)) <= circle.radius_m * 1.004
    assert distance_m((lon, lat), (lon, south)) <= circle.radius_m * 1.004


def test_a_box_around_pieces_on_both_sides_crosses_the_antimeridian():
    shape = check_shape(Polygon((((170.0, 0.0), (190.0, 0.0), (190.0, 5.0), (170.0, 5.0), (170.0, 0.0)),)))
    assert prepare(shape).bounds == (170.0, 0.0, -170.0, 5.0)
    assert prepare(shape).boxes == ((170.0, 0.0, 180.0, 5.0), (-180.0, 0.0, -170.0, 5.0))


def test_a_box_that_ends_at_the_antimeridian_is_also_found_from_the_other_side():
    assert prepare(Rectangle((170.0, 0.0, 180.0, 5.0))).boxes == (
        (170.0, 0.0, 180.0, 5.0),
        (-180.0, 0.0, -180.0, 5.0),
    )
