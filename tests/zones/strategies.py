"""Random shapes and points. Coordinates come from coarse grids as often as from all floats, because on a grid points
fall on edges and corners, where mistakes are made.

All drawn coordinates are multiples of 2^-40 degrees, a tenth of a micrometre. GEOS computes on which side of an edge a
point is with 106 bits, which is exact for these. For others it is right but for points within about 1e-25 degrees.
"""

import math

from hypothesis import assume
from hypothesis import strategies as st

from zones.errors import ShapeInvalid
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape
from zones.validation import check_shape


def quantised(degrees: float) -> float:
    return round(degrees * 2**40) / 2**40


def lons(limit: float = 180.0) -> st.SearchStrategy[float]:
    grid = st.integers(-int(limit), int(limit)).map(float)
    return st.one_of(grid, st.floats(-limit, limit).map(quantised), st.sampled_from([-180.0, 180.0]))


def lats() -> st.SearchStrategy[float]:
    return st.one_of(st.integers(-90, 90).map(float), st.floats(-90, 90).map(quantised), st.sampled_from([-90.0, 90.0]))


def points() -> st.SearchStrategy[Point]:
    return st.tuples(lons(), lats())


def circles() -> st.SearchStrategy[Circle]:
    return st.builds(Circle, points(), st.floats(0.001, 1_000_000.0) | st.floats(1.0, 5_000.0))


@st.composite
def rectangles(draw: st.DrawFn) -> Rectangle:
    south, north = sorted((draw(lats()), draw(lats())))
    west, east = draw(lons()), draw(lons())
    return _checked(Rectangle((west, south, east, north)))


@st.composite
def stars(draw: st.DrawFn, west: float = -180.0, east: float = 180.0) -> Ring:
    """A ring around a middle: corners by rising angle, each at its own distance."""
    corners = draw(st.integers(3, 9))
    lon, lat = draw(st.floats(west, east)), draw(st.floats(-70, 70))
    size = draw(st.sampled_from([0.001, 1.0, 15.0]))
    steps = [draw(st.sampled_from([0.4, 0.7, 1.0])) * size for _ in range(corners)]
    places = [
        (
            quantised(lon + step * math.cos(math.tau * k / corners)),
            quantised(lat + step * math.sin(math.tau * k / corners)),
        )
        for k, step in enumerate(steps)
    ]
    return (*places, places[0])


@st.composite
def grid_polygons(draw: st.DrawFn) -> Shape:
    """Corners on whole degrees around a place; whatever of it is valid."""
    lon, lat = draw(st.sampled_from([0, 100, 176, -176])), draw(st.sampled_from([0, 40, 84, -84]))
    spot = st.tuples(st.integers(-6, 6), st.integers(-6, 6))
    corners = draw(st.lists(spot, min_size=3, max_size=7, unique=True))
    corners.sort(key=lambda at: math.atan2(at[1] + 0.1, at[0] + 0.1))
    ring = tuple((float(lon + x), float(lat + y)) for x, y in corners)
    holes: list[Ring] = []
    if draw(st.booleans()):
        x, y = draw(spot)
        hole = [(lon + x, lat + y), (lon + x + 1, lat + y), (lon + x, lat + y + 1), (lon + x, lat + y)]
        holes.append(tuple((float(a), float(b)) for a, b in hole))
    return _checked(Polygon(((*ring, ring[0]), *holes)))


@st.composite
def polygons(draw: st.DrawFn) -> Shape:
    return _checked(Polygon((draw(stars()),)))


@st.composite
def multipolygons(draw: st.DrawFn) -> Shape:
    return _checked(MultiPolygon(tuple((draw(stars()),) for _ in range(draw(st.integers(1, 3))))))


def drawn_shapes() -> st.SearchStrategy[Shape]:
    return st.one_of(rectangles(), grid_polygons(), polygons(), multipolygons())


def shapes() -> st.SearchStrategy[Shape]:
    return drawn_shapes() | circles()


def _checked(shape: Shape) -> Shape:
    try:
        return check_shape(shape)
    except ShapeInvalid:
        assume(False)
        raise
