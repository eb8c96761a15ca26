"""One point that stands for a zone, where somebody names the zone instead of a point.

It is in the zone, and the same for everybody: the centre of a circle or a rectangle; of a polygon GEOS's point on the
surface, which lies in the middle of a wide place of the polygon, or of its largest part, and never in a hole.
"""

import shapely

from zones.covers import outline
from zones.shapes import Circle, Point, Rectangle, Shape

__all__ = ["representative_point"]


def representative_point(shape: Shape) -> Point:
    """The point; the shape has passed `zones.validation`."""
    if isinstance(shape, Circle):
        return shape.center
    if isinstance(shape, Rectangle):
        west, south, east, north = shape.bbox
        width = east - west if west <= east else east - west + 360
        lon = west + width / 2
        return (lon - 360 if lon > 180 else lon), (south + north) / 2
    point = shapely.point_on_surface(outline(shape))
    return float(point.x), float(point.y)
