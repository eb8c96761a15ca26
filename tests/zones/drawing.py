"""Zones as small drawings: `#` inside, `o` on the boundary, `.` outside, north on top."""

from collections.abc import Sequence
from textwrap import dedent

from tests.zones.reference import Side, names_of, side_of
from zones.covers import prepare
from zones.shapes import Point, Polygon, Ring, Shape
from zones.validation import check_shape


def draw(shape: Shape, lons: Sequence[float], lats: Sequence[float]) -> str:
    """What `covers` says about each point of a grid. A `!` is where the plain reference disagrees."""
    shape = check_shape(shape)
    area = prepare(shape)

    def sign(point: Point) -> str:
        sides = [side_of(shape, name) for name in names_of(shape, point)]
        side = next((side for side in (Side.INSIDE, Side.BOUNDARY) if side in sides), Side.OUTSIDE)
        return side.value if area.covers(point) is (side is not Side.OUTSIDE) else "!"

    return "\n".join(" ".join(sign((lon, lat)) for lon in lons) for lat in reversed(lats))


def drawn(text: str) -> str:
    return dedent(text).strip()


def ring(*points: Point) -> Ring:
    """A ring from its corners; the first is repeated at the end."""
    return (*points, points[0])


def box(west: float, south: float, east: float, north: float) -> Ring:
    return ring((west, south), (east, south), (east, north), (west, north))


def polygon(*rings: Ring) -> Polygon:
    return Polygon(rings)
