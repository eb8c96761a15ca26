"""Regions in messages: they reach subscribers on the same path as everything else, with an object or without."""

import pytest

from tests.e2e.conftest import LiveServer, Person


def box(west: float, south: float, east: float, north: float) -> dict[str, object]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


@pytest.fixture
def noaa(live_server: LiveServer) -> Person:
    return live_server.user("noaa")


@pytest.fixture
def acme(live_server: LiveServer, noaa: Person) -> Person:
    """Somebody with a plant, who may know of the storms."""
    acme = live_server.user("acme")
    acme.done("PUT", f"/v1/zones/{acme.name}.Plant7", {"shape": box(10, 50, 11, 51)})
    noaa.done("POST", "/v1/privacy/grants", {"who": acme.name, "operations": ["enter", "leave", "position"]})
    return acme


def told(person: Person) -> list[dict[str, object]]:
    items = person.done("GET", "/v1/notifications")["notifications"]
    return [{name: each.get(name) for name in ("mode", "target", "oid", "wind")} for each in items]


def storm(noaa: Person, minute: int, west: float, name: str | None = "irma", **pairs: object) -> dict[str, object]:
    event = {"ts": f"2026-09-01T12:{minute:02}:00Z", "area": box(west, 50.5, west + 2, 52)}
    return event | pairs | ({"oid": f"{noaa.name}/{name}"} if name else {})


def test_a_storm_begins_and_stops_to_overlap_a_plant(noaa: Person, acme: Person) -> None:
    acme.subscribe("storms", f"area overlaps ({acme.name}.Plant7) AND wind > 30")
    track = [(6, 40), (8.5, 20), (8.6, 35), (8.7, 50), (11.5, 45), (10.5, 10), (10.5, 60)]
    for minute, (west, wind) in enumerate(track):
        noaa.done("POST", "/v1/events", storm(noaa, minute, west, wind=wind))
    oid, target = f"{noaa.name}/irma", f"{acme.name}.Plant7"
    assert told(acme) == [
        {"mode": "enter", "target": target, "oid": oid, "wind": 35},
        {"mode": "leave", "target": target, "oid": oid, "wind": 45},
        {"mode": "enter", "target": target, "oid": oid, "wind": 60},
    ]


def test_a_message_that_does_not_speak_of_the_region_changes_nothing(noaa: Person, acme: Person) -> None:
    acme.subscribe("storms", f"area overlaps ({acme.name}.Plant7)")
    noaa.done("POST", "/v1/events", storm(noaa, 0, 9.5))
    noaa.done("POST", "/v1/events", {"oid": f"{noaa.name}/irma", "ts": "2026-09-01T12:01:00Z", "wind": 3})
    noaa.done("POST", "/v1/events", storm(noaa, 2, 20))
    assert [each["mode"] for each in told(acme)] == ["enter", "leave"]


def test_a_message_without_an_object_is_told_once_however_often_it_is_sent(noaa: Person, acme: Person) -> None:
    acme.subscribe("warnings", f"area overlaps ({acme.name}.Plant7)")
    acme.subscribe("all", f"area overlaps ({acme.name}.Plant7)", tos="every")
    warning = storm(noaa, 0, 9.5, None, wind=70)
    noaa.done("POST", "/v1/events", [warning, warning])
    noaa.done("POST", "/v1/events", warning)
    noaa.done("POST", "/v1/events", storm(noaa, 1, 9.5, None, wind=71))
    noaa.done("POST", "/v1/events", storm(noaa, 2, 20, None, wind=72))
    target = f"{acme.name}.Plant7"
    assert sorted(told(acme), key=lambda each: (each["wind"], each["mode"])) == [
        {"mode": mode, "target": target, "oid": None, "wind": wind} for wind in (70, 71) for mode in ("enter", "match")
    ]


def test_disjoint_speaks_of_the_whole_list(noaa: Person, acme: Person) -> None:
    acme.done("PUT", f"/v1/zones/{acme.name}.Plant8", {"shape": box(20, 50, 21, 51)})
    acme.subscribe("clear", f"area disjoint ({acme.name}.Plant7, {acme.name}.Plant8)")
    for minute, west in enumerate([10.5, 15, 20.5, 30]):
        noaa.done("POST", "/v1/events", storm(noaa, minute, west))
    assert [(each["mode"], each["target"]) for each in told(acme)] == [
        ("enter", None),
        ("leave", None),
        ("enter", None),
    ]


def test_an_objects_own_region_is_its_footprint_or_the_disk_of_its_uncertainty(noaa: Person, acme: Person) -> None:
    oid = f"{noaa.name}/ship"
    acme.subscribe("ship", f"('{oid}') inside ({acme.name}.Plant7)")
    ship = {"oid": oid, "loc": [10.5, 50.5]}
    noaa.done("POST", "/v1/events", ship | {"ts": "2026-09-01T12:00:00Z"})  # a point is no region
    noaa.done("POST", "/v1/events", ship | {"ts": "2026-09-01T12:01:00Z", "unc": 500})
    noaa.done(
        "POST", "/v1/events", ship | {"ts": "2026-09-01T12:02:00Z", "unc": 500, "footprint": box(10, 50, 10.5, 50.5)}
    )
    assert [each["mode"] for each in told(acme)] == ["enter", "leave"]


def test_nobody_hears_of_the_storms_of_somebody_who_has_not_agreed(
    noaa: Person, acme: Person, live_server: LiveServer
) -> None:
    stranger = live_server.user("stranger")
    stranger.subscribe("storms", "area overlaps (POLYGON((10 50, 11 50, 11 51, 10 51, 10 50)))")
    noaa.done("POST", "/v1/events", [storm(noaa, 0, 9.5), storm(noaa, 0, 9.5, None)])
    assert told(stranger) == []


def test_explain_says_what_simplification_has_dropped(noaa: Person, acme: Person) -> None:
    acme.subscribe("storms", f"area overlaps ({acme.name}.Plant7) AND wind > 30 AND wind > 10")
    noaa.done("POST", "/v1/events", storm(noaa, 0, 9.5, wind=50))
    explained = acme.done("GET", "/v1/subscriptions/storms/explain")["bindings"]
    (binding,) = [each for each in explained if each["oid"] == f"{noaa.name}/irma"]
    assert binding["evaluator"] == "server"
    assert binding["dropped"] == ["wind > 30 says it already."]


def test_a_zone_that_gets_the_tag_is_listened_for_from_then_on(noaa: Person, acme: Person) -> None:
    shape = box(10, 50, 11, 51)
    acme.done("PUT", f"/v1/zones/{acme.name}.Plant7", {"shape": shape, "tags": ["plant"]})
    acme.subscribe("storms", f"area overlaps ({acme.name}.#plant)")

    def targets() -> list[str]:
        explained = acme.done("GET", "/v1/subscriptions/storms/explain")["bindings"]
        return sorted(each["target"] for each in explained if each["oid"] == f"{noaa.name}/irma")

    noaa.done("POST", "/v1/events", storm(noaa, 0, 9.5))
    assert targets() == [f"{acme.name}.Plant7"]
    acme.done("PUT", f"/v1/zones/{acme.name}.Plant8", {"shape": shape, "tags": ["plant"]})
    assert targets() == [f"{acme.name}.Plant7", f"{acme.name}.Plant8"]
    noaa.done("POST", "/v1/events", storm(noaa, 1, 9.6))
    assert [each["target"] for each in told(acme)] == [f"{acme.name}.Plant7", f"{acme.name}.Plant8"]
