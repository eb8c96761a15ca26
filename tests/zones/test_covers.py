"""Every kind of boundary, drawn."""

import pytest

from tests.zones.drawing import box, draw, drawn, polygon, ring
from zones.covers import prepare
from zones.geodesy import destination
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle
from zones.validation import check_shape

GRID = [float(n) for n in range(7)]


def test_the_boundary_of_a_square_counts():
    assert draw(polygon(box(1, 1, 5, 5)), GRID, GRID) == drawn(
        """
        . . . . . . .
        . o o o o o .
        . o # # # o .
        . o # # # o .
        . o # # # o .
        . o o o o o .
        . . . . . . .
        """
    )


def test_a_rectangle_is_the_same_square():
    square = polygon(box(1, 1, 5, 5))
    assert draw(Rectangle((1.0, 1.0, 5.0, 5.0)), GRID, GRID) == draw(square, GRID, GRID)


def test_slanted_edges_and_corners_count():
    assert draw(polygon(ring((3, 0), (6, 3), (3, 6), (0, 3))), GRID, GRID) == drawn(
        """
        . . . o . . .
        . . o # o . .
        . o # # # o .
        o # # # # # o
        . o # # # o .
        . . o # o . .
        . . . o . . .
        """
    )


def test_a_notch_is_outside_and_its_edges_are_not():
    notched = polygon(ring((0, 0), (6, 0), (6, 6), (4, 6), (4, 2), (2, 2), (2, 6), (0, 6)))
    assert draw(notched, GRID, GRID) == drawn(
        """
        o o o . o o o
        o # o . o # o
        o # o . o # o
        o # o . o # o
        o # o o o # o
        o # # # # # o
        o o o o o o o
        """
    )


def test_a_hole_is_outside_and_its_rim_is_not():
    assert draw(polygon(box(0, 0, 6, 6), box(2, 2, 4, 4)), GRID, GRID) == drawn(
        """
        o o o o o o o
        o # # # # # o
        o # o o o # o
        o # o . o # o
        o # o o o # o
        o # # # # # o
        o o o o o o o
        """
    )


def test_a_hole_may_touch_the_outer_ring_in_a_point():
    assert draw(polygon(box(0, 0, 6, 6), ring((0, 3), (3, 1), (5, 3), (3, 5))), GRID, GRID) == drawn(
        """
        o o o o o o o
        o # # o # # o
        o # . . o # o
        o . . . . o o
        o # . . o # o
        o # # o # # o
        o o o o o o o
        """
    )


def test_parts_that_touch_in_a_corner_both_count():
    assert draw(MultiPolygon(((box(0, 0, 3, 3),), (box(3, 3, 6, 6),))), GRID, GRID) == drawn(
        """
        . . . o o o o
        . . . o # # o
        . . . o # # o
        o o o o o o o
        o # # o . . .
        o # # o . . .
        o o o o . . .
        """
    )


def test_a_part_inside_anothers_hole_counts():
    island = MultiPolygon(((box(0, 0, 8, 8), box(2, 2, 7, 7)), (box(3, 3, 6, 5),)))
    lons = [float(n) for n in range(9)]
    assert draw(island, lons, lons) == drawn(
        """
        o o o o o o o o o
        o # o o o o o o o
        o # o . . . . o o
        o # o o o o o o o
        o # o o # # o o o
        o # o o o o o o o
        o # o o o o o o o
        o # # # # # # # o
        o o o o o o o o o
        """
    )


@pytest.mark.parametrize(
    "shape",
    [
        polygon(box(178, 0, 182, 2)),
        polygon(box(-182, 0, -178, 2)),
        Rectangle((178.0, 0.0, 182.0, 2.0)),
        Rectangle((178.0, 0.0, -178.0, 2.0)),
        Rectangle((-182.0, 0.0, -178.0, 2.0)),
    ],
)
def test_across_the_antimeridian_in_whatever_way_it_is_written(shape):
    # On the line itself the pieces of a polygon have an edge, which is how it is stored; it is covered all the same.
    lons = [177.0, 178.0, 179.0, 180.0, -180.0, -179.0, -178.0, -177.0]
    assert draw(shape, lons, [-1.0, 0.0, 1.0, 2.0, 3.0]).replace("#", "o") == drawn(
        """
        . . . . . . . .
        . o o o o o o .
        . o o o o o o .
        . o o o o o o .
        . . . . . . . .
        """
    )


def test_a_hole_across_the_antimeridian_is_a_hole_on_both_sides():
    lons = [177.0, 178.0, 179.0, 180.0, -180.0, -179.0, -178.0, -177.0]
    shape = polygon(box(177, 0, 183, 4), box(178, 1, 182, 3))
    assert draw(shape, lons, [0.0, 1.0, 2.0, 3.0, 4.0]) == drawn(
        """
        o o o o o o o o
        o o o o o o o o
        o o . . . . o o
        o o o o o o o o
        o o o o o o o o
        """
    )


@pytest.mark.parametrize("lon", [180.0, -180.0])
@pytest.mark.parametrize("shape", [Rectangle((170.0, 0.0, 180.0, 1.0)), Rectangle((-180.0, 0.0, -170.0, 1.0))])
def test_lon_180_and_minus_180_are_one_line(shape, lon):
    square = Polygon((box(*shape.bbox),))
    for same in (shape, square):
        assert prepare(check_shape(same)).covers((lon, 0.5))
        assert not prepare(check_shape(same)).covers((lon, 1.5))


@pytest.mark.parametrize("lon", [-180.0, -100.0, 0.0, 15.0, 180.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_pole_has_every_longitude(lon, sign):
    south, north = sorted((80.0 * sign, 90.0 * sign))
    touching = [
        Rectangle((10.0, south, 20.0, north)),
        polygon(box(10, south, 20, north)),
        polygon(ring((10, 80 * sign), (20, 80 * sign), (15, 90 * sign))),
        Circle((15.0, 89.0 * sign), 112_000.0),
        Circle((15.0, 90.0 * sign), 1.0),
    ]
    for shape in touching:
        assert prepare(check_shape(shape)).covers((lon, 90 * sign))
        assert not prepare(check_shape(shape)).covers((lon, -90 * sign))
    for shape in (Rectangle((10.0, 80.0, 20.0, 89.9)), Circle((15.0, 89.0), 111_000.0)):
        assert not prepare(check_shape(shape)).covers((lon, 90.0))


def test_a_rectangle_around_the_globe_has_no_seam():
    area = prepare(check_shape(Rectangle((0.0, 10.0, 360.0, 20.0))))
    assert all(area.covers((lon, 15.0)) for lon in (-180.0, -179.9, -0.1, 0.0, 0.1, 179.9, 180.0))
    assert not area.covers((0.0, 20.1))


def test_a_circle_has_its_rim():
    for bearing in range(0, 360, 7):
        center = (116.3912, 39.9067)
        area = prepare(Circle(center, 500.0))
        assert area.covers(destination(center, bearing, 499.999_999))
        assert not area.covers(destination(center, bearing, 500.000_001))


def test_nan_is_nowhere():
    for shape in (Rectangle((-180.0, -90.0, 180.0, 90.0)), Circle((0.0, 0.0), 1e6), polygon(box(-1, -1, 1, 1))):
        area = prepare(shape)
        assert not area.covers((0.0, float("nan")))
        assert not area.covers((float("nan"), 0.0))
