"""Where longitude jumps from 180 to -180.

Whoever draws across that line goes on counting (170, 175, 180, 185) or, in a box, gives a west that is greater
than the east. Everything behind validation sees only longitudes from -180 to 180: polygons are cut at the line
and their pieces put where they belong, a rectangle keeps west > east because that is exact and short.

Cutting adds a corner where an edge meets the line. No other coordinate changes: 360 - x is exact for floats
from 180 to 360, and no longitude beyond that is taken.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import shapely

from zones.errors import AntimeridianAmbiguous, ZeroArea
from zones.shapes import Point, Rectangle, Ring

__all__ = ["Box", "Part", "lon_hull", "normalise_lon", "normalise_rectangle", "plain_boxes", "ring_of_box", "split"]

Box = tuple[float, float, float, float]  # west, south, east, north; west > east crosses the line
Part = tuple[Ring, ...]  # a polygon: the outer ring, then its holes


def normalise_lon(lon: float) -> float:
    """The same meridian from -180 to 180; both ends stay as they are."""
    return lon if -180 <= lon <= 180 else math.remainder(lon, 360)


def normalise_rectangle(rectangle: Rectangle) -> Rectangle:
    """West from -180 up to below 180, east from above -180 up to 180."""
    west, south, east, north = rectangle.bbox
    if west > east and not -180 <= east <= west <= 180:
        raise AntimeridianAmbiguous(
            f"The rectangle's west {west:.12g} is greater than its east {east:.12g}, and one of them is beyond ±180.",
            hint="To cross the antimeridian write either 170 to 190, or 170 to -170.",
            west=west,
            east=east,
        )
    width = east - west if west <= east else east + 360 - west
    if width == 0:
        raise ZeroArea(
            f"The rectangle has no width: west and east are both at lon {west:.12g}.",
            hint="Give it an east that differs from its west.",
            west=west,
            east=east,
        )
    if width > 360:
        raise AntimeridianAmbiguous(
            f"The rectangle goes around the globe more than once: {width:.12g} degrees.",
            hint="For all longitudes write -180 to 180.",
            west=west,
            east=east,
        )
    if width == 360:
        return Rectangle((-180.0, south, 180.0, north))
    west = west - 360 if west >= 180 else west + 360 if west < -180 else west
    east = east - 360 if east > 180 else east + 360 if east <= -180 else east
    return Rectangle((west, south, east, north))


def plain_boxes(box: Box) -> tuple[Box, ...]:
    """The box itself, or its two halves if it crosses the line."""
    west, south, east, north = box
    if west <= east:
        return (box,)
    return (west, south, 180.0, north), (-180.0, south, east, north)


def ring_of_box(box: Box) -> Ring:
    """The outline of a plain box, counter-clockwise, without an edge of more than 180 degrees."""
    west, south, east, north = box
    if east - west <= 180:
        return ((west, south), (east, south), (east, north), (west, north), (west, south))
    middle = (west + east) / 2
    return (
        (west, south),
        (middle, south),
        (east, south),
        (east, north),
        (middle, north),
        (west, north),
        (west, south),
    )


def lon_hull(spans: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The shortest stretch of longitude, west > east if it crosses the line, that has all of these in it."""
    ordered = sorted(spans)
    west, east = ordered[0]
    gap, hull = 0.0, (0.0, 0.0)
    for start, end in ordered[1:]:
        if start - east > gap:
            gap, hull = start - east, (start, east)
        east = max(east, end)
    return (west, east) if west + 360 - east >= gap else hull


def split(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Cut every polygon at the line and bring the pieces to longitudes from -180 to 180.

    Each polygon must be valid as it is drawn, between -360 and 360, and less than 360 wide if it crosses.
    """
    return tuple(piece for part in parts for piece in _pieces(part))


def _pieces(part: Part) -> list[Part]:
    lons = [lon for lon, _ in part[0]]
    west, east = min(lons), max(lons)
    if west >= -180 and east <= 180:
        return [part]
    if west >= 180:
        return [_moved(part, -360.0)]
    if east <= -180:
        return [_moved(part, 360.0)]
    rings = [_with_corners_on_the_line(ring) for ring in part]
    drawn = shapely.Polygon(rings[0], rings[1:])
    pieces: list[Part] = []
    for start in (-540.0, -180.0, 180.0):
        if west >= start + 360 or east <= start:
            continue
        # The line's own corners are in the rings by now, so nothing has to be computed, and rounded, here.
        cut = shapely.intersection(drawn, shapely.box(start, -100, start + 360, 100))
        for polygon in shapely.get_parts(cut):
            if polygon.geom_type == "Polygon":  # what only touches the line leaves points and lines
                pieces.append(_moved(_part_of(polygon), -(start + 180)))
    return pieces


def _with_corners_on_the_line(ring: Ring) -> list[Point]:
    corners = [ring[0]]
    for (lon_a, lat_a), (lon_b, lat_b) in pairwise(ring):
        for line in (-180.0, 180.0):
            if (lon_a < line < lon_b) or (lon_b < line < lon_a):
                lat = lat_a + (lat_b - lat_a) * ((line - lon_a) / (lon_b - lon_a))
                corners.append((line, min(max(lat, min(lat_a, lat_b)), max(lat_a, lat_b))))
        corners.append((lon_b, lat_b))
    return corners


def _moved(part: Part, by: float) -> Part:
    return tuple(tuple((lon + by, lat) for lon, lat in ring) for ring in part)


def _part_of(polygon: shapely.Polygon) -> Part:
    rings = [polygon.exterior, *polygon.interiors]
    return tuple(tuple((lon, lat) for lon, lat in shapely.get_coordinates(ring).tolist()) for ring in rings)
