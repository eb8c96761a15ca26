"""Gazetteers: names and their places, from files."""

import pytest

from matcher.errors import LocationAmbiguous
from matcher.geocoding import Gazetteer, GazetteerInvalid, NamedPlace, places_from_csv, places_from_geojson


def test_names_are_found_however_they_are_written():
    book = Gazetteer([NamedPlace("Köln", (6.96, 50.94)), NamedPlace(" ＴＯＫＹＯ ", (139.7, 35.7))])
    for text in ("Köln", "KÖLN", "ko\u0308ln", "  köln"):
        assert book.locate(text) == (6.96, 50.94)
    assert book.locate("tokyo") == (139.7, 35.7)
    assert book.locate("Koln") is None
    assert book.locate("") is None


def test_a_name_of_two_places_is_no_place():
    book = Gazetteer([NamedPlace("Springfield", (-89.6, 39.8)), NamedPlace("SPRINGFIELD", (-93.3, 37.2))])
    with pytest.raises(LocationAmbiguous, match="'springfield'"):
        book.locate("springfield")


def test_a_place_that_is_listed_twice_is_one_place():
    places = [NamedPlace("a", (1.0, 2.0)), NamedPlace("a", (3.0, 4.0)), NamedPlace("a", (1.0, 2.0))]
    assert Gazetteer([places[0], places[2]]).locate("A") == (1.0, 2.0)
    with pytest.raises(LocationAmbiguous):
        Gazetteer(places).locate("A")


def test_a_csv_file_may_have_more_columns_in_any_order():
    text = '\ufeffid,Lat,Lon,Name,note\r\n1,39.91,116.37,"Xidan, west",\r\n\r\n2,50.94,6.96,"Kö\u2028ln"\r\n'
    assert places_from_csv(text.encode()) == [
        NamedPlace("Xidan, west", (116.37, 39.91)),
        NamedPlace("Kö\u2028ln", (6.96, 50.94)),
    ]


def test_a_geojson_file_names_points_by_a_property_or_by_id():
    text = """{"type": "FeatureCollection", "features": [
        {"type": "Feature", "id": "x", "properties": {"name": "Xidan"},
         "geometry": {"type": "Point", "coordinates": [116.37, 39.91]}},
        {"type": "Feature", "id": "Tower", "properties": null,
         "geometry": {"type": "Point", "coordinates": [6.96, 50.94]}}]}"""
    assert places_from_geojson(text.encode()) == [
        NamedPlace("Xidan", (116.37, 39.91)),
        NamedPlace("Tower", (6.96, 50.94)),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column name"),
        ("name,lon\na,1\n", "no column lat"),
        ("name,lon,lat\na,1\n", "Line 2: lon and lat are not numbers"),
        ("name,lon,lat\na,1,2\nb,east,2\n", "Line 3: lon and lat"),
        ("name,lon,lat\na,1,91\n", "Line 2: "),
        ("name,lon,lat\na,nan,1\n", "Line 2: "),
        ("name,lon,lat\n ,1,1\n", "Line 2 has no name"),
        ('name,lon,lat\n"a,1,1\n', "Line "),
        (b"name,lon,lat\n\xff,1,1\n", "not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said_with_its_line(text, said: str):
    with pytest.raises(GazetteerInvalid, match=said):
        places_from_csv(text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a FeatureCollection"),
        ('{"type": "Feature"}', "not a FeatureCollection"),
        ('{"type": "FeatureCollection", "features": [3]}', "Feature 0 is not an object"),
        ('{"type": "FeatureCollection", "features": [{"id": "a", "geometry": null}]}', "Feature 0: "),
        (
            '{"type": "FeatureCollection", "features": [{"geometry": {"type": "Point", "coordinates": [1, 2]}}]}',
            "Feature 0 has no name",
        ),
        (
            '{"type": "FeatureCollection", "features": [{"id": "a", "geometry": {"type": "Polygon"}}]}',
            "Feature 0: The place is an object of type 'Polygon'",
        ),
    ],
)
def test_what_is_wrong_with_a_geojson_file_is_said_with_its_feature(text: str, said: str):
    with pytest.raises(GazetteerInvalid, match=said):
        places_from_geojson(text.encode())
