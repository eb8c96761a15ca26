"""Where a region lies on the globe does not change its relation to another one that lies with it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.globe import relate_on_globe
from matcher.planar import from_shape
from matcher.relations import relate
from tests.agreement.drawing import shapes
from zones.shapes import Circle, Polygon, Rectangle, Shape
from zones.validation import check_shape


def moved(shape: Any, lon: float) -> Any:
    if isinstance(shape, Rectangle):
        west, south, east, north = shape.bbox
        return Rectangle((west + lon, south, east + lon, north))
    coordinates = shape.coordinates
    if isinstance(shape, Polygon):
        return Polygon(tuple(tuple((x + lon, y) for x, y in ring) for ring in coordinates))
    return type(shape)(tuple(tuple(tuple((x + lon, y) for x, y in ring) for ring in part) for part in coordinates))


# Coordinates are small whole numbers, so that nothing is rounded wherever they are moved.
drawn = shapes((0.0, 0.0)).filter(lambda shape: not isinstance(shape, Circle))


@given(drawn, drawn, st.sampled_from([-183, -180, -178, -176, -174, 170, 174, 176, 177, 178, 180]))
@settings(max_examples=300)
def test_relations_do_not_change_across_the_antimeridian(one: Shape, other: Shape, lon: int) -> None:
    there = [from_shape(check_shape(moved(shape, lon))) for shape in (one, other)]
    assert relate_on_globe(*there) is relate(*[from_shape(check_shape(shape)) for shape in (one, other)])


def region(west: float, south: float, east: float, north: float):
    return from_shape(check_shape(Rectangle((west, south, east, north))))


@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        ((170, 0, -170, 10), (178, 2, -178, 8), "contains"),
        ((178, 2, -178, 8), (170, 0, -170, 10), "inside"),
        ((170, 0, 180, 10), (-180, 0, -170, 10), "meets"),
        ((170, 0, -170, 10), (-180, 2, -175, 8), "contains"),
        ((170, 0, -170, 10), (-170, 2, -165, 8), "meets"),
        ((170, 0, -170, 10), (170, 0, -170, 10), "equals"),
        ((170, 0, -170, 10), (170, 0, 180, 10), "covers"),
        ((170, 0, -170, 10), (0, 0, 20, 10), "disjoint"),
        ((-180, 0, 180, 10), (170, 2, -170, 8), "covers"),  # around the globe: as the plane has it
    ],
)
def test_what_reaches_the_line_is_put_together(one, other, relation: str) -> None:
    assert relate_on_globe(region(*one), region(*other)) == relation
