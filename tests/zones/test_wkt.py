import pytest
import shapely
from hypothesis import HealthCheck, given, settings

from tests.zones.strategies import drawn_shapes, shapes
from zones import errors
from zones.covers import outline
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle
from zones.wkt import shape_from_wkt, shape_to_wkt

generous = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
TRIANGLE = ((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 0.0))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("POLYGON ((0 0, 4 0, 4 4, 0 0))", Polygon((TRIANGLE,))),
        ("polygon((0 0,4. 0,4e0 +4,-0 0))", Polygon((TRIANGLE,))),
        ("\n Polygon\t( ( 0 0 , 4 0 , 4 4 , 0 0 ) ) ", Polygon((TRIANGLE,))),
        ("MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)))", MultiPolygon(((TRIANGLE,),))),
        ("CIRCLE(116.3912 39.9067, 500)", Circle((116.3912, 39.9067), 500.0)),
        ("circle ( -.5 39 , 1e3 )", Circle((-0.5, 39.0), 1000.0)),
    ],
)
def test_shapes_are_read(text, shape):
    assert shape_from_wkt(text) == shape


def test_shapes_are_written_with_as_few_digits_as_needed():
    assert shape_to_wkt(Polygon((TRIANGLE,))) == "POLYGON ((0 0, 4 0, 4 4, 0 0))"
    assert shape_to_wkt(Circle((0.1, -1e-7), 1 / 3)) == "CIRCLE(0.1 -1e-07, 0.3333333333333333)"
    assert shape_to_wkt(Rectangle((1.0, 2.0, 3.0, 4.0))) == "POLYGON ((1 2, 3 2, 3 4, 1 4, 1 2))"


@generous
@given(shapes())
def test_what_is_written_reads_back_the_same(shape):
    back = shape_from_wkt(shape_to_wkt(shape))
    if isinstance(shape, Rectangle):
        assert outline(back).equals(outline(shape))
    else:
        assert back == shape


@generous
@given(drawn_shapes())
def test_shapely_reads_what_is_written_and_writes_what_is_read(shape):
    text = shape_to_wkt(shape)
    assert shapely.from_wkt(text) == outline(shape_from_wkt(text))
    again = shape_from_wkt(shapely.to_wkt(outline(shape), rounding_precision=17))
    assert outline(again).equals_exact(outline(shape), 1e-15)


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", "wkt_invalid", "the end"),
        ("POINT (1 2)", "wkt_invalid", "'POINT'"),
        ("LINESTRING (1 2, 3 4)", "wkt_invalid", "'LINESTRING'"),
        ("GEOMETRYCOLLECTION (POLYGON ((0 0, 4 0, 4 4, 0 0)))", "wkt_invalid", "'GEOMETRYCOLLECTION'"),
        ("SRID=4326;POLYGON ((0 0, 4 0, 4 4, 0 0))", "wkt_invalid", "'SRID'"),
        ("POLYGON EMPTY", "shape_empty", "EMPTY"),
        ("MULTIPOLYGON EMPTY", "shape_empty", "EMPTY"),
        ("POLYGON Z ((0 0 1, 4 0 1, 4 4 1, 0 0 1))", "coordinate_not_2d", "POLYGON Z"),
        ("POLYGONZ ((0 0 1, 4 0 1, 4 4 1, 0 0 1))", "wkt_invalid", "'POLYGONZ'"),
        ("POLYGON ((0 0 1, 4 0 1, 4 4 1, 0 0 1))", "coordinate_not_2d", "0 0 1"),
        ("POLYGON M ((0 0 1, 4 0 1, 4 4 1, 0 0 1))", "coordinate_not_2d", "POLYGON M"),
        ("POLYGON ((0 0, 4 0, 4 4, 0 0)", "wkt_invalid", "the end where ')'"),
        ("POLYGON ((0 0, 4 0, 4 4, 0 0)))", "wkt_invalid", "')' where the end"),
        ("POLYGON (0 0, 4 0, 4 4, 0 0)", "wkt_invalid", "'0' where '('"),
        ("POLYGON ((0 0, 4, 4 4, 0 0))", "wkt_invalid", "',' where a number"),
        ("POLYGON ((0 0, , 4 4, 0 0))", "wkt_invalid", "',' where a number"),
        ("POLYGON ((0 0, x 0, 4 4, 0 0))", "wkt_invalid", "'x' where a number"),
        ("POLYGON ((0 0, 4e 0, 4 4, 0 0))", "wkt_invalid", "where a number"),
        ("POLYGON ((0 0, 1.2.3 0, 4 4, 0 0))", "wkt_invalid", "where a number"),
        ("POLYGON ((0 0, ٤ 0, 4 4, 0 0))", "wkt_invalid", "where a number"),
        ("POLYGON ((0 0, 1_0 0, 4 4, 0 0))", "wkt_invalid", "where a number"),
        ("POLYGON ((0 0, nan 0, 4 4, 0 0))", "coordinate_invalid", "nan"),
        ("POLYGON ((0 0, 4 Infinity, 4 4, 0 0))", "coordinate_invalid", "Infinity"),
        ("POLYGON ((0 0, 1e999 0, 4 4, 0 0))", "coordinate_invalid", "Point 2"),
        ("POLYGON ((0 0, 4 0, 4 4))", "ring_unclosed", "lon 4, lat 4"),
        ("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))", "ring_crosses_itself", "lon 2, lat 2"),
        ("POLYGON ((0 0, 4 95, 4 0, 0 0))", "coordinate_out_of_range", "lat 95"),
        ("CIRCLE(1 2)", "wkt_invalid", "')' where ','"),
        ("CIRCLE(1 2 3, 4)", "coordinate_not_2d", "1 2 3"),
        ("CIRCLE(1 2, 3 4)", "wkt_invalid", "'4' where ')'"),
        ("CIRCLE(1 2, 0)", "radius_out_of_range", "0 m"),
        ("CIRCLE((1 2, 3))", "wkt_invalid", "'(' where a number"),
    ],
)
def test_bad_text_is_refused(text, code, says):
    with pytest.raises(errors.ShapeInvalid) as caught:
        shape_from_wkt(text)
    fault = caught.value
    assert (fault.code, says in fault.sentence, bool(fault.hint)) == (code, True, True), fault.sentence
