"""The distance to a zone's boundary against geodesics to a great many places on it."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.zones import strategies
from tests.zones.reference import parts
from zones.antimeridian import ring_of_box
from zones.boundaries import boundary_of
from zones.covers import prepare
from zones.geodesy import destination, distance_m, reduced_lat
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape
from zones.validation import check_shape

SAMPLES = 400  # of each edge; the nearest are looked at more closely
MICROMETRE = 1e-6


def rings(shape: Shape) -> list[Ring]:
    if isinstance(shape, Rectangle):
        west, south, east, north = shape.bbox
        return [ring_of_box((west, south, east if west <= east else east + 360, north))]
    return [ring for part in parts(shape) for ring in part]


def is_boundary(shape: Shape, edge: tuple[Point, Point]) -> bool:
    """Whether an edge has the zone on one side only. Only along the antimeridian and at a pole it can be otherwise."""
    (lon_a, lat_a), (lon_b, lat_b) = edge
    if abs(lat_a) == 90 and lat_a == lat_b:
        return False
    if abs(lon_a) != 180 or lon_a != lon_b:
        return True
    covers, lat = prepare(shape).covers, (lat_a + lat_b) / 2
    return not (covers((180 - 1e-9, lat)) and covers((-180 + 1e-9, lat)))


def true_distance(shape: Shape, point: Point) -> float:
    if isinstance(shape, Circle):
        rim = (destination(shape.center, bearing, shape.radius_m) for bearing in range(360))
        return min(abs(distance_m(shape.center, point) - shape.radius_m), *(distance_m(each, point) for each in rim))
    shares, beta = np.linspace(0, 1, SAMPLES), reduced_lat(point[1])
    looked_at = []
    for edge in (edge for ring in rings(shape) for edge in pairwise(ring) if is_boundary(shape, edge)):
        (lon_a, lat_a), (lon_b, lat_b) = edge
        lat = np.array([reduced_lat(each) for each in lat_a + shares * (lat_b - lat_a)])
        lon = np.radians(lon_a + shares * (lon_b - lon_a) - point[0])
        apart = np.sqrt(np.sin((lat - beta) / 2) ** 2 + np.cos(lat) * math.cos(beta) * np.sin(lon / 2) ** 2)
        step = math.radians(abs(lon_b - lon_a) + abs(lat_b - lat_a)) / SAMPLES
        looked_at.append((float(apart.min()), step, int(apart.argmin()), edge))
    nearest = min((apart for apart, *_ in looked_at), default=math.inf)
    best = math.inf
    for apart, step, at, edge in looked_at:
        if apart - step <= nearest * 1.01:
            best = min(best, closest(point, edge, shares[max(at - 1, 0)], shares[min(at + 1, SAMPLES - 1)]))
    return best


def closest(point: Point, edge: tuple[Point, Point], low: float, high: float) -> float:
    """The geodesic distance to the nearest place between two shares of an edge."""
    (lon_a, lat_a), (lon_b, lat_b) = edge

    def exact(share: float) -> float:
        lon = math.remainder(lon_a + share * (lon_b - lon_a), 360)
        return distance_m(point, (lon, lat_a + share * (lat_b - lat_a)))

    for _ in range(70):
        third = (high - low) / 3
        if exact(low + third) < exact(high - third):
            high -= third
        else:
            low += third
    return min(exact((low + high) / 2), exact(0.0), exact(1.0))


def check(shape: Shape, point: Point) -> None:
    depth, true = boundary_of(shape).depth_m(point), true_distance(shape, point)
    if true == math.inf:
        assert depth == math.inf
        return
    assert abs(depth) <= true + MICROMETRE / 100
    assert abs(depth) >= true * 0.995 - MICROMETRE
    assert prepare(shape).covers(point) == (depth > 0) or abs(depth) < MICROMETRE


@given(strategies.shapes(), strategies.points())
@settings(max_examples=150)
def test_never_larger_than_the_geodesic_and_at_most_half_a_percent_smaller(shape: Shape, point: Point):
    check(shape, point)


@given(strategies.shapes(), st.data())
@settings(max_examples=150)
def test_the_same_holds_close_to_the_boundary(shape: Shape, data: st.DataObject):
    if isinstance(shape, Circle):
        near = destination(shape.center, data.draw(st.integers(0, 359)), shape.radius_m)
    else:
        (lon_a, lat_a), (lon_b, lat_b) = data.draw(
            st.sampled_from([edge for ring in rings(shape) for edge in pairwise(ring)])
        )
        share = data.draw(st.floats(0, 1))
        near = (math.remainder(lon_a + share * (lon_b - lon_a), 360), lat_a + share * (lat_b - lat_a))
    metres = data.draw(st.sampled_from([0.0, 0.001, 1.0, 30.0, 2_000.0]))
    check(shape, destination(near, data.draw(st.integers(0, 359)), metres))


@pytest.mark.parametrize(
    ("shape", "point"),
    [
        (Rectangle((-180.0, 80.0, 180.0, 90.0)), (12.0, 90.0)),  # the pole is deep inside
        (Rectangle((-180.0, 80.0, 180.0, 90.0)), (180.0, 85.0)),
        (Rectangle((170.0, -5.0, -170.0, 5.0)), (180.0, 0.0)),
        (Rectangle((-180.0, -90.0, 180.0, 90.0)), (0.0, 0.0)),  # no boundary anywhere
        (Rectangle((-170.0, 40.0, 170.0, 50.0)), (0.0, 45.0)),
        (Rectangle((0.0, 60.0, 90.0, 90.0)), (45.0, 90.0)),  # a corner at the pole
        (Polygon((((170.0, 0.0), (190.0, 0.0), (190.0, 10.0), (170.0, 10.0), (170.0, 0.0)),)), (-179.0, 5.0)),
        (Polygon((((0.0, 60.0), (120.0, 60.0), (60.0, 61.0), (0.0, 60.0)),)), (60.0, 75.0)),  # edges are no geodesics
        (
            Polygon(
                (
                    ((0.0, 0.0), (8.0, 0.0), (8.0, 8.0), (0.0, 8.0), (0.0, 0.0)),
                    ((3.0, 3.0), (3.0, 5.0), (5.0, 5.0), (5.0, 3.0), (3.0, 3.0)),
                )
            ),
            (4.0, 4.1),
        ),
        (Circle((10.0, 89.99), 50_000.0), (-170.0, 89.9)),
    ],
)
def test_at_the_ends_of_the_map_and_in_holes(shape: Shape, point: Point):
    check(check_shape(shape), point)


def test_a_point_on_the_boundary_is_not_deep():
    square = boundary_of(Rectangle((0.0, 0.0, 1.0, 1.0)))
    assert square.depth_m((0.0, 0.5)) == pytest.approx(0, abs=MICROMETRE)
    assert square.depth_m((1.0, 1.0)) == pytest.approx(0, abs=MICROMETRE)


@given(strategies.shapes())
@settings(max_examples=60)
def test_somewhere_in_the_zone_one_is_deeper_than_the_widest_band(shape: Shape):
    boundary = boundary_of(shape)
    assert 0 <= boundary.widest_band_m <= 1e7
    west, south, east, north = boundary.area.bounds
    east = east if west <= east else east + 360
    if isinstance(shape, Circle):
        deepest = boundary.depth_m(shape.center)
    else:
        grid = [
            (math.remainder(west + x / 20 * (east - west), 360), south + y / 20 * (north - south))
            for x in range(21)
            for y in range(21)
        ]
        deepest = max(map(boundary.depth_m, grid))
    assert boundary.widest_band_m > 0 or deepest <= MICROMETRE
    if isinstance(shape, Circle | Rectangle) and east - west < 20 and north - south < 20 and max(-south, north) < 70:
        assert boundary.widest_band_m >= 0.45 * deepest  # not much less than half: the middle is well chosen
        assert boundary.widest_band_m <= 0.51 * deepest * 1.1


def test_the_narrowest_part_bounds_the_band():
    def box(west: float, size: float) -> Ring:
        return ((west, 0.0), (west + size, 0.0), (west + size, size), (west, size), (west, 0.0))

    wide, narrow = ((box(0.0, 1.0),), (box(5.0, 0.01),))
    both = boundary_of(MultiPolygon((wide, narrow))).widest_band_m
    assert both == pytest.approx(boundary_of(Polygon(narrow)).widest_band_m, rel=0.01)
    assert both == pytest.approx(0.005 * 111_000 / 2, rel=0.02)


def test_a_zone_cut_at_the_antimeridian_is_as_wide_as_it_was_drawn():
    here = boundary_of(check_shape(Rectangle((10.0, 0.0, 12.0, 4.0)))).widest_band_m
    ring = ((179.0, 0.0), (181.0, 0.0), (181.0, 4.0), (179.0, 4.0), (179.0, 0.0))
    for shape in (Rectangle((179.0, 0.0, -179.0, 4.0)), Polygon((ring,))):
        assert boundary_of(check_shape(shape)).widest_band_m == pytest.approx(here, rel=0.01)
