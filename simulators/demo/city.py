"""The demo's city: a street grid and twelve places in it.

It is drawn here, in blocks from the south-western crossing, and laid over the middle of Beijing so that names like
SYSTEM.Xidan fit. Nothing in it is a map of the real place.
"""

from math import cos, pi, radians, sin
from typing import Any

from simulators.mobility.streets import Streets
from zones.geojson import shape_to_geojson
from zones.shapes import Circle, Point, Polygon, Rectangle, Ring, Shape

__all__ = ["CITY", "city_collection", "city_zones"]

_SOUTH_WEST: Point = (116.3560, 39.8960)
_BLOCK_M = (250.0, 200.0)
_METRES_PER_DEGREE = 111_320.0  # good to some tenths of a percent, which only makes the blocks that much longer

CITY = Streets(
    south_west=_SOUTH_WEST,
    step=(
        _BLOCK_M[0] / (_METRES_PER_DEGREE * cos(radians(_SOUTH_WEST[1]))),
        _BLOCK_M[1] / _METRES_PER_DEGREE,
    ),
    block_m=_BLOCK_M,
    columns=13,
    rows=13,
)


def city_zones() -> dict[str, Shape]:
    """The places by their local names. Polygons, one with a hole, rectangles and circles."""
    return {
        "Xidan": _polygon(((5.4, 5.6), (7.4, 5.6), (7.4, 6.5), (6.6, 6.5), (6.6, 7.4), (5.4, 7.4))),
        "Railway_Station": _rectangle(8.6, 0.6, 10.4, 1.4),
        "Old_Market": _circle(2.5, 9.0, 260.0),
        "West_School": _rectangle(0.7, 5.7, 1.5, 6.6),
        "North_School": _rectangle(8.6, 10.7, 9.5, 11.4),
        "Lake_Park": _polygon(
            ((1.6, 1.6), (4.4, 1.4), (4.6, 3.5), (1.5, 3.6)), ((2.5, 2.4), (2.5, 2.7), (3.5, 2.7), (3.5, 2.4))
        ),
        "Stadium": _circle(10.0, 8.0, 300.0),
        "Hospital": _rectangle(6.7, 3.6, 7.6, 4.5),
        "Canal_Quay": _polygon(((10.5, 3.3), (12.4, 4.4), (12.4, 5.5), (10.4, 4.5))),
        "Museum": _circle(5.0, 11.0, 150.0),
        "University": _polygon(_octagon(8.0, 8.9, 0.9)),
        "Theatre": _circle(4.0, 5.0, 120.0),
    }


def city_collection() -> dict[str, Any]:
    """The same as a GeoJSON FeatureCollection, for the import."""
    features = [
        {"type": "Feature", "id": name, "geometry": shape_to_geojson(shape), "properties": {"city": "demo"}}
        for name, shape in city_zones().items()
    ]
    return {"type": "FeatureCollection", "features": features}


def _place(column: float, row: float) -> Point:
    return (
        round(_SOUTH_WEST[0] + column * CITY.step[0], 7),
        round(_SOUTH_WEST[1] + row * CITY.step[1], 7),
    )


def _circle(column: float, row: float, radius_m: float) -> Circle:
    return Circle(_place(column, row), radius_m)


def _rectangle(west: float, south: float, east: float, north: float) -> Rectangle:
    return Rectangle((*_place(west, south), *_place(east, north)))


def _polygon(*rings: tuple[Point, ...]) -> Polygon:
    return Polygon(tuple(_closed(ring) for ring in rings))


def _closed(ring: tuple[Point, ...]) -> Ring:
    return tuple(_place(column, row) for column, row in (*ring, ring[0]))


def _octagon(column: float, row: float, radius: float) -> tuple[Point, ...]:
    corners = [(2 * corner + 1) * pi / 8 for corner in range(8)]
    return tuple((column + radius * cos(angle), row + radius * sin(angle)) for angle in corners)
