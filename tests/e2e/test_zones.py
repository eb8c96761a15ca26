"""Zones over HTTP: written, read, changed under a version, imported."""

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import LiveServer

_SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}


def features(*names: str):
    items = [{"type": "Feature", "id": name, "properties": {"n": name}, "geometry": _SQUARE} for name in names]
    return {"type": "FeatureCollection", "features": items}


def test_each_shape_comes_back_as_it_was_written(live_server: LiveServer):
    mike = live_server.user("mike")
    shapes = [
        _SQUARE,
        {"type": "MultiPolygon", "coordinates": [_SQUARE["coordinates"], [[[5, 5], [6, 5], [6, 6], [5, 5]]]]},
        {"type": "Rectangle", "bbox": [10.0, 50.0, 11.0, 51.0]},
        {"type": "Circle", "center": [116.3688, 39.9087], "radius_m": 200.0},
    ]
    for shape in shapes:
        name = f"{mike.name}.{shape['type']}"
        body = {"shape": shape, "properties": {"floor": 3}, "tags": ["shop"], "on_devices": True}
        mike.done("PUT", f"/v1/zones/{name}", body)
        read = mike.done("GET", f"/v1/zones/{name}")
        assert (read["shape"], read["properties"], read["tags"]) == (shape, {"floor": 3}, ["shop"])
        assert (read["name"], read["version"], read["on_devices"]) == (name, 1, True)


def test_a_change_under_an_old_version_is_refused(live_server: LiveServer):
    mike = live_server.user("mike")
    path = f"/v1/zones/{mike.name}.HOME"
    first = mike.ask("PUT", path, {"shape": _SQUARE})
    assert (first.status_code, first.headers["etag"]) == (201, '"1"')
    second = mike.ask("PUT", path, {"shape": _SQUARE, "tags": ["a"]}, headers={"If-Match": '"1"'})
    assert (second.status_code, second.headers["etag"]) == (200, '"2"')
    third = mike.ask("PUT", path, {"shape": _SQUARE}, headers={"If-Match": '"1"'})
    assert (third.status_code, third.json()["code"]) == (412, "version_mismatch")
    assert mike.done("GET", path)["tags"] == ["a"]


def test_an_import_says_which_names_it_had_to_change(live_server: LiveServer):
    mike = live_server.user("mike")
    answer = mike.done("POST", "/v1/zones:import", features("Gate.7", "Hall"))
    assert answer == {"imported": 2, "renamed": {"Gate.7": "Gate_7"}}
    assert mike.done("GET", f"/v1/zones/{mike.name}.Gate_7")["properties"] == {"n": "Gate.7"}


def test_two_features_that_fold_to_one_name_are_refused_together(live_server: LiveServer):
    mike = live_server.user("mike")
    answer = mike.ask("POST", "/v1/zones:import", features("Hall", "HALL"))
    assert (answer.status_code, answer.json()["code"]) == (409, "zone_exists")
    assert mike.done("GET", "/v1/zones", params={"owner": mike.name})["items"] == []


@pytest.mark.slow
def test_a_real_file_is_imported_and_paged_through(live_server: LiveServer, shared_data: Path):
    mike = live_server.user("mike")
    raw = gzip.decompress((shared_data / "zones_communes_rhone.geojson.gz").read_bytes())
    expected = [feature["id"] for feature in json.loads(raw)["features"]]
    assert mike.done("POST", "/v1/zones:import", raw)["imported"] == len(expected)
    found, after = [], 0
    while after is not None:
        page = mike.done("GET", "/v1/zones", params={"owner": mike.name, "limit": 1000, "after": after})
        found += [zone["name"].rpartition(".")[2] for zone in page["items"]]
        after = page["next"]
    assert found == [str(name) for name in expected]


def test_the_pages_of_the_api_docs_load_nothing_from_elsewhere(live_server: LiveServer):
    page = live_server.http.get("/docs").text
    parts = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(parts) >= 2
    for part in parts:
        assert part.startswith("/"), part
        assert live_server.http.get(part).status_code == 200


def test_a_zone_with_a_slash_in_its_name_can_be_read_and_deleted(live_server: LiveServer):
    mike = live_server.user("mike")
    mike.done("POST", "/v1/zones:import", features("Hall A/B"))
    path = f"/v1/zones/{mike.name}.Hall%20A%2FB"
    assert mike.done("GET", path)["properties"] == {"n": "Hall A/B"}
    mike.done("DELETE", path)
    assert mike.ask("GET", path).status_code == 404
