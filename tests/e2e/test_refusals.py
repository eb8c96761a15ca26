"""Bad input gets a problem document with a clear sentence, and changes nothing: every table is compared."""

import hashlib
import json
import socket
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import LiveServer, Person

_EVENT = {"ts": "2024-05-01T12:00:00Z", "loc": [10.5, 50.5]}
_BOW_TIE = [[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]
_DEEP = b"[" * 200_000


@pytest.fixture(scope="module")
def people(live_server: LiveServer) -> dict[str, Person]:
    """mike has a zone, an event and a grant to anna; anna has a subscription; a bystander has a zone."""
    mike, anna, eve = (live_server.person(name) for name in ("mike", "anna", "eve"))
    mike.square("mike.HOME", 10, 50)
    eve.square("eve.LAIR", 20, 50)
    mike.grant(anna)
    anna.square("anna.HOME", 10, 50)
    anna.subscribe("s", "(mike) within (anna.HOME)")
    mike.publish({**_EVENT, "oid": "mike"})
    mike.publish({**_EVENT, "oid": "mike/van"})
    return {"mike": mike, "anna": anna, "eve": eve}


def raw(text: str) -> bytes:
    return text.encode()


def event(**pairs: Any) -> dict[str, Any]:
    return {"ts": "2024-05-02T12:00:00Z", "loc": [9.0, 50.5], **pairs}


def shape(kind: str, **more: Any) -> dict[str, Any]:
    return {"shape": {"type": kind, **more}}


EVENTS: dict[str, tuple[Any, int, str]] = {
    "loc NaN": (raw('{"ts": 1714651200000, "loc": [NaN, 50]}'), 400, "body_invalid"),
    "loc Infinity": (raw('{"ts": 1714651200000, "loc": [Infinity, 50]}'), 400, "body_invalid"),
    "loc 1e999": (raw('{"ts": 1714651200000, "loc": [1e999, 50]}'), 400, ""),
    "loc true": (event(loc=[True, 50]), 400, "loc_invalid"),
    "loc text numbers": (event(loc=["9", "50"]), 400, "loc_invalid"),
    "loc off the globe": (event(loc=[9, 91]), 400, "loc_invalid"),
    "loc in three dimensions": (event(loc=[9, 50, 100]), 400, "loc_invalid"),
    "loc a place name": (event(loc="SYSTEM.Nowhere"), 400, "loc_unknown"),
    "unc true": (event(unc=True), 400, "number_invalid"),
    "unc below 0": (event(unc=-1), 400, "number_invalid"),
    "an integer of 70 bits": (event(size=2**70), 400, ""),
    "ts missing": ({"loc": [9, 50]}, 400, "ts_invalid"),
    "ts true": (event(ts=True), 400, "ts_invalid"),
    "ts a word": (event(ts="noon"), 400, "ts_invalid"),
    "from 2099": (event(ts="2099-01-01T00:00:00Z"), 400, "ts_ahead"),
    **{f"reserved {name}": (event(**{name: 1}), 400, "reserved_name")
       for name in ("id", "offset", "mode", "target", "subscription", "visit", "lpid", "withdrawn")},
    "a name with a dash": (event(**{"top-speed": 1}), 400, "name_invalid"),
    "a value that is a list": (event(sizes=[1, 2]), 400, "value_invalid"),
    "65 pairs": (event(**{f"p{n}": n for n in range(65)}), 400, "too_many_pairs"),
    "a long text": (event(text="x" * 20_000), 400, "text_too_long"),
    "another's oid": (event(oid="eve"), 404, "object_not_found"),
    "another's van": (event(oid="eve/van"), 404, "object_not_found"),
    "an oid that is none": (event(oid="mike/"), 400, ""),
    "the second of a batch": ([event(), event(ts="2099-01-01T00:00:00Z")], 400, "ts_ahead"),
    "an empty batch": ([], 400, "body_invalid"),
    "a batch too large": ([{}] * 10_001, 413, "batch_too_large"),
    "a body too large": (b" " * (8 * 1024 * 1024 + 1), 413, "body_too_large"),
    "deep JSON": (_DEEP, 400, "body_invalid"),
    "not JSON": (b"hello", 400, "body_invalid"),
    "not UTF-8": (b'{"ts": 1, "name": "\xff"}', 400, "body_invalid"),
    "not an object": (b"7", 400, "event_invalid"),
}  # fmt: skip

ZONES: dict[str, tuple[str, Any, int, str]] = {
    "self-crossing": ("mike.X", shape("Polygon", coordinates=[_BOW_TIE]), 400, "ring_crosses_itself"),
    "an open ring": ("mike.X", shape("Polygon", coordinates=[_BOW_TIE[:4]]), 400, ""),
    "NaN": ("mike.X", raw('{"shape": {"type": "Circle", "center": [NaN, 1], "radius_m": 5}}'), 400, "body_invalid"),
    "true": ("mike.X", shape("Circle", center=[True, 1], radius_m=5), 400, ""),
    "radius text": ("mike.X", shape("Circle", center=[1, 1], radius_m="5"), 400, ""),
    "radius 0": ("mike.X", shape("Circle", center=[1, 1], radius_m=0), 400, ""),
    "a line": ("mike.X", shape("LineString", coordinates=[[0, 0], [1, 1]]), 400, "geojson_invalid"),
    "unknown field": ("mike.X", {**shape("Circle", center=[1, 1], radius_m=5), "color": "red"}, 400, "body_invalid"),
    "another's": ("eve.X", shape("Circle", center=[1, 1], radius_m=5), 404, "zone_not_found"),
    "another's that is there": ("eve.LAIR", shape("Circle", center=[1, 1], radius_m=5), 404, "zone_not_found"),
    "SYSTEM's": ("SYSTEM.X", shape("Circle", center=[1, 1], radius_m=5), 403, "forbidden"),
    "SYSTEM's in disguise": ("ＳＹＳＴＥＭ.X", shape("Circle", center=[1, 1], radius_m=5), 403, "forbidden"),
    "no owner": ("HOME", shape("Circle", center=[1, 1], radius_m=5), 400, ""),
    "deep": ("mike.X", _DEEP, 400, "body_invalid"),
}

SUBSCRIPTIONS: dict[str, tuple[Any, int, str]] = {
    "unknown zone": ({"selector": "(mike) within (anna.NOWHERE)"}, 404, "zone_not_found"),
    "another's zone": ({"selector": "(mike) within (eve.LAIR)"}, 404, "zone_not_found"),
    "another's zones": ({"selector": "(mike) within (eve.*)"}, 404, "user_not_found"),
    "another's object": ({"selector": "(eve) within (anna.HOME)"}, 404, "object_not_found"),
    "no object": ({"selector": "(nobody) within (anna.HOME)"}, 404, "object_not_found"),
    "position without a grant": ({"selector": "(mike) within (anna.HOME)", "tos": "every"}, 404, "object_not_found"),
    "nonsense": ({"selector": "(mike) within within"}, 400, ""),
    "deep": ({"selector": "(" * 5000 + "x = 1" + ")" * 5000}, 400, ""),
    "self-crossing inline": ({"selector": "(mike) within (POLYGON((0 0, 2 2, 2 0, 0 2, 0 0)))"}, 400, ""),
    "no distance": ({"selector": "(mike) distance (0, anna)"}, 400, "selector_invalid"),
    "a stranger's distance": ({"selector": "(mike) distance (100, anna)"}, 404, "object_not_found"),
    "stale at once": ({"selector": "(mike) within (anna.HOME)", "stale_s": 0}, 400, "option_invalid"),
    "unknown field": ({"selector": "(mike) within (anna.HOME)", "color": "red"}, 400, "body_invalid"),
    "dwell true": ({"selector": "(mike) within (anna.HOME)", "dwell_s": True}, 400, "body_invalid"),
    "dwell below 0": ({"selector": "(mike) within (anna.HOME)", "dwell_s": -1}, 400, "option_invalid"),
    "hysteresis below 0": ({"selector": "(mike) within (anna.HOME)", "hysteresis_m": -1}, 400, "option_invalid"),
    "hysteresis too wide": ({"selector": "(mike) within (anna.HOME)", "hysteresis_m": 100_001}, 400, "option_invalid"),
    "hysteresis a text": ({"selector": "(mike) within (anna.HOME)", "hysteresis_m": "5"}, 400, "body_invalid"),
    "unc below 0": ({"selector": "(mike) within (anna.HOME)", "unc_factor": -0.1}, 400, "option_invalid"),
    "unc true": ({"selector": "(mike) within (anna.HOME)", "unc_factor": True}, 400, "body_invalid"),
    "crossing 1": ({"selector": "(mike) within (anna.HOME)", "crossing": 1}, 400, "body_invalid"),
    "crossing with NOT": ({"selector": "NOT (mike) within (anna.HOME)", "crossing": True}, 400, "option_invalid"),
    "hysteresis without a zone": ({"selector": "speed > 5", "hysteresis_m": 5}, 400, "option_invalid"),
    "another id": ({"selector": "(mike) within (anna.HOME)", "id": "other"}, 400, "option_invalid"),
    "a purpose too long": ({"selector": "(mike) within (anna.HOME)", "purpose": "x" * 1001}, 400, "option_invalid"),
    "a NUL in the selector": ({"selector": "(mike) within (anna.HOME) AND p = '\0'"}, 400, "option_invalid"),
    "a NUL in the purpose": ({"selector": "(mike) within (anna.HOME)", "purpose": "\0"}, 400, "option_invalid"),
    "a NUL in a set's owner": ({"selector": "(mike) within ('\0'.*)"}, 400, ""),
    "dwell NaN": (raw('{"selector": "(mike) within (anna.HOME)", "dwell_s": NaN}'), 400, "body_invalid"),
    "unknown tos": ({"selector": "(mike) within (anna.HOME)", "tos": "often"}, 400, "body_invalid"),
}

OTHERS: dict[str, tuple[str, str, str, Any, int, str]] = {
    "grant to nobody": ("mike", "POST", "/v1/privacy/grants", {"who": "nobody", "operations": ["enter"]}, 404, ""),
    "grant to a long name": (
        "mike", "POST", "/v1/privacy/grants", {"who": "x" * 100_000, "operations": ["enter"]}, 404, "user_not_found"),
    "grant to a NUL": ("mike", "POST", "/v1/privacy/grants", {"who": "\0", "operations": ["enter"]}, 404, ""),
    "import for a NUL": (
        "mike", "POST", "/v1/zones:import?owner=%00",
        {"type": "FeatureCollection", "features": [
            {"type": "Feature", "id": "good", "properties": {},
             "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}},
        ]}, 404, "zone_not_found"),
    "grant of nonsense": ("mike", "POST", "/v1/privacy/grants", {"who": "anna", "operations": ["fly"]}, 400, ""),
    "grant, unknown field": (
        "mike", "POST", "/v1/privacy/grants", {"who": "anna", "operations": ["enter"], "for": 1}, 400, "body_invalid"),
    "enrol another's": ("eve", "POST", "/v1/agents", {"oid": "mike"}, 404, "object_not_found"),
    "enrol, wrong token": (
        "eve", "POST", "/v1/agents/enrol", {"token": "fpt_x", "secret_sha256": "0" * 64}, 401, "token_invalid"),
    "enrol, no hash": (
        "eve", "POST", "/v1/agents/enrol", {"token": "fpt_x", "secret_sha256": "secret"}, 400, "option_invalid"),
    "delete another's zone": ("eve", "DELETE", "/v1/zones/mike.HOME", None, 404, "zone_not_found"),
    "delete another's subscription": ("eve", "DELETE", "/v1/subscriptions/s", None, 404, "subscription_not_found"),
    "revoke no agent": ("eve", "DELETE", "/v1/agents/1", None, 404, "agent_not_found"),
    "a path that is not there": ("eve", "GET", "/v1/nothing", None, 404, "not_found"),
    "a method that is not there": ("eve", "PATCH", "/v1/events", None, 405, "method_not_allowed"),
    "a limit that is a word": ("eve", "GET", "/v1/zones?limit=many", None, 400, ""),
    "an id that is a word": ("eve", "DELETE", "/v1/agents/first", None, 400, ""),
    "an id beyond 64 bits": ("eve", "DELETE", f"/v1/agents/{2**70}", None, 400, "option_invalid"),
    "a page beyond 64 bits": ("eve", "GET", f"/v1/zones?after={2**70}", None, 400, ""),
    "a cursor that is none": ("anna", "GET", "/v1/notifications?after=-1", None, 400, "cursor_invalid"),
    "import with one bad feature": (
        "mike", "POST", "/v1/zones:import",
        {"type": "FeatureCollection", "features": [
            {"type": "Feature", "id": "good", "properties": {},
             "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}},
            {"type": "Feature", "id": "bad", "properties": {},
             "geometry": {"type": "Polygon", "coordinates": [_BOW_TIE]}},
        ]}, 400, "ring_crosses_itself"),
}  # fmt: skip


def refused(server: LiveServer, who: Person, method: str, path: str, body: Any, status: int, code: str) -> None:
    before = server.dump()
    answer = who.ask(method, path, body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert not code or problem["code"] == code, problem
    assert problem["code"]
    assert problem["detail"].endswith("."), problem
    assert problem["hint"], problem
    assert len(answer.content) < 2000, "a refusal does not echo what it was sent"
    assert server.dump() == before


@pytest.mark.parametrize("case", EVENTS)
def test_a_bad_event_is_refused(live_server: LiveServer, people: dict[str, Person], case: str):
    refused(live_server, people["mike"], "POST", "/v1/events", *EVENTS[case])


@pytest.mark.parametrize("case", ZONES)
def test_a_bad_zone_is_refused(live_server: LiveServer, people: dict[str, Person], case: str):
    name, *rest = ZONES[case]
    refused(live_server, people["mike"], "PUT", f"/v1/zones/{name}", *rest)


@pytest.mark.parametrize("case", SUBSCRIPTIONS)
@pytest.mark.parametrize("name", ["s", "new"])
def test_a_bad_subscription_is_refused(live_server: LiveServer, people: dict[str, Person], case: str, name: str):
    refused(live_server, people["anna"], "PUT", f"/v1/subscriptions/{name}", *SUBSCRIPTIONS[case])


@pytest.mark.parametrize("case", OTHERS)
def test_a_bad_request_is_refused(live_server: LiveServer, people: dict[str, Person], case: str):
    who, *rest = OTHERS[case]
    refused(live_server, people[who], *rest)


@pytest.mark.parametrize("key", ["nonsense", "fpk_0123456789abcdef_wrong", "fpa_1_wrongwrongwrongwrong"])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/events"), ("GET", "/v1/notifications"), ("GET", "/v1/zones")]
)
def test_a_wrong_key_is_refused(live_server: LiveServer, people: dict[str, Person], key: str, method: str, path: str):
    stranger = Person("mike", key, live_server.url, live_server.http)
    refused(live_server, stranger, method, path, json.dumps(_EVENT).encode(), 401, "key_invalid")


@pytest.mark.parametrize("version", ['"soon"', '"' + "9" * 5000 + '"', "9" * 19, ""])
def test_a_version_that_is_none_is_refused(people: dict[str, Person], version: str):
    circle = shape("Circle", center=[1, 1], radius_m=5)
    answer = people["mike"].ask("PUT", "/v1/zones/mike.HOME", circle, headers={"If-Match": version})
    assert (answer.status_code, answer.json()["code"]) == (400, "option_invalid")


def test_nobody_has_a_name_with_a_nul_in_it(people: dict[str, Person]):
    assert people["mike"].done("GET", "/v1/zones?owner=%00")["items"] == []


def test_the_secret_of_another_agent_is_refused(live_server: LiveServer):
    owner = live_server.user("owner")
    tokens = [owner.done("POST", "/v1/agents", {"oid": f"{owner.name}/{name}"})["token"] for name in ("van", "bus")]
    secret = hashlib.sha256(owner.name.encode()).hexdigest()
    owner.done("POST", "/v1/agents/enrol", {"token": tokens[0], "secret_sha256": secret})
    body = {"token": tokens[1], "secret_sha256": secret}
    refused(live_server, owner, "POST", "/v1/agents/enrol", body, 400, "option_invalid")


def test_a_body_that_breaks_off_leaves_no_trace_in_the_log(live_server: LiveServer):
    owner = live_server.user("owner")
    before = live_server.dump()
    address = httpx.URL(live_server.url)
    with socket.create_connection((address.host, address.port), timeout=10) as caller:
        head = f"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {owner.key}\r\n"
        caller.sendall(f'{head}Content-Length: 100\r\n\r\n{{"ts": 1'.encode())
        caller.shutdown(socket.SHUT_WR)
        caller.recv(1)  # the server has seen the end; `serving` finds no traceback when it stops
    assert live_server.dump() == before


def test_an_event_of_an_object_with_an_agent_is_refused(live_server: LiveServer):
    owner = live_server.user("owner")
    owner.enrol()
    refused(live_server, owner, "POST", "/v1/events", event(), 409, "object_has_agent")


def test_nobody_becomes_the_agent_of_anothers_object_once_it_exists(live_server: LiveServer):
    owner, stranger = live_server.user("owner"), live_server.user("stranger")
    owner.publish(event())
    refused(live_server, stranger, "POST", "/v1/agents", {"oid": owner.name}, 404, "object_not_found")
