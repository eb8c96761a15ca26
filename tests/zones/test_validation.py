"""Each fault has its own code, and the sentence says where it is."""

import math
import time

import pytest
from hypothesis import HealthCheck, given, settings

from tests.zones.drawing import box, polygon, ring
from tests.zones.strategies import shapes
from zones import errors
from zones.covers import outline
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle, Shape
from zones.validation import MAX_HOLES, MAX_PARTS, MAX_VERTICES, check_shape

NAN, INF = math.nan, math.inf
SQUARE = box(0, 0, 6, 6)


def circle_ring(corners: int, lon: float = 0.0, lat: float = 0.0, size: float = 10.0):
    turn = [math.tau * k / corners for k in range(corners)]
    return ring(*((lon + size * math.cos(angle), lat + size * math.sin(angle)) for angle in turn))


def refused(shape: Shape) -> errors.ShapeInvalid:
    with pytest.raises(errors.ShapeInvalid) as caught:
        check_shape(shape)
    fault = caught.value
    assert fault.sentence.endswith(".")
    assert fault.hint.endswith(".")
    return fault


# A shape, the code of its fault, and what the sentence must say about the place.
FAULTS = [
    (Polygon(()), "shape_empty", "no rings"),
    (MultiPolygon(()), "shape_empty", "no rings"),
    (MultiPolygon(((SQUARE,), ())), "shape_empty", "no rings"),
    (polygon(()), "ring_too_short", "the outer ring"),
    (polygon(((0, 0), (1, 1), (0, 0))), "ring_too_short", "the outer ring is 3"),
    (polygon(SQUARE, ((1, 1), (2, 2))), "ring_too_short", "hole 1 is 2"),
    (polygon(((0, 0), (1, 0), (1, 1), (0, 1))), "ring_unclosed", "the outer ring, lon 0, lat 1"),
    (polygon(SQUARE, ((1, 1), (2, 1), (2, 2))), "ring_unclosed", "hole 1, lon 2, lat 2"),
    (polygon(ring((0, 0), (1, 0), (1, 0), (1, 1))), "ring_repeats_point", "Points 2 and 3 of the outer ring"),
    (polygon((*SQUARE, SQUARE[-1])), "ring_repeats_point", "Points 5 and 6 of the outer ring"),
    (polygon(ring((0, 0), (1, 1), (3, 3))), "zero_area", "on one line, from lon 0, lat 0"),
    (polygon(SQUARE, ring((1, 1), (1, 2), (1, 3))), "zero_area", "hole 1"),
    (polygon(ring((0, 0), (4, 0), (4, 2), (7, 2), (4, 2), (4, 4), (0, 4))), "ring_has_spike", "Point 4 of the outer"),
    (polygon(ring((0, 0), (9, 0), (4, 0), (4, 4), (0, 4))), "ring_has_spike", "lon 9, lat 0"),
    (polygon(ring((-2, 0), (4, 0), (4, 4), (0, 4), (0, 0), (-1, 0))), "ring_has_spike", "Point 1 of the outer"),
    (polygon(ring((0, 0), (4, 4), (4, 0), (0, 4))), "ring_crosses_itself", "At lon 2, lat 2 the outer ring"),
    (polygon(SQUARE, ring((1, 1), (3, 3), (3, 1), (1, 3))), "ring_crosses_itself", "At lon 2, lat 2 hole 1"),
    (polygon(ring((0, 0), (6, 0), (6, 6), (3, 0), (0, 6))), "ring_touches_itself", "lon 3, lat 0"),
    (polygon(SQUARE, box(8, 8, 9, 9)), "hole_outside", "hole 1 is outside the outer ring"),
    (polygon(SQUARE, box(1, 1, 2, 2), box(5, 1, 7, 2)), "hole_outside", "At lon 6, lat 2 hole 2 is outside"),
    (polygon(SQUARE, box(-1, -1, 7, 7)), "hole_outside", "hole 1"),
    (polygon(SQUARE, box(6, 1, 7, 2)), "hole_outside", "hole 1"),
    (polygon(SQUARE, box(0, 1, 2, 3)), "hole_touches_along_edge", "hole 1 touches the outer ring along an edge"),
    (polygon(SQUARE, SQUARE), "hole_touches_along_edge", "hole 1"),
    (polygon(SQUARE, box(1, 1, 2, 2), box(2, 1, 3, 2)), "hole_touches_along_edge", "hole 2 touches hole 1"),
    (polygon(SQUARE, box(1, 1, 3, 3), box(2, 2, 4, 4)), "holes_overlap", "hole 1 and hole 2"),
    (polygon(SQUARE, box(1, 1, 5, 5), box(2, 2, 4, 4)), "holes_overlap", "hole 1 and hole 2"),
    (polygon(SQUARE, ring((0, 3), (3, 1), (6, 3), (3, 5))), "interior_disconnected", "lat 3 holes of the polygon"),
    (MultiPolygon(((box(0, 0, 4, 4),), (box(2, 2, 6, 6),))), "parts_overlap", "parts 1 and 2"),
    (MultiPolygon(((SQUARE,), (box(20, 0, 21, 1),), (box(1, 1, 2, 2),))), "parts_overlap", "parts 1 and 3"),
    (MultiPolygon(((SQUARE,), (SQUARE,))), "parts_overlap", "parts 1 and 2"),
    (MultiPolygon(((SQUARE,), (box(6, 2, 8, 4),))), "parts_touch_along_edge", "At lon 6, lat 4 parts 1 and 2"),
    (MultiPolygon(((SQUARE,), (ring((9, 0), (11, 2), (11, 0), (9, 2)),))), "ring_crosses_itself", "ring of part 2"),
    (MultiPolygon(((SQUARE,), (box(9, 0, 12, 3), box(10, 1, 15, 2)))), "hole_outside", "hole 1 of part 2"),
    (polygon(ring((0, 0), (1, NAN), (1, 1))), "coordinate_invalid", "Point 2 of the outer ring"),
    (polygon(ring((0, 0), (INF, 0), (1, 1))), "coordinate_invalid", "Point 2 of the outer ring"),
    (Circle((NAN, 0.0), 5.0), "coordinate_invalid", "The circle's centre"),
    (Circle((0.0, 0.0), NAN), "coordinate_invalid", "The circle's radius"),
    (Circle((0.0, 0.0), INF), "coordinate_invalid", "The circle's radius"),
    (Rectangle((0.0, 0.0, 1.0, -INF)), "coordinate_invalid", "north-east corner"),
    (polygon(ring((0, 0), (1, 0), (1, 90.1))), "coordinate_out_of_range", "Point 3 of the outer ring is at lon 1"),
    (polygon(ring((359, 0), (361, 0), (360, 1))), "coordinate_out_of_range", "lon 361"),
    (Circle((180.5, 0.0), 5.0), "coordinate_out_of_range", "lon 180.5"),
    (Circle((0.0, 91.0), 5.0), "coordinate_out_of_range", "lat 91"),
    (Rectangle((0.0, -91.0, 1.0, 1.0)), "coordinate_out_of_range", "south-west corner is at lon 0, lat -91"),
    (Circle((0.0, 0.0), 0.0), "radius_out_of_range", "radius is 0 m"),
    (Circle((0.0, 0.0), -1.0), "radius_out_of_range", "radius is -1 m"),
    (Circle((0.0, 0.0), 1_000_000.1), "radius_out_of_range", "1000000.1 m"),
    (Rectangle((0.0, 5.0, 1.0, 4.0)), "rectangle_upside_down", "lat 5"),
    (Rectangle((0.0, 5.0, 1.0, 5.0)), "zero_area", "lat 5"),
    (Rectangle((1.0, 4.0, 1.0, 5.0)), "zero_area", "lon 1"),
    (Rectangle((180.0, 4.0, -180.0, 5.0)), "zero_area", "lon 180"),
    (Rectangle((-181.0, 4.0, 180.0, 5.0)), "antimeridian_ambiguous", "361 degrees"),
    (Rectangle((190.0, 4.0, 170.0, 5.0)), "antimeridian_ambiguous", "190"),
    (polygon(ring((170, 0), (-170, 0), (-170, 5), (170, 5))), "antimeridian_ambiguous", "points 1 and 2 of the outer"),
    (polygon(box(-180, 0, 180, 5)), "antimeridian_ambiguous", "from -180 to 180"),
    (
        polygon(ring((-200, 0), (-20, 0), (160, 0), (160, 5), (-20, 5), (-200, 5))),
        "antimeridian_ambiguous",
        "from lon -200 to 160",
    ),
    (MultiPolygon(((box(178, 0, 184, 2),), (box(-177, 1, -175, 3),))), "parts_overlap", "lon -17"),
    (MultiPolygon(((box(178, 0, 184, 2),), (box(-176, 0, -175, 2),))), "parts_touch_along_edge", "lon -176"),
    (polygon(circle_ring(MAX_VERTICES + 1)), "too_many_vertices", "10,001 vertices"),
    (MultiPolygon(tuple((box(k, 0, k + 0.5, 1),) for k in range(MAX_PARTS + 1))), "too_many_parts", "101 parts"),
    (
        polygon(box(-1, -1, 101, 21), *(box(k % 100, k // 100, k % 100 + 0.5, k // 100 + 0.5) for k in range(1001))),
        "too_many_holes",
        "1,001 holes",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "code", "place"), FAULTS, ids=[f"{n}-{code}" for n, (_, code, _) in enumerate(FAULTS)]
)
def test_a_fault_has_its_code_and_place(shape, code, place):
    fault = refused(shape)
    assert (fault.code, place in fault.sentence) == (code, True), fault.sentence


def test_no_kind_of_fault_is_left_untested():
    # The ones that are about text and not about shapes are tested where text is read.
    elsewhere = {"shape_invalid", "geojson_invalid", "wkt_invalid", "coordinate_not_2d"}
    kinds = {kind.code for kind in errors.ShapeInvalid.__subclasses__()}
    assert {code for _, code, _ in FAULTS} == kinds - elsewhere


def test_a_fault_has_the_place_as_numbers_too():
    details = refused(polygon(ring((0, 0), (4, 4), (4, 0), (0, 4)))).details
    assert details == {"ring": "the outer ring", "lon": 2.0, "lat": 2.0}


@pytest.mark.parametrize(
    "shape",
    [
        polygon(circle_ring(MAX_VERTICES)),
        MultiPolygon(tuple((box(k, 0, k + 0.5, 1),) for k in range(MAX_PARTS))),
        polygon(
            box(-1, -1, 101, 21),
            *(box(k % 100, k // 100, k % 100 + 0.5, k // 100 + 0.5)[::-1] for k in range(MAX_HOLES)),
        ),
        Circle((180.0, -90.0), 1_000_000.0),
        Circle((0.0, 0.0), 1e-9),
        Rectangle((-180.0, -90.0, 180.0, 90.0)),
    ],
)
def test_what_is_just_allowed_passes_unchanged(shape):
    assert check_shape(shape) == shape


def test_rings_wind_as_the_standard_says_and_begin_where_they_began():
    shape = polygon(box(0, 0, 6, 6)[::-1], box(1, 1, 2, 2))
    assert check_shape(shape) == polygon(box(0, 0, 6, 6), box(1, 1, 2, 2)[::-1])


def test_a_point_on_an_edge_is_not_taken_out():
    shape = polygon(ring((0, 0), (1, 0), (2, 0), (2, 2)))
    assert check_shape(shape) == shape


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(shapes())
def test_a_checked_shape_stays_as_it_is(shape):
    assert check_shape(shape) == shape


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(shapes())
def test_a_checked_shape_is_valid_for_shapely(shape):
    assert outline(shape).is_valid


def test_shapes_built_to_be_slow_are_refused_quickly():
    fan = [ring((50, 10), (50 + k / 1000, 11), (50 + (k + 0.5) / 1000, 11)) for k in range(990)]
    combs = [
        ring(*((0.001 * k, (1 if k % 2 else 0)) for k in range(4000)), (4, 2), (0, 2)),
        ring(*(((1 if k % 2 else 0), 0.0005 * k) for k in range(4000)), (5, 2), (5, 0)),
    ]
    began = time.process_time()
    assert refused(polygon(box(0, 0, 100, 20), *fan, box(99, 1, 101, 2))).code == "hole_outside"
    behind_the_limit = refused(polygon(box(0, 0, 100, 20), *fan, box(60, 1, 70, 9), box(61, 2, 65, 8)))
    assert behind_the_limit.sentence == "The shape is not valid at lon 61, lat 2: holes are nested."
    assert refused(MultiPolygon(tuple((one,) for one in combs))).code == "parts_overlap"
    assert time.process_time() - began < 5
