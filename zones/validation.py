"""Whether a shape can be a zone; if not, what is wrong and where.

Nothing is repaired: a shape that was guessed at would ring at the wrong door. Only what has one meaning is
brought to one form: rings wind as RFC 7946 says, and what crosses the antimeridian is split.

A valid shape costs two passes here, one over the numbers and one by GEOS. Only when GEOS says no does
`zones.diagnosis` take the time to find out which kind of fault it is.
"""

import math

import shapely

from zones.antimeridian import Part, normalise_rectangle, split
from zones.diagnosis import diagnose, ring_title
from zones.errors import (
    AntimeridianAmbiguous,
    CoordinateInvalid,
    CoordinateOutOfRange,
    RadiusOutOfRange,
    RectangleUpsideDown,
    RingRepeatsPoint,
    RingTooShort,
    RingUnclosed,
    ShapeEmpty,
    TooManyHoles,
    TooManyParts,
    TooManyVertices,
    ZeroArea,
)
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape

__all__ = ["MAX_HOLES", "MAX_PARTS", "MAX_RADIUS_M", "MAX_VERTICES", "check_point", "check_shape"]

MAX_VERTICES = 10_000
MAX_PARTS = 100
MAX_HOLES = 1_000
MAX_RADIUS_M = 1_000_000.0


def check_shape(shape: Shape) -> Shape:
    """The shape in its one form; raises a `ShapeInvalid` that names the fault and its place."""
    if isinstance(shape, Circle):
        return _check_circle(shape)
    if isinstance(shape, Rectangle):
        return _check_rectangle(shape)
    if isinstance(shape, Polygon):
        parts = _check_parts((shape.coordinates,))
        return Polygon(parts[0]) if len(parts) == 1 else MultiPolygon(parts)
    return MultiPolygon(_check_parts(shape.coordinates))


def check_point(point: Point, what: str = "point") -> Point:
    """A place on the globe, lon from -180 to 180."""
    lon, lat = point
    if not (-180 <= lon <= 180 and -90 <= lat <= 90):
        _refuse_coordinates(lon, lat, f"The {what}", 180)
    return point


def _check_circle(circle: Circle) -> Circle:
    check_point(circle.center, "circle's centre")
    radius_m = circle.radius_m
    if not math.isfinite(radius_m):
        raise CoordinateInvalid(
            f"The circle's radius is {radius_m}, which is not a finite number.", hint="Give the radius in metres."
        )
    if not 0 < radius_m <= MAX_RADIUS_M:
        raise RadiusOutOfRange(
            f"The circle's radius is {radius_m:.12g} m; it must be more than 0 and at most {MAX_RADIUS_M:,.0f} m.",
            hint="Give the radius in metres.",
            radius_m=radius_m,
        )
    return circle


def _check_rectangle(rectangle: Rectangle) -> Rectangle:
    west, south, east, north = rectangle.bbox
    for lon, lat, corner in ((west, south, "south-west"), (east, north, "north-east")):
        if not (-360 <= lon <= 360 and -90 <= lat <= 90):
            _refuse_coordinates(lon, lat, f"The rectangle's {corner} corner", 360)
    if south > north:
        raise RectangleUpsideDown(
            f"The rectangle's south, lat {south:.12g}, is north of its north, lat {north:.12g}.",
            hint="Write west, south, east, north.",
            south=south,
            north=north,
        )
    if south == north:
        raise ZeroArea(
            f"The rectangle has no height: south and north are both at lat {south:.12g}.",
            hint="Give it a north that differs from its south.",
            south=south,
            north=north,
        )
    return normalise_rectangle(rectangle)


def _check_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    _check_counts(parts)
    for index, part in enumerate(parts):
        for ring_index, ring in enumerate(part):
            _check_ring(ring, ring_title(parts, index, ring_index))
        _check_width(part, ring_title(parts, index, 0))
    rings = _check_topology(parts)
    pieces = split(parts)
    if pieces != parts:
        _check_counts(pieces)
        rings = _check_topology(pieces)
    return _wound(pieces, rings)


def _check_counts(parts: tuple[Part, ...]) -> None:
    if not parts or not all(parts):
        raise ShapeEmpty("The shape has no rings.", hint="Give each polygon at least its outer ring.")
    if len(parts) > MAX_PARTS:
        raise TooManyParts(
            f"The shape has {len(parts):,} parts; {MAX_PARTS:,} are allowed.",
            hint="Make several zones of it, and give them a common tag.",
            parts=len(parts),
        )
    holes = sum(len(part) - 1 for part in parts)
    if holes > MAX_HOLES:
        raise TooManyHoles(
            f"The shape has {holes:,} holes; {MAX_HOLES:,} are allowed.",
            hint="Leave out the smallest, or make several zones of it.",
            holes=holes,
        )
    vertices = sum(max(len(ring) - 1, 0) for part in parts for ring in part)
    if vertices > MAX_VERTICES:
        raise TooManyVertices(
            f"The shape has {vertices:,} vertices; {MAX_VERTICES:,} are allowed.",
            hint="Simplify it, or make several zones of it.",
            vertices=vertices,
        )


def _check_ring(ring: Ring, title: str) -> None:
    lon_before, lat_before = math.nan, math.nan
    for index, (lon, lat) in enumerate(ring):
        if not (-360 <= lon <= 360 and -90 <= lat <= 90):
            _refuse_coordinates(lon, lat, f"Point {index + 1} of {title}", 360, point=index + 1)
        if lon == lon_before and lat == lat_before:
            raise RingRepeatsPoint(
                f"Points {index} and {index + 1} of {title} are the same, lon {lon:.12g}, lat {lat:.12g}.",
                hint="Leave one of them out.",
                ring=title,
                point=index + 1,
                lon=lon,
                lat=lat,
            )
        if abs(lon - lon_before) > 180:
            raise AntimeridianAmbiguous(
                f"Between points {index} and {index + 1} of {title} the longitude goes from {lon_before:.12g} to "
                f"{lon:.12g}: more than half around the globe.",
                hint="To cross the antimeridian go on counting, for example from 170 to 190. For a really long edge "
                "add points in between.",
                ring=title,
                point=index + 1,
                lon=lon,
                lat=lat,
            )
        lon_before, lat_before = lon, lat
    if len(ring) > 2 and ring[0] != ring[-1]:
        lon, lat = ring[-1]
        raise RingUnclosed(
            f"The last point of {title}, lon {lon:.12g}, lat {lat:.12g}, is not its first.",
            hint="Repeat the first point at the end.",
            ring=title,
            point=len(ring),
            lon=lon,
            lat=lat,
        )
    if len(ring) < 4:
        raise RingTooShort(
            f"The number of points of {title} is {len(ring)}; a ring has at least 4, the first repeated at the end.",
            hint="Give it three different points or more.",
            ring=title,
            points=len(ring),
        )


def _check_width(part: Part, title: str) -> None:
    lons = [lon for ring in part for lon, _ in ring]
    west, east = min(lons), max(lons)
    if (west < -180 or east > 180) and east - west >= 360:
        raise AntimeridianAmbiguous(
            f"The polygon with {title} reaches from lon {west:.12g} to {east:.12g}, all around the globe or further.",
            hint="Write a polygon that goes all around from -180 to 180.",
            ring=title,
            west=west,
            east=east,
        )


def _check_topology(parts: tuple[Part, ...]) -> list[shapely.LinearRing]:
    rings = [[shapely.LinearRing(ring) for ring in part] for part in parts]
    polygons = [shapely.Polygon(part[0], part[1:]) for part in rings]
    if not shapely.is_valid(polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)):
        raise diagnose(parts)
    return [ring for part in rings for ring in part]


def _wound(parts: tuple[Part, ...], rings: list[shapely.LinearRing]) -> tuple[Part, ...]:
    """Outer rings counter-clockwise, holes clockwise; each still begins where it began."""
    is_ccw = iter(shapely.is_ccw(rings).tolist())
    return tuple(
        tuple(ring if next(is_ccw) is (index == 0) else ring[::-1] for index, ring in enumerate(part)) for part in parts
    )


def _refuse_coordinates(lon: float, lat: float, subject: str, limit: int, **details: int) -> None:
    if not (math.isfinite(lon) and math.isfinite(lat)):
        raise CoordinateInvalid(
            f"{subject} has the coordinates {lon}, {lat}, which are not both finite numbers.",
            hint="Give lon and lat in degrees.",
            **details,
        )
    raise CoordinateOutOfRange(
        f"{subject} is at lon {lon:.12g}, lat {lat:.12g}, which is not on the globe: lon is from -{limit} to {limit}, "
        "lat from -90 to 90.",
        hint="Coordinates are lon, lat in degrees of WGS 84, in this order.",
        lon=lon,
        lat=lat,
        **details,
    )
