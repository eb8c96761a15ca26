"""Point in zone as one would explain it: exact fractions, every edge looked at, no box, no library.

Slow on purpose. What is fast has to agree with this.
"""

from enum import Enum
from fractions import Fraction
from itertools import pairwise

from geographiclib.geodesic import Geodesic

from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape


class Side(Enum):
    INSIDE = "#"
    BOUNDARY = "o"
    OUTSIDE = "."


def covers_reference(shape: Shape, point: Point) -> bool:
    """Closed: what is on the boundary is covered. All names of a place give the same answer."""
    if isinstance(shape, Circle):
        lon, lat = point
        center_lon, center_lat = shape.center
        return Geodesic.WGS84.Inverse(center_lat, center_lon, lat, lon)["s12"] <= shape.radius_m
    return any(side_of(shape, name) is not Side.OUTSIDE for name in names_of(shape, point))


def names_of(shape: Shape, point: Point) -> list[Point]:
    """The point under all of its longitudes that can matter for this shape."""
    lon, lat = point
    if abs(lat) == 90:
        return [(corner_lon, lat) for corner_lon, _ in corners(shape)]
    return [(180.0, lat), (-180.0, lat)] if abs(lon) == 180 else [point]


def corners(shape: Shape) -> list[Point]:
    if isinstance(shape, Rectangle):
        west, south, east, north = shape.bbox
        return [(west, south), (east, north), (west, north), (east, south)]
    return [point for rings in parts(shape) for point in rings[0]]


def parts(shape: Shape) -> tuple[tuple[Ring, ...], ...]:
    assert isinstance(shape, Polygon | MultiPolygon)
    return (shape.coordinates,) if isinstance(shape, Polygon) else shape.coordinates


def side_of(shape: Shape, point: Point) -> Side:
    """Inside, outside or on the boundary, in the plane of lon and lat."""
    if isinstance(shape, Rectangle):
        return _side_of_box(shape.bbox, point)
    sides = {_side_of_polygon(rings, point) for rings in parts(shape)}
    if Side.INSIDE in sides:
        return Side.INSIDE
    return Side.BOUNDARY if Side.BOUNDARY in sides else Side.OUTSIDE


def _side_of_box(bbox: tuple[float, float, float, float], point: Point) -> Side:
    west, south, east, north = bbox
    lon, lat = point
    crosses = west > east
    in_lons = (lon >= west or lon <= east) if crosses else west <= lon <= east
    if not in_lons or not south <= lat <= north:
        return Side.OUTSIDE
    return Side.BOUNDARY if lon in (west, east) or lat in (south, north) else Side.INSIDE


def _side_of_polygon(rings: tuple[Ring, ...], point: Point) -> Side:
    outer, *holes = (_side_of_ring(ring, point) for ring in rings)
    if outer is not Side.INSIDE:
        return outer
    if Side.BOUNDARY in holes:
        return Side.BOUNDARY
    return Side.OUTSIDE if Side.INSIDE in holes else Side.INSIDE


def _side_of_ring(ring: Ring, point: Point) -> Side:
    """Count the edges that a ray to the east crosses."""
    x, y = Fraction(point[0]), Fraction(point[1])
    crossings = 0
    for (ax, ay), (bx, by) in pairwise((Fraction(lon), Fraction(lat)) for lon, lat in ring):
        turn = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        if turn == 0 and min(ax, bx) <= x <= max(ax, bx) and min(ay, by) <= y <= max(ay, by):
            return Side.BOUNDARY
        if (ay <= y < by and turn > 0) or (by <= y < ay and turn < 0):
            crossings += 1
    return Side.INSIDE if crossings % 2 else Side.OUTSIDE
