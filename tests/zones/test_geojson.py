import json
import math

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from tests.zones.strategies import drawn_shapes, shapes
from zones import errors
from zones.covers import outline
from zones.geojson import (
    Feature,
    feature_to_geojson,
    features_from_geojson,
    geometry_from_geojson,
    point_from_geojson,
    shape_from_geojson,
    shape_to_geojson,
)
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle, Shape

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
CROSSED = [[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]
generous = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


def collection(*features, **more):
    return {"type": "FeatureCollection", "features": list(features), **more}


def feature(geometry, **more):
    return {"type": "Feature", "geometry": geometry, "properties": {}, **more}


def test_the_four_shapes_are_read():
    ring = tuple((float(lon), float(lat)) for lon, lat in SQUARE)
    assert shape_from_geojson({"type": "Polygon", "coordinates": [SQUARE]}) == Polygon((ring,))
    assert shape_from_geojson({"type": "MultiPolygon", "coordinates": [[SQUARE]]}) == MultiPolygon(((ring,),))
    assert shape_from_geojson({"type": "Circle", "center": [1, 2], "radius_m": 3}) == Circle((1.0, 2.0), 3.0)
    assert shape_from_geojson({"type": "Rectangle", "bbox": [1, 2, 3, 4]}) == Rectangle((1.0, 2.0, 3.0, 4.0))


def test_whole_numbers_become_floats():
    shape = shape_from_geojson({"type": "Polygon", "coordinates": [SQUARE]})
    assert {type(number) for point in shape.coordinates[0] for number in point} == {float}


@generous
@given(shapes())
def test_a_shape_survives_the_way_through_json(shape):
    assert shape_from_geojson(json.loads(json.dumps(shape_to_geojson(shape)))) == shape


@generous
@given(shapes())
def test_the_structs_own_encoding_is_the_same_json(shape):
    """The store and the protocol write shapes with msgspec; people read them as GeoJSON."""
    assert json.loads(msgspec.json.encode(shape)) == json.loads(json.dumps(shape_to_geojson(shape)))
    assert msgspec.json.decode(msgspec.json.encode(shape), type=Shape) == shape


@generous
@given(drawn_shapes())
def test_a_drawn_feature_covers_the_same_area_after_import(shape):
    text = json.dumps(collection(feature_to_geojson("a", shape, {"k": 1})))
    (back,) = features_from_geojson(json.loads(text))
    assert (back.name, back.properties) == ("a", {"k": 1})
    assert outline(back.shape).equals(outline(shape))
    if not isinstance(shape, Rectangle):
        assert back.shape == shape


def test_a_circle_goes_out_as_a_point_and_comes_back_as_a_circle():
    circle = Circle((116.39, 39.9), 500.0)
    out = feature_to_geojson("Xidan", circle, {"kind": "mall"})
    assert out == {
        "type": "Feature",
        "id": "Xidan",
        "geometry": {"type": "Point", "coordinates": [116.39, 39.9]},
        "properties": {"kind": "mall", "radius_m": 500.0},
    }
    assert features_from_geojson(collection(out)) == [Feature("Xidan", circle, {"kind": "mall"})]


@pytest.mark.parametrize(
    ("obj", "code", "says"),
    [
        (None, "geojson_invalid", "missing"),
        ([], "geojson_invalid", "an array"),
        ("POLYGON", "geojson_invalid", "'POLYGON'"),
        ({}, "geojson_invalid", "type is missing"),
        ({"type": "LineString", "coordinates": SQUARE}, "geojson_invalid", "'LineString'"),
        ({"type": "Point", "coordinates": [1, 2]}, "geojson_invalid", "'Point'"),
        ({"type": ["Polygon"]}, "geojson_invalid", "an array"),
        ({"type": "Polygon"}, "geojson_invalid", "coordinates is missing"),
        ({"type": "Polygon", "coordinates": "x"}, "geojson_invalid", "coordinates is 'x'"),
        ({"type": "Polygon", "coordinates": SQUARE}, "geojson_invalid", "coordinates[0][0] is 0"),
        ({"type": "Polygon", "coordinates": []}, "shape_empty", "no rings"),
        ({"type": "MultiPolygon", "coordinates": []}, "shape_empty", "no rings"),
        ({"type": "Polygon", "coordinates": [[[0, 0, 5], [1, 0]]]}, "coordinate_not_2d", "[0][0] has 3"),
        ({"type": "Polygon", "coordinates": [[[0], [1, 0], [1, 1], [0, 0]]]}, "coordinate_invalid", "[0][0] has 1"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [True, 0]]]}, "coordinate_invalid", "[0][1][0] is true"),
        ({"type": "Polygon", "coordinates": [[[0, 0], ["1", 0]]]}, "coordinate_invalid", "coordinates[0][1][0] is '1'"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, None]]]}, "coordinate_invalid", "[0][1][1] is missing"),
        ({"type": "Polygon", "coordinates": [[[0.0, math.nan]]]}, "coordinate_invalid", "coordinates[0][0][1] is nan"),
        ({"type": "Polygon", "coordinates": [[[0.0, math.inf]]]}, "coordinate_invalid", "coordinates[0][0][1] is inf"),
        ({"type": "Polygon", "coordinates": [[[10**400, 0]]]}, "coordinate_invalid", "huge"),
        ({"type": "Polygon", "coordinates": [[[10**9, 0]]]}, "coordinate_out_of_range", "lon 1000000000"),
        ({"type": "Polygon", "coordinates": [CROSSED]}, "ring_crosses_itself", "lon 2, lat 2"),
        ({"type": "Circle", "radius_m": 5}, "geojson_invalid", "center is missing"),
        ({"type": "Circle", "center": [1, 2, 3], "radius_m": 5}, "coordinate_not_2d", "center has 3"),
        ({"type": "Circle", "center": [1, 2]}, "coordinate_invalid", "radius_m is missing"),
        ({"type": "Circle", "center": [1, 2], "radius_m": "5"}, "coordinate_invalid", "radius_m is '5'"),
        ({"type": "Circle", "center": [1, 2], "radius_m": True}, "coordinate_invalid", "radius_m is true"),
        ({"type": "Circle", "center": [1, 2], "radius_m": -5}, "radius_out_of_range", "-5 m"),
        ({"type": "Rectangle", "bbox": [1, 2, 3]}, "coordinate_invalid", "bbox has 3"),
        ({"type": "Rectangle", "bbox": [1, 2, 0, 3, 4, 9]}, "coordinate_not_2d", "bbox has 6"),
        ({"type": "Rectangle", "bbox": [1, 2, 3, "4"]}, "coordinate_invalid", "bbox[3] is '4'"),
        ({"type": "Rectangle", "bbox": {"west": 1}}, "geojson_invalid", "bbox is an object"),
    ],
)  # fmt: skip
def test_bad_geometry_is_refused_with_its_path(obj, code, says):
    with pytest.raises(errors.ShapeInvalid) as caught:
        shape_from_geojson(obj)
    fault = caught.value
    assert (fault.code, says in fault.sentence, bool(fault.hint)) == (code, True, True), fault.sentence


@pytest.mark.parametrize("obj", [[1, 2], (1.0, 2.0), {"type": "Point", "coordinates": [1.0, 2]}])
def test_a_place_is_a_pair_or_a_point(obj):
    assert point_from_geojson(obj) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("obj", "code"),
    [
        (None, "geojson_invalid"),
        ("1,2", "geojson_invalid"),
        ({"type": "Polygon", "coordinates": [SQUARE]}, "geojson_invalid"),
        ({"coordinates": [1, 2]}, "geojson_invalid"),
        ({"type": "Point"}, "geojson_invalid"),
        ([], "coordinate_invalid"),
        ([1], "coordinate_invalid"),
        ([1, "2"], "coordinate_invalid"),
        ([True, False], "coordinate_invalid"),
        ([math.nan, 2], "coordinate_invalid"),
        ([1, 2, 3], "coordinate_not_2d"),
        ([180.1, 2], "coordinate_out_of_range"),
        ([-181, 2], "coordinate_out_of_range"),
        ([1, 90.5], "coordinate_out_of_range"),
        ([10**30, 2], "coordinate_out_of_range"),
    ],
)
def test_a_bad_place_is_refused(obj, code):
    with pytest.raises(errors.ShapeInvalid) as caught:
        point_from_geojson(obj)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"id": "a.b"}, "a.b"),
        ({"id": 7}, "7"),
        ({"id": 7.0}, "7"),
        ({"id": 7.5}, "7.5"),
        ({"id": "x", "properties": {"name": "y"}}, "x"),
        ({"properties": {"name": "y"}}, "y"),
        ({"properties": {"name": 5}}, None),
        ({"properties": None}, None),
    ],
)
def test_a_feature_is_called_by_its_id_or_else_its_name(more, name):
    (read,) = features_from_geojson(collection(feature({"type": "Polygon", "coordinates": [SQUARE]}, **more)))
    assert read.name == name


GOOD = feature({"type": "Polygon", "coordinates": [SQUARE]}, id="good")


@pytest.mark.parametrize(
    ("bad", "code", "says"),
    [
        (feature({"type": "Polygon", "coordinates": [CROSSED]}, id="b"), "ring_crosses_itself", "Feature 1 (id 'b')"),
        (feature({"type": "Polygon", "coordinates": [CROSSED]}), "ring_crosses_itself", "Feature 1: At lon 2"),
        (feature({"type": "Point", "coordinates": [1, 2]}, id="p"), "geojson_invalid", "Feature 1 (id 'p'): A Point"),
        (feature(None, id="n"), "geojson_invalid", "Feature 1 (id 'n')"),
        (feature({"type": "Polygon", "coordinates": [SQUARE]}, id=True), "geojson_invalid", "The id is true"),
        (feature({"type": "Polygon", "coordinates": [SQUARE]}, id=10**400), "geojson_invalid", "Feature 1: The id"),
        (feature({"type": "Polygon", "coordinates": [SQUARE]}, properties=[]), "geojson_invalid", "an array"),
        ({"type": "Polygon", "coordinates": [SQUARE]}, "geojson_invalid", "Feature 1: The type is 'Polygon'"),
        ("x", "geojson_invalid", "Feature 1"),
        (
            feature({"type": "Point", "coordinates": [1, 2]}, properties={"radius_m": "5"}),
            "coordinate_invalid",
            "Feature 1: radius_m is '5'",
        ),
    ],
)  # fmt: skip
def test_a_fault_says_in_which_feature_it_is(bad, code, says):
    with pytest.raises(errors.ShapeInvalid) as caught:
        features_from_geojson(collection(GOOD, bad))
    fault = caught.value
    assert (fault.code, says in fault.sentence, fault.details["feature"]) == (code, True, 1), fault.sentence


@pytest.mark.parametrize(
    "obj", [None, [], GOOD, {"type": "FeatureCollection"}, {"type": "FeatureCollection", "features": {}}]
)
def test_what_is_no_collection_is_refused(obj):
    with pytest.raises(errors.GeoJsonInvalid):
        features_from_geojson(obj)


def test_a_file_in_another_reference_system_is_refused():
    lambert = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2154"}}
    with pytest.raises(errors.GeoJsonInvalid, match="EPSG::2154"):
        features_from_geojson(collection(GOOD, crs=lambert))
    same = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    assert len(features_from_geojson(collection(GOOD, crs=same))) == 1


def test_a_caller_keeps_its_own_properties():
    properties = {"radius_m": 5.0}
    features_from_geojson(collection(feature({"type": "Point", "coordinates": [1, 2]}, properties=properties)))
    assert properties == {"radius_m": 5.0}


def test_a_plane_has_no_range():
    far = {"type": "Polygon", "coordinates": [[[0, 0], [5000, 0], [5000, 5000], [0, 0]]]}
    assert geometry_from_geojson(far).coordinates[0][1] == (5000.0, 0.0)
