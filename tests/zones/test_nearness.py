"""Nearer than so many metres: the bounds decide as the geodesic does, also right at the distance."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zones.geodesy import destination, distance_m
from zones.nearness import Limit, Spot
from zones.shapes import Point

_POINTS = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


def is_nearer(one: Point, other: Point, metres: float) -> bool | None:
    return Limit(metres).holds(Spot(one), Spot(other))


@given(_POINTS, _POINTS, st.floats(1e-3, 3e7))
def test_bounds_and_geodesic_agree(one: Point, other: Point, metres: float):
    assert is_nearer(one, other, metres) is (distance_m(one, other) < metres)


@given(_POINTS, st.floats(0, 360), st.floats(0.01, 1e6), st.sampled_from((0, 1e-9, 1e-7, 1e-4, 1e-3, 3.3e-3, 3.5e-3)))
def test_they_agree_around_the_distance_too(one: Point, bearing: float, metres: float, beside: float):
    for factor in (1 - beside, 1 + beside):
        other = destination(one, bearing, metres * factor)
        assert is_nearer(one, other, metres) is (distance_m(one, other) < metres)


def test_exactly_so_far_is_not_nearer():
    one, other = (116.36, 39.9), (116.37, 39.91)
    metres = distance_m(one, other)
    assert is_nearer(one, other, metres) is False
    assert is_nearer(one, other, math.nextafter(metres, math.inf)) is True


@pytest.mark.parametrize(
    ("one", "other", "metres", "expected"),
    [
        ((0, 0), (180, 0), 2.0e7, False),  # to the other side it is 20,003.9 km, over a pole
        ((0, 0), (180, 0), 2.0004e7, True),
        ((0, 0), (180, 0), 1e9, True),
        ((179.9999, 10), (-179.9999, 10), 22, True),  # across the antimeridian
        ((180, 10), (-180, 10), 1e-6, True),
        ((0, 90), (137, 90), 1e-6, True),  # a pole has every longitude
        ((5, 5), (5, 5), 1e-12, True),
    ],
)
def test_where_it_is_easy_to_be_wrong(one: Point, other: Point, metres: float, expected: bool):
    assert is_nearer(one, other, metres) is expected


def test_nobody_is_near_to_nowhere():
    for metres in (1.0, 1e6):
        assert Limit(metres).holds(Spot(None), Spot((1, 1))) is None
        assert Limit(metres).holds(Spot((1, 1)), Spot(None)) is None
