import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zones.strategies import points
from zones.geodesy import SEMI_MAJOR_M, SEMI_MINOR_M, destination, distance_m, geodetic_lat, reduced_lat


def angle_between(a, b):
    """On the unit sphere of the bounds."""
    beta_a, beta_b = reduced_lat(a[1]), reduced_lat(b[1])
    delta = math.radians(b[0] - a[0])
    across = math.hypot(
        math.cos(beta_b) * math.sin(delta),
        math.cos(beta_a) * math.sin(beta_b) - math.sin(beta_a) * math.cos(beta_b) * math.cos(delta),
    )
    along = math.sin(beta_a) * math.sin(beta_b) + math.cos(beta_a) * math.cos(beta_b) * math.cos(delta)
    return math.atan2(across, along)


def test_known_distances():
    # One degree along the equator is a/57.29..., a quarter meridian is 10,001,965.729 m (NGA, WGS 84).
    assert distance_m((0.0, 0.0), (1.0, 0.0)) == pytest.approx(SEMI_MAJOR_M * math.pi / 180, abs=1e-6)
    assert distance_m((12.0, 0.0), (12.0, 90.0)) == pytest.approx(10_001_965.729, abs=1e-3)
    # Flinders Peak to Buninyon, the worked example of Geoscience Australia (GRS 80: the same to a millimetre).
    flinders, buninyon = (144.424_867_889, -37.951_033_417), (143.926_495_528, -37.652_821_139)
    assert distance_m(flinders, buninyon) == pytest.approx(54_972.271, abs=2e-3)


@given(points(), points())
def test_the_sphere_bounds_every_distance(a, b):
    angle = angle_between(a, b)
    metres = distance_m(a, b)
    assert SEMI_MINOR_M * angle <= metres + 1e-5
    assert metres <= SEMI_MAJOR_M * angle + 1e-5


@given(points(), points())
def test_distance_is_the_same_both_ways_and_by_any_name(a, b):
    assert distance_m(a, b) == pytest.approx(distance_m(b, a), abs=1e-8)
    assert distance_m(a, a) == 0
    assert distance_m((180.0, a[1]), b) == distance_m((-180.0, a[1]), b)


@given(points(), st.floats(-180, 180), st.sampled_from([90.0, -90.0]))
def test_a_pole_is_one_point(a, lon, pole):
    assert distance_m(a, (lon, pole)) == distance_m(a, (0.0, pole))
    assert distance_m((lon, pole), a) == distance_m((0.0, pole), a)


@given(points(), st.floats(0, 360), st.floats(0, 1_000_000))
def test_going_somewhere_takes_as_far_as_was_said(start, bearing, metres):
    lon, lat = end = destination(start, bearing, metres)
    assert -180 <= lon <= 180
    assert -90 <= lat <= 90
    assert distance_m(start, end) == pytest.approx(metres, abs=2e-8)


@given(st.floats(-90, 90))
def test_reduced_latitudes_lead_back(lat):
    assert geodetic_lat(reduced_lat(lat)) == pytest.approx(lat, abs=1e-12)
