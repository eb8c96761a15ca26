"""The four shapes a zone can have, as plain frozen values.

Coordinates are lon, lat in WGS 84 degrees, or x, y in the planar universe. A shape says nothing about
validity: `zones.validation` does, and what crosses the antimeridian has been split by then.
"""

import msgspec

__all__ = ["Circle", "MultiPolygon", "Point", "Polygon", "Rectangle", "Ring", "Shape"]

Point = tuple[float, float]
Ring = tuple[Point, ...]  # closed: the last point repeats the first


class Circle(msgspec.Struct, frozen=True, tag="Circle", tag_field="type"):
    """Everything within `radius_m` metres of the centre, the rim included."""

    center: Point
    radius_m: float


class Rectangle(msgspec.Struct, frozen=True, tag="Rectangle", tag_field="type"):
    """West, south, east, north; west > east crosses the antimeridian."""

    bbox: tuple[float, float, float, float]


class Polygon(msgspec.Struct, frozen=True, tag="Polygon", tag_field="type"):
    """An outer ring, then its holes."""

    coordinates: tuple[Ring, ...]


class MultiPolygon(msgspec.Struct, frozen=True, tag="MultiPolygon", tag_field="type"):
    coordinates: tuple[tuple[Ring, ...], ...]


Shape = Circle | Rectangle | Polygon | MultiPolygon
