"""The stretches of a way that lie in a zone, against asking at a great many places of it."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.zones import strategies
from zones.boundaries import boundary_of
from zones.covers import prepare
from zones.crossings import along, stretches_in
from zones.geodesy import destination
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Shape
from zones.validation import check_shape

NEAR = 1e-7
U_SHAPE = Polygon(
    (((0.0, 0.0), (9.0, 0.0), (9.0, 9.0), (6.0, 9.0), (6.0, 3.0), (3.0, 3.0), (3.0, 9.0), (0.0, 9.0), (0.0, 0.0)),)
)


def drawn(shape: Shape, start: Point, end: Point, steps: int = 12) -> str:
    """The way as text: `#` in a stretch, `.` elsewhere, looked at in the middle of each step."""
    found = stretches_in(boundary_of(check_shape(shape)), start, end)
    shares = [(step + 0.5) / steps for step in range(steps)]
    return "".join("#" if any(low <= share <= high for low, high in found) else "." for share in shares)


@pytest.mark.parametrize(
    ("shape", "start", "end", "expected"),
    [
        (Rectangle((0.0, 0.0, 6.0, 6.0)), (-3.0, 3.0), (9.0, 3.0), "...######..."),
        (Rectangle((0.0, 0.0, 6.0, 6.0)), (-3.0, 7.0), (9.0, 7.0), "............"),
        (Rectangle((0.0, 0.0, 6.0, 6.0)), (-3.0, 6.0), (9.0, 6.0), "...######..."),  # along its edge
        (Rectangle((0.0, 0.0, 6.0, 6.0)), (-6.0, 0.0), (0.0, 6.0), "............"),  # touches a corner only
        (U_SHAPE, (-1.5, 6.0), (10.5, 6.0), ".####..####."),  # both arms
        (U_SHAPE, (-1.5, 1.0), (10.5, 1.0), ".##########."),
        (Rectangle((177.0, 0.0, -177.0, 6.0)), (174.0, 3.0), (-174.0, 3.0), "...######..."),
        (Rectangle((177.0, 0.0, -177.0, 6.0)), (-174.0, 3.0), (174.0, 3.0), "...######..."),
        (Rectangle((-177.0, 0.0, -174.0, 6.0)), (177.0, 3.0), (-171.0, 3.0), "......###..."),
        (Rectangle((0.0, 0.0, 6.0, 6.0)), (3.0, 3.0), (3.0, 3.0), "............"),  # standing still
        (Circle((0.0, 0.0), 333_000.0), (-6.0, 0.0), (6.0, 0.0), "...######..."),
        (Circle((180.0, 0.0), 333_000.0), (174.0, 0.0), (-174.0, 0.0), "...######..."),
        (Circle((0.0, 90.0), 556_600.0), (-15.0, 80.0), (-15.0, 90.0), "......######"),
    ],
)
def test_drawn_ways(shape: Shape, start: Point, end: Point, expected: str):
    assert drawn(shape, start, end) == expected


def check(shape: Shape, start: Point, end: Point, samples: int = 60) -> None:
    covers = prepare(shape).covers
    found = stretches_in(boundary_of(shape), start, end)
    assert all(0 <= low < high <= 1 for low, high in found)
    assert all(first[1] < second[0] for first, second in pairwise(found))
    cuts = sorted({0.0, 1.0, *(share for each in found for share in each)})
    middles = [(low + high) / 2 for low, high in pairwise(cuts)]
    for share in (*middles, *(step / samples for step in range(1, samples))):
        if all(abs(share - cut) > NEAR for cut in cuts):
            is_in = any(low < share < high for low, high in found)
            around = {covers(along(start, end, share + step)) for step in (-NEAR, 0.0, NEAR)}
            assert is_in in around if len(around) == 2 else around == {is_in}, share  # a touch is no stretch


@given(strategies.shapes(), strategies.points(), strategies.points())
@settings(max_examples=150)
def test_what_is_in_a_stretch_is_covered_and_nothing_else(shape: Shape, start: Point, end: Point):
    if abs(start[0] - end[0]) not in (180, 360) and start != end:  # there must be a way, and a short side
        check(shape, start, end)


@given(strategies.shapes(), st.data())
@settings(max_examples=150)
def test_the_same_holds_for_short_ways_near_the_zone(shape: Shape, data: st.DataObject):
    places = [shape.center] if isinstance(shape, Circle) else []
    if isinstance(shape, Rectangle):
        places = [(shape.bbox[0], shape.bbox[1]), (shape.bbox[2], shape.bbox[3])]
    elif isinstance(shape, Polygon):
        places = list(shape.coordinates[0])
    elif isinstance(shape, MultiPolygon):
        places = list(shape.coordinates[0][0])
    middle = data.draw(st.sampled_from(places))
    size = shape.radius_m * 1.5 if isinstance(shape, Circle) else data.draw(st.sampled_from([1.0, 1000.0, 300_000.0]))
    bearing = st.floats(0, 359)
    start, end = (destination(middle, data.draw(bearing), size * data.draw(st.floats(0.1, 1))) for _ in range(2))
    if abs(start[0] - end[0]) < 170 and start != end:
        check(shape, start, end)


def test_the_way_takes_the_short_side():
    assert along((179.0, 0.0), (-179.0, 2.0), 0.5) == (180.0, 1.0)
    assert along((-179.0, 0.0), (179.0, 2.0), 0.75) == (179.5, 1.5)
