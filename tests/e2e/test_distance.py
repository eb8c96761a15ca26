"""Distances on a real server: objects with and without agents, grants of both owners, restarts."""

import asyncio
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from agent_sdk import Agent
from agent_sdk.sources.callback import CallbackSource
from tests.e2e.conftest import LiveServer, Person, serving
from tests.e2e.test_protocol_page import connected
from zones.geodesy import destination

_HOME = (116.36, 39.9)
_ALL = ("within", "conditions", "positions")


def east(metres: float) -> list[float]:
    return list(destination(_HOME, 90, metres))


def at(minute: float) -> int:
    return 1_780_000_000_000 + round(minute * 60_000)


def move(person: Person, metres: float, minute: float, oid: str = "", **pairs: Any) -> None:
    person.publish({"oid": oid or person.name, "ts": at(minute), "loc": east(metres), **pairs})


def said(person: Person) -> list[str]:
    """What the person was told: mode, left one, target."""
    return [
        "withdrawn" if "withdrawn" in each else f"{each['mode']} {each['oid']} {each['target']}"
        for each in person.told(limit=1000)
    ]


@pytest.fixture
def mike(live_server: LiveServer) -> Person:
    return live_server.user("mike")


@pytest.fixture
def foo(live_server: LiveServer, mike: Person) -> Person:
    """Somebody who lets mike know how far away he is."""
    foo = live_server.user("foo")
    foo.grant(mike, "distance")
    return foo


# --- what is told --------------------------------------------------------------------------------------


def test_a_buddy_comes_near_and_goes(mike: Person, foo: Person):
    mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
    move(mike, 0, 0, mood="fine")
    move(foo, 900, 1, secret="his")
    move(foo, 150, 2, secret="his")
    move(foo, 140, 3)
    move(mike, 400, 4)
    enter, leave = mike.told()
    assert enter["loc"] == pytest.approx(east(0))
    assert enter["target_loc"] == pytest.approx(east(150))
    assert (enter["mode"], enter["oid"], enter["target"]) == ("enter", mike.name, foo.name)
    assert (enter["mood"], enter["ts"]) == ("fine", "2026-05-28T20:28:40.000Z")
    assert "secret" not in enter
    assert (leave["mode"], leave["visit"], leave["duration_s"]) == ("leave", enter["id"], 120.0)
    assert leave["target_loc"] == pytest.approx(east(140))
    assert "mood" not in leave


def test_all_in_one_batch_is_the_same(mike: Person, foo: Person):
    """One request can hold events of one owner only, so both are mike's."""
    left, other = f"{mike.name}/a", f"{mike.name}/b"
    mike.subscribe("two", f"('{left}') distance (200, '{other}')")
    track = [(left, 0), (other, 900), (other, 100), (left, 20), (other, 300), (left, 200)]
    mike.publish(*({"oid": oid, "ts": at(i), "loc": east(metres)} for i, (oid, metres) in enumerate(track)))
    assert [each["mode"] for each in mike.told()] == ["enter", "leave", "enter"]


def test_a_partner_who_has_been_silent_is_not_known(mike: Person, foo: Person):
    mike.subscribe("short", f"({mike.name}) distance (200, {foo.name})", stale_s=60)
    mike.subscribe("usual", f"({mike.name}) distance (200, {foo.name})")
    move(mike, 0, 0)
    move(foo, 100, 4)
    assert [each["subscription"] for each in mike.told()] == ["usual"]
    move(mike, 0, 4.5)
    assert [each["subscription"] for each in mike.told()] == ["usual", "short"]
    assert mike.done("GET", "/v1/subscriptions/short")["stale_s"] == 60


def test_a_late_event_changes_nothing(mike: Person, foo: Person):
    mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
    move(mike, 0, 0)
    move(foo, 900, 5)
    move(foo, 10, 5)
    move(foo, 10, 4)
    assert said(mike) == []


def test_everybody_who_may_be_seen_also_those_who_come_later(live_server: LiveServer, mike: Person, foo: Person):
    mike.subscribe("all", f"({mike.name}) distance (200, *)")
    move(mike, 0, 0)
    stranger, bar = live_server.user("stranger"), live_server.user("bar")
    move(stranger, 10, 1)
    move(foo, 20, 1)
    move(bar, 30, 1)
    move(mike, 0, 2, f"{mike.name}/phone")
    assert said(mike) == [f"enter {mike.name} {foo.name}", f"enter {mike.name} {mike.name}/phone"]
    bar.grant(mike, "distance")
    assert len(said(mike)) == 2, "a grant is no event"
    move(mike, 1, 3)
    assert said(mike)[2:] == [f"enter {mike.name} {bar.name}"]


def test_it_can_be_mixed_with_zones_and_pairs(mike: Person, foo: Person):
    mike.square(f"{mike.name}.HERE", 116.35, 39.89, 0.02)
    near = f"({mike.name}) distance (200, {foo.name})"
    mike.subscribe("zone", f"({mike.name}) within ({mike.name}.HERE) AND {near} AND speed > 3")
    mike.subscribe("alone", f"NOT {near}")
    move(mike, 0, 0, speed=5)
    move(foo, 900, 1)
    move(foo, 100, 2)
    move(mike, 0, 3, speed=1)
    assert [(each["subscription"], each["mode"], each["target"]) for each in mike.told()] == [
        ("alone", "enter", None),
        ("zone", "enter", f"{mike.name}.HERE"),
        ("alone", "leave", None),
        ("zone", "leave", f"{mike.name}.HERE"),
    ]
    assert all("target_loc" not in each for each in mike.told())


def test_a_dwell_is_ended_by_the_next_event_or_by_the_clock(mike: Person, foo: Person):
    mike.subscribe("dwell", f"({mike.name}) distance (200, {foo.name})", dwell_s=90)
    move(mike, 0, 0)
    move(foo, 100, 1)
    (enter,) = mike.told(wait_s=10)  # the clock is far beyond it
    assert (enter["mode"], enter["ts"]) == ("enter", "2026-05-28T20:29:10.000Z")
    assert enter["target_loc"] == pytest.approx(east(100))


@pytest.mark.parametrize("stale_s", [0, -1, 1e9, "60", True])
def test_a_bad_age_is_refused(mike: Person, stale_s: object):
    body = {"selector": f"({mike.name}) distance (200, '{mike.name}/x')", "stale_s": stale_s}
    assert mike.ask("PUT", "/v1/subscriptions/bad", body).status_code in (400, 422)


# --- who may know --------------------------------------------------------------------------------------


@pytest.mark.parametrize("left_grants", [(), ("enter", "leave", "position"), ("distance",)])
@pytest.mark.parametrize("other_grants", [(), ("enter", "leave", "position"), ("distance",)])
def test_both_owners_must_have_granted_distance(
    live_server: LiveServer, left_grants: tuple[str, ...], other_grants: tuple[str, ...]
):
    ann, left, other = (live_server.user(name) for name in ("ann", "left", "other"))
    for person, operations in ((left, left_grants), (other, other_grants)):
        if operations:
            person.grant(ann, *operations)
    selector = f"({left.name}) distance (200, {other.name})"
    answer = ann.ask("PUT", "/v1/subscriptions/pair", {"selector": selector})
    allowed = left_grants == other_grants == ("distance",)
    assert answer.status_code == (201 if allowed else 404), answer.text
    if not allowed:
        assert answer.json()["code"] == "object_not_found"
    move(left, 0, 0)
    move(other, 10, 1)
    assert said(ann) == ([f"enter {left.name} {other.name}"] if allowed else [])


def test_every_needs_the_position_too(mike: Person, foo: Person):
    selector = f"({mike.name}) distance (200, {foo.name})"
    assert mike.ask("PUT", "/v1/subscriptions/all", {"selector": selector, "tos": "every"}).status_code == 404
    foo.grant(mike, "distance", "position")
    mike.subscribe("all", selector, tos="every")
    for minute in range(3):
        move(mike, minute, minute)
        move(foo, 10, minute + 0.5)
    assert [each["mode"] for each in mike.told()] == ["match"] * 5


@pytest.mark.parametrize("who", ["left", "other"])
def test_revoking_either_grant_stops_the_next_delivery_and_the_next_edge(live_server: LiveServer, who: str):
    ann, left, other = (live_server.user(name) for name in ("ann", "left", "other"))
    grants = {"left": (left, left.grant(ann, "distance")), "other": (other, other.grant(ann, "distance"))}
    ann.subscribe("pair", f"({left.name}) distance (200, {other.name})")
    move(left, 0, 0)
    move(other, 10, 1)
    assert said(ann) == [f"enter {left.name} {other.name}"]
    owner, grant = grants[who]
    owner.done("DELETE", f"/v1/privacy/grants/{grant}")
    assert said(ann) == ["withdrawn"]
    move(other, 900, 2)
    move(other, 10, 3)
    move(other, 900, 4)
    assert said(ann) == ["withdrawn"], "what was never allowed has no offset"
    owner.grant(ann, "distance")
    assert said(ann) == [f"enter {left.name} {other.name}"]
    move(other, 901, 5)
    assert said(ann)[1:] == [f"leave {left.name} {other.name}"], "the kept state meets the next event"


def test_revoking_withdraws_what_depended_on_somebody_who_is_not_named_in_it(mike: Person, foo: Person):
    mike.square(f"{mike.name}.HERE", 116.35, 39.89, 0.02)
    mike.subscribe("zone", f"({mike.name}) within ({mike.name}.HERE) AND ({mike.name}) distance (200, {foo.name})")
    move(foo, 0, 0)
    move(mike, 10, 1)
    assert said(mike) == [f"enter {mike.name} {mike.name}.HERE"]
    grant = foo.done("GET", "/v1/privacy/grants")["items"][0]["id"]
    foo.done("DELETE", f"/v1/privacy/grants/{grant}")
    assert said(mike) == ["withdrawn"]
    move(foo, 900, 2)
    move(mike, 20, 3)
    assert len(said(mike)) == 1, "it can't be known any more whether it holds"
    move(mike, 2000, 4)
    assert said(mike)[1:] == [f"leave {mike.name} {mike.name}.HERE"], "outside it does not, wherever foo is"


def test_a_pause_an_expiry_and_a_deletion_notify_nobody(mike: Person, foo: Person):
    selector = f"({mike.name}) distance (200, {foo.name})"
    for name in ("paused", "deleted", "expired"):
        mike.subscribe(name, selector, **({"expires": at(2)} if name == "expired" else {}))
    move(mike, 0, 0)
    move(foo, 10, 1)
    assert {each["subscription"] for each in mike.told()} <= {"paused", "deleted", "expired"}
    before = len(mike.told())
    mike.subscribe("paused", selector, paused=True)
    mike.done("DELETE", "/v1/subscriptions/deleted")
    move(foo, 900, 3)
    assert len(mike.told()) == before
    mike.subscribe("paused", selector)
    move(foo, 901, 4)
    assert [(each["subscription"], each["mode"]) for each in mike.told()[before:]] == [("paused", "leave")]


# --- agents --------------------------------------------------------------------------------------------


def test_an_agent_with_an_edge_is_asked_for_its_position_and_no_other(live_server: LiveServer, mike: Person):
    foo = live_server.user("foo")
    now = time.time_ns() // 1_000_000
    with connected(live_server, foo.enrol()) as device:
        device.hello(capabilities=_ALL)
        assert device.receive("plan").get("items", []) == []
        foo.grant(mike, "distance")  # alone makes no edge
        mike.publish({"ts": now, "loc": east(0)})
        mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
        assert device.receive("locate") == {"t": "locate", "every_s": 60.0}

        device.send(t="position", ts=now + 1, loc=east(100), pairs={"speed": 3})
        (enter,) = mike.told(wait_s=10)
        assert (enter["mode"], enter["target"]) == ("enter", foo.name)
        assert enter["target_loc"] == pytest.approx(east(100))

        mike.subscribe("mine", f"({mike.name}) distance (500, {foo.name})")  # it is told already
        mike.done("DELETE", "/v1/subscriptions/buddies")
        mike.done("DELETE", "/v1/subscriptions/mine")
        assert device.receive("locate") == {"t": "locate", "every_s": 0.0}
        mike.subscribe("again", f"({mike.name}) distance (200, {foo.name})")
        assert device.receive("locate")["every_s"] == 60.0
        foo.grant(mike, "enter")  # in place of the grant of distance
        assert device.receive("locate")["every_s"] == 0.0


@pytest.mark.parametrize("capabilities", [("within",), _ALL])
def test_only_an_agent_that_can_is_asked(live_server: LiveServer, mike: Person, foo: Person, capabilities: tuple):
    mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
    move(mike, 0, 0)
    with connected(live_server, foo.enrol()) as device:
        device.hello(capabilities=capabilities)
        device.receive("plan")
        if "positions" in capabilities:
            device.receive("locate")
        device.send(t="renew")
        device.receive("lease")


def test_a_position_that_nobody_asked_for_is_dropped(live_server: LiveServer, mike: Person, foo: Person):
    with connected(live_server, foo.enrol()) as device:
        device.hello(capabilities=_ALL)
        device.receive("plan")
        device.send(t="position", ts=at(1), loc=east(0))
        device.send(t="renew")
        device.receive("lease")
        assert "116.3" not in str([row for row in live_server.dump()["objects"] if foo.name in row])
        mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
        move(mike, 0, 2)
        device.receive("locate")
        for bad in ({"ts": at(1), "loc": [500, 0]}, {"ts": 2**60, "loc": east(0)}):
            device.send(t="position", **bad)
        assert said(mike) == []
        device.send(t="position", ts=at(3), loc=east(0))
        assert [each["mode"] for each in mike.told(wait_s=10)] == ["enter"]


def test_a_reported_position_is_forgotten_when_nobody_may_know_it_any_more(
    live_server: LiveServer, mike: Person, foo: Person
):
    def kept() -> bool:
        return any(foo.name in row and "116.3" in str(row) for row in live_server.dump()["objects"])

    mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
    move(mike, 0, 0)
    with connected(live_server, foo.enrol()) as device:
        device.hello(capabilities=_ALL)
        device.receive("plan")
        device.receive("locate")
        device.send(t="position", ts=at(1), loc=east(0))
        assert len(mike.told(wait_s=10)) == 1
        assert kept()
        mike.done("DELETE", "/v1/subscriptions/buddies")
        assert device.receive("locate")["every_s"] == 0
        assert not kept()


def test_zones_stay_the_agents_affair(live_server: LiveServer, mike: Person, foo: Person):
    """A position that goes through a zone gives no edge of it: the agent reports those."""
    mike.square(f"{mike.name}.HERE", 116.35, 39.89, 0.02)
    mike.subscribe("zone", f"({mike.name}) within ({mike.name}.HERE)")
    mike.subscribe("both", f"({mike.name}) within ({mike.name}.HERE) OR ({mike.name}) distance (200, {foo.name})")
    move(foo, 0, 0)
    with connected(live_server, mike.enrol()) as device:
        device.hello(capabilities=_ALL)
        plan = device.receive("plan")
        assert [item["condition"]["t"] for item in plan["items"]] == ["inzones", "inzones"]
        device.receive("locate")
        device.send(t="position", ts=at(1), loc=east(10))
        assert [(each["subscription"], each["target"]) for each in mike.told(wait_s=10)] == [("both", foo.name)]
        assert mike.ask("POST", "/v1/events", {"ts": at(2), "loc": east(0)}).json()["code"] == "object_has_agent"


async def test_our_own_agent_reports_while_it_is_asked_to(live_server: LiveServer, mike: Person, foo: Person):
    now = time.time_ns() // 1_000_000
    source = CallbackSource()
    mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name})")
    mike.publish({"ts": now, "loc": east(0)})
    async with Agent(live_server.url, foo.enrol(), source, state=None) as agent:
        await agent.until_planned()
        lon, lat = east(50)
        source.push(lon, lat, ts=now + 1000)
        (enter,) = await asyncio.to_thread(mike.told, wait_s=10)
    assert (enter["target"], enter["target_loc"]) == (foo.name, pytest.approx(east(50)))
    assert agent.counts.traffic.sent["position"].messages == 1


# --- restarts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgis", marks=pytest.mark.slow)])
def test_a_restart_keeps_places_and_states(kind: str, tmp_path: Path, request: pytest.FixtureRequest):
    if kind == "sqlite":
        database: Any = nullcontext(f"sqlite:///{tmp_path / 'fencepost.db'}")
    else:
        database = request.getfixturevalue("postgis_server").database()
    with database as url:
        with serving(url) as server:
            mike, foo, bar = (server.user(name) for name in ("mike", "foo", "bar"))
            for person in (foo, bar):
                person.grant(mike, "distance")
            mike.subscribe("buddies", f"({mike.name}) distance (200, {foo.name}, {bar.name})")
            move(mike, 0, 0)
            move(bar, 900, 0)
            move(foo, 100, 1)
            assert said(mike) == [f"enter {mike.name} {foo.name}"]
        with serving(url) as server:
            people = [Person(each.name, each.key, server.url, server.http) for each in (mike, foo, bar)]
            mike, foo, bar = people
            move(foo, 110, 2)
            assert len(said(mike)) == 1, "it has been told before the restart"
            move(bar, 100, 3)
            move(foo, 900, 4)
            assert said(mike)[1:] == [f"enter {mike.name} {bar.name}", f"leave {mike.name} {foo.name}"]
            assert mike.told()[2]["duration_s"] == 180.0


def test_a_place_from_before_anybody_asked_counts(mike: Person, foo: Person):
    selector = f"({mike.name}) distance (200, {foo.name})"
    move(mike, 0, 0)
    move(foo, 900, 0)
    mike.subscribe("one", selector)
    move(foo, 100, 1)
    mike.done("DELETE", "/v1/subscriptions/one")
    move(mike, 5000, 2)  # nobody looks at it now
    mike.subscribe("two", selector)
    move(foo, 4900, 3)
    assert [(each["subscription"], each["mode"]) for each in mike.told()] == [("one", "enter"), ("two", "enter")]
    assert mike.told()[1]["loc"] == pytest.approx(east(5000))


def test_a_revoked_grant_ends_a_running_dwell(live_server: LiveServer, mike: Person, foo: Person):
    now = time.time_ns() // 1_000_000
    mike.subscribe("dwell", f"({mike.name}) distance (200, {foo.name})", dwell_s=3600)
    mike.publish({"ts": now - 1000, "loc": east(0)})
    foo.publish({"ts": now, "loc": east(100)})

    def pending() -> list[str]:
        rows = [row for row in live_server.dump()["bindings"] if str(row[2]).startswith("o:")]
        return [row[3] for row in rows if "pending" in row[3]]

    before = len(pending())
    assert before >= 1
    grant = foo.done("GET", "/v1/privacy/grants")["items"][0]["id"]
    foo.done("DELETE", f"/v1/privacy/grants/{grant}")
    assert len(pending()) == before - 1
