"""The point that stands for a zone is in it, on every part of the globe."""

import pytest
from hypothesis import given

from tests.zones.strategies import shapes
from zones.covers import prepare
from zones.geojson import shape_from_geojson
from zones.representative import representative_point
from zones.shapes import Circle, Rectangle


@given(shapes())
def test_it_is_in_the_zone(shape):
    point = representative_point(shape)
    assert prepare(shape).covers(point)
    assert -180 <= point[0] <= 180


@given(shapes())
def test_it_is_the_same_for_everybody(shape):
    assert representative_point(shape) == representative_point(shape)


@pytest.mark.parametrize(
    ("shape", "point"),
    [
        (Circle((116.37, 39.91), 200.0), (116.37, 39.91)),
        (Rectangle((10.0, 50.0, 12.0, 51.0)), (11.0, 50.5)),
        (Rectangle((170.0, 0.0, -170.0, 10.0)), (180.0, 5.0)),
        (Rectangle((179.0, 0.0, -171.0, 10.0)), (-176.0, 5.0)),
    ],
)
def test_circles_and_rectangles_have_a_middle(shape, point):
    assert representative_point(shape) == point


def test_it_is_not_in_a_hole_and_not_between_the_parts():
    square, hole = [[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]], [[1, 1], [1, 8], [8, 8], [8, 1], [1, 1]]
    ring = shape_from_geojson({"type": "Polygon", "coordinates": [square, hole]})
    assert prepare(ring).covers(representative_point(ring))
    assert not prepare(ring).covers((4.5, 4.5))
