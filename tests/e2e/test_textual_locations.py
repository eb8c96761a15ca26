"""Events whose place is a text: a zone's name, or a name of the gazetteer."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from matcher.geocoding import GazetteerInvalid
from server.app import create_app
from server.cli.main import main
from server.gazetteer import load_gazetteer
from server.settings import Settings
from tests.e2e.conftest import LiveServer, serving

_PLACES = "name,lon,lat\nOld Bridge,10.5,50.5\nMarket,10.5,50.5\nMarket,20.5,50.5\n"


@pytest.fixture(scope="module", params=["sqlite", "postgis"])
def town(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that knows some places by name."""
    folder = tmp_path_factory.mktemp("town")
    places = folder / "places.csv.gz"
    places.write_bytes(gzip.compress(_PLACES.encode()))
    options = ("--gazetteer", str(places))
    if request.param == "sqlite":
        with serving(f"sqlite:///{folder / 'fencepost.db'}", *options) as server:
            yield server
    else:
        with request.getfixturevalue("postgis_server").database() as url, serving(url, *options) as server:
            yield server


def test_the_name_of_a_zone_is_a_place_in_it(town: LiveServer):
    mike = town.user("mike")
    mike.square(f"{mike.name}.HOME", 10, 50)
    mike.subscribe("home", f"('{mike.name}') within ('{mike.name}.HOME')")
    mike.publish({"ts": 1000, "loc": f"{mike.name.upper()}.home"})
    (told,) = mike.told()
    assert (told["mode"], told["target"], told["loc"]) == ("enter", f"{mike.name}.HOME", [10.5, 50.5])


def test_a_zone_of_the_system_is_a_place_for_everybody(town: LiveServer):
    admin, mike = town.user("root", admin=True), town.user("mike")
    admin.square("SYSTEM.Plaza", 30, 10)
    mike.subscribe("here", f"('{mike.name}') within (SYSTEM.Plaza)")
    mike.publish({"ts": 1000, "loc": "SYSTEM.Plaza"})
    assert [each["loc"] for each in mike.told()] == [[30.5, 10.5]]


def test_a_name_of_the_gazetteer_is_a_place(town: LiveServer):
    mike = town.user("mike")
    mike.square(f"{mike.name}.BANK", 10, 50)
    mike.subscribe("bank", f"('{mike.name}') within ('{mike.name}.BANK') AND note = 'x'")
    events = [
        {"ts": 1000, "loc": "ＯＬＤ bridge", "note": "x"},
        {"ts": 2000, "loc": [0, 0], "note": "x"},
        {"ts": 3000, "loc": "Old Bridge", "note": "x"},
    ]
    assert mike.publish(*events) == {"accepted": 3, "late": 0}
    assert [(each["mode"], each["loc"]) for each in mike.told()] == [
        ("enter", [10.5, 50.5]),
        ("leave", [0, 0]),
        ("enter", [10.5, 50.5]),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Atlantis", "loc_unknown"),
        ("", "loc_unknown"),
        ("SYSTEM.Nowhere", "loc_unknown"),
        ("x" * 100_000, "loc_unknown"),
        ("nul\0", "loc_unknown"),
        ("market", "loc_ambiguous"),
    ],
)
def test_a_name_that_is_no_place_is_refused_and_changes_nothing(town: LiveServer, text: str, code: str):
    mike = town.user("mike")
    mike.publish({"ts": 1000, "loc": [0, 0]})
    before = town.dump()
    answer = mike.ask("POST", "/v1/events", [{"ts": 2000, "loc": "Old Bridge"}, {"ts": 3000, "loc": text}])
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (400, code)
    assert problem["detail"].startswith("Event 1 of the batch: ")
    assert problem["hint"]
    assert town.dump() == before


def test_a_private_zone_is_as_unknown_as_none(town: LiveServer):
    mike, anna = town.user("mike"), town.user("anna")
    mike.square(f"{mike.name}.HOME", 10, 50)
    answers = []
    for local in ("HOME", "HUT"):
        answer = anna.ask("POST", "/v1/events", {"ts": 1000, "loc": f"{mike.name}.{local}"})
        answers.append((answer.status_code, answer.text.replace(local, "X")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


# --- the gazetteer's file ----------------------------------------------------------------------------


def test_csv_and_geojson_are_told_apart_by_what_is_in_them(tmp_path: Path):
    csv, geojson = tmp_path / "a", tmp_path / "b"
    csv.write_text(_PLACES, encoding="utf-8-sig")
    geojson.write_text(
        '\n{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "Old Bridge"},'
        '"geometry": {"type": "Point", "coordinates": [10.5, 50.5]}}]}',
        encoding="utf-8-sig",
    )
    assert load_gazetteer(str(csv)).locate("old bridge") == load_gazetteer(str(geojson)).locate("old bridge")


@pytest.mark.parametrize("content", [b"name;lon;lat\na;1;2\n", b"{}", b"\x1f\x8bbroken"])
def test_a_server_does_not_start_with_a_gazetteer_that_it_can_not_read(content: bytes, tmp_path: Path, capsys):
    file = tmp_path / "places"
    file.write_bytes(content)
    with pytest.raises(GazetteerInvalid, match="places"):
        create_app(Settings(gazetteer=str(file)))
    argv = ["serve", "--port", "0", "--database", str(tmp_path / "town.db"), "--gazetteer", str(file)]
    assert main(argv) == 1
    assert capsys.readouterr().err.startswith(f"fencepost: {file}")


def test_a_missing_gazetteer_is_named(tmp_path: Path, capsys):
    assert main(["serve", "--port", "0", "--database", str(tmp_path / "town.db"), "--gazetteer", "nowhere.csv"]) == 1
    assert capsys.readouterr().err == "fencepost: nowhere.csv: No such file or directory.\n"


class Everywhere:
    def locate(self, text: str) -> tuple[float, float] | None:
        return (1.0, 2.0)


def test_another_geocoder_takes_the_place_of_the_gazetteer(tmp_path: Path):
    app = create_app(Settings(gazetteer=str(tmp_path / "nowhere")), geocoder=Everywhere())
    assert app.state.geocoder.locate("x") == (1.0, 2.0)
