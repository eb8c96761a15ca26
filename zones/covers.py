"""Point in zone, the boundary included.

Device, server and simulators all ask `Area.covers`, once per fix and zone, so there is one answer and it is
quick: a box is looked at first, and only points in it meet the shape itself. Shapely's prepared polygons decide
those; they tell the sides of an edge apart to 1e-25 degrees, and points on edges and corners are covered.

Two places on the globe have several names: the antimeridian is lon 180 and -180, a pole has every longitude. An
area that reaches one of them gives the same answer for all of its names.

Shapes must have passed `zones.validation`.
"""

from abc import ABC, abstractmethod

import shapely

from zones.antimeridian import Box, lon_hull, plain_boxes, ring_of_box, split
from zones.circles import CircleTest, bounds_of_circle, ring_around_circle
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Shape

__all__ = ["Area", "outline", "prepare"]


class Area(ABC):
    """A shape prepared for being asked about many points.

    `bounds` is the box around it, west > east if it crosses the antimeridian and -180 to 180 if it reaches a
    pole. `boxes` are for indexes: each has west <= east, and every point that the area covers is in one of them
    by any of its names.
    """

    __slots__ = ("_east", "_north", "_reaches_end", "_south", "_west", "bounds", "boxes")

    def __init__(self, box: Box) -> None:
        self._west, self._south, self._east, self._north = box
        reaches_pole = self._south == -90 or self._north == 90
        # Where a place has several names; all other areas get by with the four comparisons in `covers`.
        self._reaches_end = reaches_pole or self._west > self._east or self._west == -180 or self._east == 180
        self.bounds: Box = (-180.0, self._south, 180.0, self._north) if reaches_pole else box
        self.boxes: tuple[Box, ...] = _index_boxes(self.bounds)

    def covers(self, point: Point) -> bool:
        """Whether the point is inside or on the boundary."""
        lon, lat = point
        # Written so that NaN is nowhere.
        if not self._south <= lat <= self._north:
            return False
        if self._reaches_end:
            return self._covers_end(lon, lat)
        return self._west <= lon <= self._east and self._decides(lon, lat)

    def _covers_end(self, lon: float, lat: float) -> bool:
        if lat == 90 or lat == -90:
            return self._covers_pole(lat)
        if lon == 180 or lon == -180:
            return (self._in_lons(180.0) and self._decides(180.0, lat)) or (
                self._in_lons(-180.0) and self._decides(-180.0, lat)
            )
        return self._in_lons(lon) and self._decides(lon, lat)

    def _in_lons(self, lon: float) -> bool:
        if self._west <= self._east:
            return self._west <= lon <= self._east
        return lon >= self._west or lon <= self._east

    @abstractmethod
    def _decides(self, lon: float, lat: float) -> bool:
        """Whether the shape covers a point that is in its box."""

    def _covers_pole(self, lat: float) -> bool:
        """Whether it covers a pole that its box reaches. A drawn shape that reaches it has a corner there."""
        return True


class _RectangleArea(Area):
    __slots__ = ()

    def _decides(self, lon: float, lat: float) -> bool:
        return True


class _PolygonArea(Area):
    __slots__ = ("_geometry",)

    def __init__(self, geometry: shapely.Geometry) -> None:
        boxes = [shapely.bounds(part).tolist() for part in shapely.get_parts(geometry)]
        west, east = lon_hull([(west, east) for west, _, east, _ in boxes])
        super().__init__((west, min(south for _, south, _, _ in boxes), east, max(north for _, _, _, north in boxes)))
        shapely.prepare(geometry)
        self._geometry = geometry

    def _decides(self, lon: float, lat: float) -> bool:
        return bool(shapely.intersects_xy(self._geometry, lon, lat))


class _CircleArea(Area):
    __slots__ = ("_test",)

    def __init__(self, circle: Circle) -> None:
        super().__init__(bounds_of_circle(circle))
        self._test = CircleTest(circle)

    def _decides(self, lon: float, lat: float) -> bool:
        return self._test.covers(lon, lat)

    def _covers_pole(self, lat: float) -> bool:
        return self._test.covers(0.0, lat)


def prepare(shape: Shape) -> Area:
    """Spend some microseconds once, so that each `covers` takes few."""
    if isinstance(shape, Circle):
        return _CircleArea(shape)
    if isinstance(shape, Rectangle):
        return _RectangleArea(shape.bbox)
    return _PolygonArea(outline(shape))


def outline(shape: Shape) -> shapely.Geometry:
    """The shape as shapely draws it; for a circle a polygon around it, good for indexes and maps only."""
    if isinstance(shape, Polygon):
        return shapely.Polygon(shape.coordinates[0], shape.coordinates[1:])
    if isinstance(shape, MultiPolygon):
        return shapely.MultiPolygon([(rings[0], rings[1:]) for rings in shape.coordinates])
    ring = ring_around_circle(shape) if isinstance(shape, Circle) else None
    if ring is not None:
        rings = [part[0] for part in split([(ring,)])]
    else:
        box = bounds_of_circle(shape) if isinstance(shape, Circle) else shape.bbox
        rings = [ring_of_box(plain) for plain in plain_boxes(box)]
    polygons = [shapely.Polygon(ring) for ring in rings]
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)


def _index_boxes(box: Box) -> tuple[Box, ...]:
    boxes = plain_boxes(box)
    west, south, east, north = box
    if west <= east:
        # Only one side of the antimeridian is in the box; a sliver stands for its other name.
        if east == 180 and west != -180:
            boxes += ((-180.0, south, -180.0, north),)
        if west == -180 and east != 180:
            boxes += ((180.0, south, 180.0, north),)
    return boxes
