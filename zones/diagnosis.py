"""What exactly is wrong with polygons that GEOS calls invalid, and where.

GEOS has one word, "Self-intersection", for a ring that crosses itself, a hole that leaves its outer ring and parts
that overlap. So the shape is looked at in growing pieces: each ring alone, then each polygon's rings together, then
the parts. The first piece that is invalid tells the kind of fault, and GEOS the place. This only runs for shapes
that are refused, and with bounded effort also for those that somebody built to make it slow.
"""

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from math import nan

import shapely

from zones.antimeridian import Part
from zones.errors import (
    HoleOutside,
    HolesOverlap,
    HoleTouchesAlongEdge,
    InteriorDisconnected,
    PartsOverlap,
    PartsTouchAlongEdge,
    RingCrossesItself,
    RingHasSpike,
    RingTouchesItself,
    ShapeInvalid,
    ZeroArea,
)
from zones.shapes import Point, Ring

__all__ = ["diagnose", "ring_title"]

_MAX_PAIRS = 20_000  # of holes or parts to look at; a fault behind them gets GEOS's own words
_VALID, _DISCONNECTED = "Valid Geometry", "Interior is disconnected"
_PLACE = re.compile(r"\[(\S+) (\S+)\]")


def ring_title(parts: Sequence[Part], part: int, ring: int) -> str:
    """How sentences call a ring; the part is only named if there are several."""
    title = "the outer ring" if ring == 0 else f"hole {ring}"
    return title if len(parts) == 1 else f"{title} of part {part + 1}"


def diagnose(parts: Sequence[Part]) -> ShapeInvalid:
    """The fault of parts whose rings are closed, long enough and finite, but which GEOS calls invalid."""
    for part_index, part in enumerate(parts):
        for ring_index, ring in enumerate(part):
            if fault := _ring_fault(ring, ring_title(parts, part_index, ring_index)):
                return fault
    for part_index, part in enumerate(parts):
        if fault := _part_fault(part, [ring_title(parts, part_index, index) for index in range(len(part))]):
            return fault
    polygons = [shapely.Polygon(part[0], part[1:]) for part in parts]
    if fault := _parts_fault(polygons):
        return fault
    return _unnamed_fault(shapely.MultiPolygon(polygons))


def _ring_fault(ring: Ring, title: str) -> ShapeInvalid | None:
    polygon = shapely.Polygon(ring)
    if shapely.is_valid(polygon):
        return None
    points = [(Fraction(lon), Fraction(lat)) for lon, lat in ring]
    if all(_cross(points[0], points[1], point) == 0 for point in points[2:]):
        lon, lat = ring[0]
        return ZeroArea(
            f"All points of {title} lie on one line, from {_at(lon, lat)}: it encloses nothing.",
            hint="Give it three points that are not on one line.",
            ring=title,
            lon=lon,
            lat=lat,
        )
    for index, tip in enumerate(points[:-1]):
        before, after = points[index - 1 if index else -2], points[index + 1]
        if _cross(before, tip, after) == 0 and _dot(before, tip, after) > 0:
            lon, lat = ring[index]
            return RingHasSpike(
                f"Point {index + 1} of {title}, {_at(lon, lat)}, is the tip of a spike: the ring comes back on the "
                "line on which it went there.",
                hint="Leave that point out.",
                ring=title,
                point=index + 1,
                lon=lon,
                lat=lat,
            )
    word, (lon, lat) = _verdict(polygon)
    if word == "Ring Self-intersection":
        return RingTouchesItself(
            f"At {_at(lon, lat)} {title} comes back to a point where it has been.",
            hint="Draw it so that it meets itself nowhere, or send several polygons.",
            ring=title,
            lon=lon,
            lat=lat,
        )
    return RingCrossesItself(
        f"At {_at(lon, lat)} {title} crosses itself.",
        hint="Draw the ring without crossing its own edges, or send two polygons.",
        ring=title,
        lon=lon,
        lat=lat,
    )


def _part_fault(part: Part, titles: list[str]) -> ShapeInvalid | None:
    whole = shapely.Polygon(part[0], part[1:])
    if shapely.is_valid(whole):
        return None
    shell = shapely.Polygon(part[0])
    shapely.prepare(shell)
    holes = [shapely.Polygon(ring) for ring in part[1:]]
    for ring, hole, title in zip(part[1:], holes, titles[1:], strict=True):
        if shapely.contains_properly(shell, hole):
            continue
        word, (lon, lat) = _verdict(shapely.Polygon(part[0], [ring]))
        if not shapely.covers(shell, hole):
            return HoleOutside(
                f"At {_at(lon, lat)} {title} is outside {titles[0]}.",
                hint="A hole lies wholly within its outer ring; send an area of its own as another part.",
                ring=title,
                lon=lon,
                lat=lat,
            )
        if word not in (_VALID, _DISCONNECTED):
            return _touches_along_edge(title, titles[0], lon, lat)
    for a, b in islice(_near_pairs(holes), _MAX_PAIRS):
        pair = shapely.MultiPolygon([holes[a], holes[b]])
        if shapely.is_valid(pair):
            continue
        lon, lat = _verdict(pair)[1]
        if shapely.touches(holes[a], holes[b]):
            return _touches_along_edge(titles[b + 1], titles[a + 1], lon, lat)
        return HolesOverlap(
            f"At {_at(lon, lat)} {titles[a + 1]} and {titles[b + 1]} overlap.",
            hint="Draw them as one hole.",
            rings=[titles[a + 1], titles[b + 1]],
            lon=lon,
            lat=lat,
        )
    word, (lon, lat) = _verdict(whole)
    if word == _DISCONNECTED:
        return InteriorDisconnected(
            f"At {_at(lon, lat)} holes of the polygon with {titles[0]} touch so that they cut it into pieces.",
            hint="Send the pieces as polygons of their own.",
            ring=titles[0],
            lon=lon,
            lat=lat,
        )
    return _unnamed_fault(whole)


def _touches_along_edge(title: str, other: str, lon: float, lat: float) -> ShapeInvalid:
    return HoleTouchesAlongEdge(
        f"At {_at(lon, lat)} {title} touches {other} along an edge.",
        hint="Rings of a polygon may only touch in single points; draw the outline without the common edge.",
        ring=title,
        lon=lon,
        lat=lat,
    )


def _parts_fault(polygons: list[shapely.Polygon]) -> ShapeInvalid | None:
    for a, b in islice(_near_pairs(polygons), _MAX_PAIRS):
        pair = shapely.MultiPolygon([polygons[a], polygons[b]])
        if shapely.is_valid(pair):
            continue
        lon, lat = _verdict(pair)[1]
        parts = [a + 1, b + 1]
        if shapely.touches(polygons[a], polygons[b]):
            return PartsTouchAlongEdge(
                f"At {_at(lon, lat)} parts {a + 1} and {b + 1} touch along an edge.",
                hint="Draw them as one polygon.",
                parts=parts,
                lon=lon,
                lat=lat,
            )
        return PartsOverlap(
            f"At {_at(lon, lat)} parts {a + 1} and {b + 1} overlap.",
            hint="Draw them as one polygon.",
            parts=parts,
            lon=lon,
            lat=lat,
        )
    return None


def _near_pairs(polygons: list[shapely.Polygon]) -> Iterator[tuple[int, int]]:
    """The pairs whose boxes meet."""
    tree = shapely.STRtree(polygons)
    for a, polygon in enumerate(polygons):
        for b in sorted(tree.query(polygon).tolist()):
            if a < b:
                yield a, b


def _unnamed_fault(geometry: shapely.Geometry) -> ShapeInvalid:
    """A fault that was not found in time, in GEOS's words."""
    word, (lon, lat) = _verdict(geometry)
    return ShapeInvalid(
        f"The shape is not valid at {_at(lon, lat)}: {word.lower()}.", hint="Draw it anew there.", lon=lon, lat=lat
    )


def _verdict(geometry: shapely.Geometry) -> tuple[str, Point]:
    """GEOS's word for the first fault it sees, and where that is."""
    reason = shapely.is_valid_reason(geometry)
    found = _PLACE.search(reason)
    if found is None:
        return reason, (nan, nan)
    return reason[: found.start()], (float(found[1]), float(found[2]))


def _at(lon: float, lat: float) -> str:
    return f"lon {lon:.12g}, lat {lat:.12g}"


_Exact = tuple[Fraction, Fraction]


def _cross(a: _Exact, b: _Exact, c: _Exact) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _dot(a: _Exact, tip: _Exact, b: _Exact) -> Fraction:
    """Positive if a and b lie on the same side, seen from the tip."""
    return (a[0] - tip[0]) * (b[0] - tip[0]) + (a[1] - tip[1]) * (b[1] - tip[1])
