"""Regions as plain rings of doubles: what relations are decided on.

Truth about two regions is exact arithmetic on the coordinates as they were given, so nothing here rounds, snaps or
moves a point. Only what has no meaning is taken away: the point that closes a ring, edges without length, and the
direction in which a ring was drawn. Afterwards the interior is on the left of every edge (outer rings run
counter-clockwise, holes clockwise), and no later step has to know which ring is a hole.

A region must be valid as `zones.validation` means it: rings that don't cross or touch themselves, holes and parts
that share single points at most. That is not looked at again here. Space is planar: what touches across the
antimeridian does not touch here, because a zone is split there and both sides keep their longitudes.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import msgspec
import shapely

from zones.antimeridian import Part, plain_boxes, ring_of_box, split
from zones.errors import CoordinateInvalid, GeoJsonInvalid, RingHasSpike, RingTooShort, ShapeEmpty
from zones.geodesy import destination, distance_m
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape

__all__ = [
    "CIRCLE_CORNERS", "Box", "Edge", "PlanarRegion", "from_geometry", "from_parts", "from_rings", "from_shape",
    "orientation", "side",
]  # fmt: skip

Box = tuple[float, float, float, float]  # min x, min y, max x, max y
Edge = tuple[float, float, float, float, float, float, float, float, int]
"""One edge, flat because a sweep reads nothing else: its box (as `Box`), its start x, y, its end x, y, its ring."""

CIRCLE_CORNERS = 64
"""So many corners on the rim make a circle a region: its edges are at most 0.13 % of the radius within the rim."""

# Shewchuk's first bound for the sign of a determinant of differences: (3 + 16 ε) ε with ε = 2^-53. It does not count
# underflow; four products and sums lose less than the second number by it.
_RELATIVE_ERROR = (3 + 16 * 2.0**-53) * 2.0**-53
_UNDERFLOW = 2.0**-1070


class PlanarRegion(msgspec.Struct, frozen=True, dict=True):
    """A valid polygon with its holes, or several such parts; made by the functions of this module."""

    rings: tuple[Ring, ...]  # not closed: the last point is not the first again
    box: Box

    @property
    def is_simple(self) -> bool:
        """One ring: connected and without holes."""
        return len(self.rings) == 1

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All edges by their least x, as a sweep wants them."""
        found: list[Edge] = []
        for index, ring in enumerate(self.rings):
            px, py = ring[-1]
            for x, y in ring:
                west, east = (px, x) if px <= x else (x, px)
                south, north = (py, y) if py <= y else (y, py)
                found.append((west, south, east, north, px, py, x, y, index))
                px, py = x, y
        found.sort()
        return tuple(found)

    @cached_property
    def vertex_count(self) -> int:
        return sum(map(len, self.rings))


def from_rings(rings: Sequence[Sequence[Point]]) -> PlanarRegion:
    """One polygon: its outer ring, then its holes; each closed or not, drawn in either direction."""
    return from_parts((rings,))


def from_parts(parts: Iterable[Sequence[Sequence[Point]]]) -> PlanarRegion:
    """Several polygons that share single points at most."""
    rings = tuple(_wound(ring, hole=index > 0) for part in parts for index, ring in enumerate(part))
    if not rings:
        raise ShapeEmpty("The region has no rings.", hint="Give it an outer ring of at least three points.")
    xs = [x for ring in rings for x, _ in ring]
    ys = [y for ring in rings for _, y in ring]
    return PlanarRegion(rings, (min(xs), min(ys), max(xs), max(ys)))


def from_geometry(geometry: Any) -> PlanarRegion:
    """A polygon or multipolygon of shapely."""
    if geometry.geom_type not in ("Polygon", "MultiPolygon"):
        raise GeoJsonInvalid(
            f"A {geometry.geom_type} is not a region.",
            hint="Give a Polygon or a MultiPolygon.",
            type=geometry.geom_type,
        )
    return from_parts(
        [shapely.get_coordinates(ring).tolist() for ring in (polygon.exterior, *polygon.interiors)]
        for polygon in shapely.get_parts(geometry)
        if not polygon.is_empty
    )


def from_shape(shape: Shape) -> PlanarRegion:
    """A zone's shape, or the region in an event; a circle becomes its inscribed polygon."""
    if isinstance(shape, Polygon):
        return from_rings(shape.coordinates)
    if isinstance(shape, MultiPolygon):
        return from_parts(shape.coordinates)
    if isinstance(shape, Rectangle):
        return from_parts((ring_of_box(box),) for box in plain_boxes(shape.bbox))
    return from_parts(_parts_in_circle(shape))


def orientation(p: Point, q: Point, r: Point) -> int:
    """1 if r is on the left of the line from p to q, -1 if on its right, 0 if on it. Exact for all doubles."""
    return side(p[0], p[1], q[0], q[1], r[0], r[1])


def side(px: float, py: float, qx: float, qy: float, rx: float, ry: float) -> int:
    """The same for those who have the numbers at hand.

    Almost every sign is certain in floating point; what is too near zero, and what overflows, is done in fractions.
    """
    left = (px - rx) * (qy - ry)
    right = (py - ry) * (qx - rx)
    determinant = left - right
    error = _RELATIVE_ERROR * (abs(left) + abs(right)) + _UNDERFLOW
    if determinant > error:
        return 1
    if -determinant > error:
        return -1
    # Equal points and lines along an axis are what touching regions are full of, and need no fractions.
    if (px == qx == rx) or (py == qy == ry) or (px == rx and py == ry) or (qx == rx and qy == ry):
        return 0
    x, y = Fraction(rx), Fraction(ry)
    exact_left = (Fraction(px) - x) * (Fraction(qy) - y)
    exact_right = (Fraction(py) - y) * (Fraction(qx) - x)
    return (exact_left > exact_right) - (exact_left < exact_right)


def _wound(points: Sequence[Point], *, hole: bool) -> Ring:
    """The ring without its closing point and without edges of no length, the interior on its left."""
    ring: list[Point] = []
    for x, y in points:
        point = (float(x), float(y))
        if not (math.isfinite(point[0]) and math.isfinite(point[1])):
            raise CoordinateInvalid(f"The coordinate {x}, {y} is not a finite number.", hint="Give numbers.")
        if not ring or ring[-1] != point:
            ring.append(point)
    while len(ring) > 1 and ring[0] == ring[-1]:
        ring.pop()
    if len(ring) < 3:
        raise RingTooShort(
            f"A ring has {len(ring)} different points in a row; it needs at least 3.", hint="Draw around an area."
        )
    # At the least point, by x and then y, a ring that does not cross itself turns as it does as a whole.
    least = min(range(len(ring)), key=ring.__getitem__)
    turn = orientation(ring[least - 1], ring[least], ring[(least + 1) % len(ring)])
    if turn == 0:
        raise RingHasSpike(
            f"A ring goes to {ring[least][0]!r}, {ring[least][1]!r} and back on the same line.",
            hint="Remove the spike.",
        )
    if (turn < 0) != hole:
        ring.reverse()
    return tuple(ring)


def _parts_in_circle(circle: Circle) -> tuple[Part, ...]:
    """The corners lie on the rim, at equal angles from north; edges are straight in lon and lat like all others.

    Within some radii of a pole such edges leave the geodesics between the corners, and the tolerance is not kept.
    """
    # Bearings go down from north, so that the ring runs counter-clockwise.
    bearings = (-360.0 * corner / CIRCLE_CORNERS for corner in range(CIRCLE_CORNERS))
    corners = [destination(circle.center, bearing, circle.radius_m) for bearing in bearings]
    lon, lat = circle.center
    pole = math.copysign(90.0, lat)
    if distance_m(circle.center, (lon, pole)) < circle.radius_m:
        return ((_ring_to_pole(corners, pole),),)
    ring = [(x + 360 * round((lon - x) / 360), y) for x, y in corners]
    return split([((*ring, ring[0]),)])


def _ring_to_pole(corners: Sequence[Point], pole: float) -> Ring:
    """A rim around a pole goes through all longitudes once: on the map it bounds a strip along the pole's edge."""
    rim = sorted(corners)
    (west, first), (east, last) = rim[0], rim[-1]
    gap = 360 - (east - west)
    at_end = last + (first - last) * ((180 - east) / gap if gap > 0 else 0)
    return (*rim, (180.0, at_end), (180.0, pole), (-180.0, pole), (-180.0, at_end))
