"""`explain`: who evaluates what, what of it is over, and why an event was told or was not."""

import time
from collections import Counter
from random import Random
from typing import Any

import pytest

from matcher.instants import format_instant
from tests.e2e.conftest import LiveServer, Person

NOON = 1_790_000_000_000


@pytest.fixture
def acme(live_server: LiveServer) -> Person:
    return live_server.user("acme")


@pytest.fixture
def shop(live_server: LiveServer, acme: Person) -> Person:
    """Somebody who may know when acme's things come and go, and has a zone from 0,0 to 1,1."""
    shop = live_server.user("shop")
    shop.square(f"{shop.name}.Mall", 0, 0)
    acme.grant(shop)
    return shop


def explained(who: Person, name: str = "s", **query: Any) -> dict[str, Any]:
    answer: dict[str, Any] = who.done("GET", f"/v1/subscriptions/{name}/explain", params=query)
    return answer


def why(who: Person, event: dict[str, Any], name: str = "s", **query: Any) -> list[dict[str, Any]]:
    answer = who.done("POST", f"/v1/subscriptions/{name}/explain", event, params=query)
    verdicts: list[dict[str, Any]] = answer["verdicts"]
    return verdicts


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def fix(acme: Person, minute: float, lon: float = 0.5, **pairs: Any) -> dict[str, Any]:
    return {"oid": f"{acme.name}/van", "ts": round(NOON + 60_000 * minute), "loc": [lon, 0.5], **pairs}


# --- bindings -----------------------------------------------------------------------------------------


def test_a_binding_says_who_evaluates_it_and_its_filter_where_that_could_be(acme: Person, shop: Person) -> None:
    acme.publish(fix(acme, 0, 5))
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall) AND (speed > 5 OR load = 'full')")
    answer = explained(shop)
    assert answer["bindings"] == [
        {
            "oid": f"{acme.name}/van",
            "target": f"{shop.name}.Mall",
            "status": "active",
            "evaluator": "server",
            "reason": "no_agent",
            "dropped": [],
        }
    ]
    assert [(part["filter"], part["evaluator"]) for part in answer["parts"]] == [
        (f"('{acme.name}/van') within ({shop.name}.Mall) AND speed > 5", "agent"),
        (f"('{acme.name}/van') within ({shop.name}.Mall) AND load = 'full'", "agent"),
    ]
    assert (answer["paused"], answer["expired"], answer["missing"], answer["total"]) == (False, False, [], 1)


def test_a_distance_is_the_servers_in_the_same_selector(acme: Person, shop: Person) -> None:
    acme.grant(shop, "enter", "leave", "distance")
    acme.publish(fix(acme, 0, 5))
    shop.publish({"ts": NOON, "loc": [0.5, 0.5]})
    van = f"{acme.name}/van"
    shop.subscribe("s", f"('{van}') within ({shop.name}.Mall) OR ('{van}') distance (500, {shop.name})")
    answer = explained(shop)
    assert [(part["evaluator"], part["reason"]) for part in answer["parts"]] == [
        ("agent", "offloaded"),
        ("server", "depends_on_others"),
    ]
    assert [(each["target"], each["evaluator"], each["reason"]) for each in answer["bindings"]] == [
        (f"{shop.name}.Mall", "server", "no_agent"),
        (shop.name, "server", "depends_on_others"),
    ]


def test_with_an_agent_the_agent_evaluates(acme: Person, shop: Person) -> None:
    acme.enrol(f"{acme.name}/van")
    shop.square(f"{shop.name}.Mall", 0, 0, on_devices=True)
    shop.square(f"{shop.name}.Private", 0, 0)
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall, {shop.name}.Private)")
    assert [(each["target"], each["evaluator"], each["reason"]) for each in explained(shop)["bindings"]] == [
        (f"{shop.name}.Mall", "agent", "offloaded"),
        (f"{shop.name}.Private", "nobody", "geometry_not_for_devices"),
    ]
    (event,) = why(shop, fix(acme, 0), target=f"{shop.name}.Private")
    assert event["reason"] == "not_evaluated"


@pytest.mark.parametrize(
    ("options", "status"),
    [({"paused": True}, "paused"), ({"expires": NOON + 1}, "expired"), ({"tos": "first"}, "finished")],
)
def test_a_binding_that_is_over_says_why(acme: Person, shop: Person, options: dict[str, Any], status: str) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)", **options)
    acme.publish(fix(acme, 0))
    answer = explained(shop)
    (binding,) = answer["bindings"]
    assert (binding["status"], binding["evaluator"], binding["reason"]) == (status, "nobody", status)
    assert answer["paused"] is (status == "paused")
    assert answer["expired"] is (status == "expired")
    assert why(shop, fix(acme, 1))[0]["reason"] == status


def test_what_a_selector_names_and_is_gone_is_listed(acme: Person, shop: Person, live_server: LiveServer) -> None:
    other = live_server.user("other")
    grant = other.grant(shop)
    half = live_server.user("half")
    half.grant(shop)
    acme.publish(fix(acme, 0))
    objects = f"'{acme.name}/van', {other.name}, {half.name}, '{acme.name}/never'"
    shop.square(f"{shop.name}.Old", 3, 3)
    shop.subscribe("s", f"({objects}) within ({shop.name}.Mall, {shop.name}.Old)")
    other.done("DELETE", f"/v1/privacy/grants/{grant}")
    half.grant(shop, "enter")
    shop.done("DELETE", f"/v1/zones/{shop.name}.Old")
    answer = explained(shop)
    assert answer["missing"] == [
        {"reason": "zone_not_found", "zone": f"{shop.name}.Old"},
        {"reason": "object_not_found", "oid": other.name},
        {"reason": "no_grant", "oid": half.name, "needs": ["leave"]},
        {"reason": "no_event_yet", "oid": f"{acme.name}/never"},
    ]
    assert [(each["oid"], each["target"]) for each in answer["bindings"]] == [(f"{acme.name}/van", f"{shop.name}.Mall")]


def test_many_bindings_come_in_pages_of_what_may_be_known(acme: Person, shop: Person, live_server: LiveServer) -> None:
    stranger = live_server.user("stranger")
    stranger.publish({"oid": stranger.name, "ts": NOON, "loc": [0.5, 0.5]})
    for number in range(4):
        shop.square(f"{shop.name}.Z{number}", number, 0)
        acme.publish({"oid": f"{acme.name}/v{number}", "ts": NOON, "loc": [50, 50]})
    shop.publish({"ts": NOON, "loc": [50, 50]})
    shop.subscribe("s", f"(*) within ({shop.name}.*)")
    seen, after, pages = [], None, 0
    while pages == 0 or after:
        answer = explained(shop, limit=7, **({"after": after} if after else {}))
        assert len(answer["bindings"]) <= 7
        assert answer["total"] == 25
        seen += [(each["oid"], each["target"]) for each in answer["bindings"]]
        after, pages = answer["next"], pages + 1
    assert pages == 4
    assert len(seen) == len(set(seen)) == 25
    assert {oid for oid, _ in seen} == {shop.name, *(f"{acme.name}/v{number}" for number in range(4))}
    only = explained(shop, oid=f"{acme.name}/v2", target=f"{shop.name}.Z1")["bindings"]
    assert [(each["oid"], each["target"]) for each in only] == [(f"{acme.name}/v2", f"{shop.name}.Z1")]
    assert shop.ask("GET", "/v1/subscriptions/s/explain", params={"after": "?"}).json()["code"] == "cursor_invalid"


# --- events -------------------------------------------------------------------------------------------


def test_an_event_fires_or_says_why_not(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall) AND speed > 5")
    acme.publish(fix(acme, 0, 5, speed=9))
    mall = f"{shop.name}.Mall"
    inside = f"('{acme.name}/van') within ({mall})"
    assert why(shop, fix(acme, 1, speed=9)) == [{"target": mall, "fires": True, "reason": "fired", "modes": ["enter"]}]
    assert why(shop, fix(acme, 1, 5, speed=9)) == [
        {"target": mall, "fires": False, "reason": "already_outside", "parts": [inside]}
    ]
    assert why(shop, fix(acme, 1, speed=3)) == [
        {"target": mall, "fires": False, "reason": "condition_false", "parts": ["speed > 5"]}
    ]
    assert why(shop, fix(acme, 1)) == [
        {"target": mall, "fires": False, "reason": "condition_unknown", "parts": ["speed > 5"]}
    ]
    acme.publish(fix(acme, 1, speed=9))
    assert why(shop, fix(acme, 2, speed=9)) == [{"target": mall, "fires": False, "reason": "already_inside"}]
    assert why(shop, fix(acme, 2, speed=1)) == [
        {"target": mall, "fires": True, "reason": "fired", "modes": ["leave"], "parts": ["speed > 5"]}
    ]


def test_what_is_explained_of_a_walk_is_what_is_told_of_it(shop: Person) -> None:
    """Each event is asked about, then published: the answer was right, for every type of service."""
    shop.square(f"{shop.name}.Park", 0.6, 0, 1)
    selector = f"({shop.name}) within ({shop.name}.Mall, {shop.name}.Park) AND speed > 2"
    services: dict[str, dict[str, Any]] = {
        "once": {},
        "enters": {"modes": ["enter"]},
        "every": {"tos": "every"},
        "first": {"tos": "first"},
        "band": {"hysteresis_m": 9000},
        "crossing": {"crossing": True},
        "ending": {"expires": NOON + 20 * 60_000},
    }
    for name, options in services.items():
        shop.subscribe(name, selector, **options)
    shop.publish({"ts": NOON - 1, "loc": [50, 50], "speed": 3})  # before its first event there is no object
    rng, offset = Random(4), 0
    reasons: Counter[str] = Counter()
    for minute in range(40):
        event: dict[str, Any] = {"ts": NOON + 60_000 * minute, "loc": [rng.uniform(-0.5, 2), 0.5]}
        if rng.random() < 0.8:
            event["speed"] = rng.choice((1, 3, 3, 3))
        promised = []
        for name in services:
            for verdict in why(shop, event, name):
                reasons[verdict["reason"]] += 1
                told = [mode for mode in verdict.get("modes", ()) if verdict["fires"]]
                told = [mode for mode in told if name != "enters" or mode == "enter"]
                promised += [(name, verdict["target"], mode) for mode in told]
        shop.publish(event)
        page = shop.told(after=offset, limit=1000)
        offset += len(page)
        assert sorted(promised) == sorted((each["subscription"], each["target"], each["mode"]) for each in page)
    assert offset > 30
    assert reasons.keys() >= {
        "fired", "dead_band", "already_inside", "already_outside", "condition_false", "condition_unknown", "expired",
        "finished", "mode_not_asked",
    }  # fmt: skip


def test_asking_changes_nothing(acme: Person, shop: Person, live_server: LiveServer) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)")
    acme.publish(fix(acme, 0, 5))
    before = live_server.dump()
    for minute in (1, 2, 3):
        assert why(shop, fix(acme, minute))[0]["reason"] == "fired"
    assert live_server.dump() == before
    assert shop.told() == []


def test_every_matches_and_modes_are_those_asked_for(acme: Person, shop: Person) -> None:
    acme.grant(shop, "enter", "leave", "position")
    selector = f"('{acme.name}/van') within ({shop.name}.Mall)"
    shop.subscribe("every", selector, tos="every")
    shop.subscribe("leaves", selector, modes=["leave"])
    acme.publish(fix(acme, 0, 5))
    assert why(shop, fix(acme, 1), "every")[0]["modes"] == ["match"]
    assert why(shop, fix(acme, 1, 5), "every")[0]["reason"] == "condition_false"
    assert why(shop, fix(acme, 1), "leaves")[0] == {
        "target": f"{shop.name}.Mall",
        "fires": False,
        "reason": "mode_not_asked",
        "modes": ["enter"],
    }


def test_a_dwell_runs_until_it_ends(acme: Person, shop: Person) -> None:
    acme.grant(shop, "enter", "leave", "position")
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)", dwell_s=120)
    began = now_ms() - 10_000  # the dwell of anything older would have ended by now
    inside = {"oid": f"{acme.name}/van", "loc": [0.5, 0.5]}
    acme.publish(inside | {"ts": began})
    (running,) = why(shop, inside | {"ts": began + 5_000})
    assert (running["reason"], running["until"]) == ("dwell_running", format_instant(began + 120_000))
    assert why(shop, inside | {"ts": began + 120_000})[0]["reason"] == "fired"
    assert why(shop, inside | {"ts": began})[0]["reason"] == "late"


def test_in_the_dead_band_nothing_fires(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)", hysteresis_m=1000)
    acme.publish(fix(acme, 0, 5))
    assert why(shop, fix(acme, 1, 0.999))[0]["reason"] == "dead_band"
    assert why(shop, fix(acme, 1, 0.9))[0]["reason"] == "fired"
    acme.publish(fix(acme, 1, 0.9))
    assert why(shop, fix(acme, 2, 1.001))[0]["reason"] == "dead_band"
    assert why(shop, fix(acme, 2, 1.1))[0]["modes"] == ["leave"]


def test_a_message_without_an_object_is_explained_as_if_one_had_sent_it(shop: Person) -> None:
    shop.subscribe("s", f"area overlaps ({shop.name}.Mall) AND wind > 30")
    box = {"type": "Rectangle", "bbox": [0.5, 0.5, 2, 2]}
    assert why(shop, {"ts": NOON, "area": box, "wind": 40})[0]["modes"] == ["enter"]
    assert why(shop, {"ts": NOON, "area": box, "wind": 20})[0]["parts"] == ["wind > 30"]
    assert why(shop, {"ts": NOON, "area": box})[0]["reason"] == "condition_unknown"


def test_a_distance_is_explained_to_the_owner_of_the_left_object_alone(acme: Person, shop: Person) -> None:
    acme.grant(shop, "enter", "leave", "position", "distance")
    shop.grant(acme, "distance")
    acme.publish(fix(acme, 0))
    shop.subscribe("mine", f"({shop.name}) distance (500, '{acme.name}/van')")
    shop.subscribe("theirs", f"('{acme.name}/van') distance (500, {shop.name})")
    shop.publish({"ts": NOON, "loc": [5, 5]})
    near = {"oid": shop.name, "ts": NOON + 1000, "loc": [0.5001, 0.5]}
    assert why(shop, near, "mine") == [
        {"target": f"{acme.name}/van", "fires": True, "reason": "fired", "modes": ["enter"]}
    ]
    far = why(shop, near | {"loc": [5, 5]}, "mine")[0]
    assert (far["reason"], far["parts"]) == (
        "already_outside",
        [f"({shop.name}) distance (500.0, '{acme.name}/van')"],
    )
    late = near | {"ts": NOON + 10 * 60_000}
    assert why(shop, late, "mine")[0]["reason"] == "condition_unknown"  # where the van was 10 minutes ago says nothing
    assert why(shop, fix(acme, 1), "theirs")[0]["reason"] == "not_shown"


# --- what must not be learned by asking ---------------------------------------------------------------


def test_an_object_without_a_grant_is_answered_as_one_that_is_not_there(shop: Person, live_server: LiveServer) -> None:
    stranger = live_server.user("stranger")
    stranger.publish({"ts": NOON, "loc": [0.5, 0.5]})
    shop.subscribe("s", f"(*) within ({shop.name}.Mall)")
    answers = []
    for oid in (stranger.name, f"{stranger.name}/nothing", "nobody-at-all"):
        answer = shop.ask("POST", "/v1/subscriptions/s/explain", {"oid": oid, "ts": NOON, "loc": [0.5, 0.5]})
        answers.append((answer.status_code, {**answer.json(), "detail": answer.json()["detail"].replace(oid, "X")}))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][1]["code"] == "object_not_found"


def test_who_may_know_of_something_else_hears_of_the_missing_grant(acme: Person, shop: Person) -> None:
    acme.publish(fix(acme, 0, 5))
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)")
    acme.grant(shop, "enter")
    assert why(shop, fix(acme, 1)) == [{"target": f"{shop.name}.Mall", "fires": False, "reason": "no_grant"}]


def test_who_is_told_of_edges_does_not_learn_when_it_was_last_seen_or_that_it_dwells(
    acme: Person, shop: Person
) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)", dwell_s=120)
    began = now_ms() - 10_000
    inside = {"oid": f"{acme.name}/van", "loc": [0.5, 0.5]}
    acme.publish(inside | {"ts": began})
    for seconds in (-60, 0, 60, 120, 200):  # never late, and the dwell always as if it began now
        ts = began + 1000 * seconds
        (verdict,) = why(shop, inside | {"ts": ts})
        assert (verdict["reason"], verdict["until"]) == ("dwell_running", format_instant(ts + 120_000))


@pytest.mark.parametrize("hysteresis_m", [0, 1000])
def test_who_is_told_of_enters_only_does_not_learn_whether_it_is_inside(
    acme: Person, shop: Person, hysteresis_m: float
) -> None:
    acme.grant(shop, "enter")
    selector = f"('{acme.name}/van') within ({shop.name}.Mall)"
    shop.subscribe("s", selector, modes=["enter"], hysteresis_m=hysteresis_m)
    answers = []
    for minute, lon in enumerate((0.5, 5)):
        acme.publish(fix(acme, minute, lon))
        answers.append([why(shop, fix(acme, 9, at)) for at in (0.5, 0.999, 1.001, 5)])
    assert answers[0] == answers[1]


def test_of_first_an_enter_is_all_there_is_to_know(acme: Person, shop: Person) -> None:
    acme.grant(shop, "enter")
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)", tos="first")
    acme.publish(fix(acme, 0, 5))
    assert why(shop, fix(acme, 1))[0]["reason"] == "fired"
    acme.publish(fix(acme, 1))
    assert why(shop, fix(acme, 2))[0]["reason"] == "finished"


def test_a_subscription_of_somebody_else_is_not_explained(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Mall)")
    for method, path, body in (("GET", "explain", None), ("POST", "explain", fix(acme, 0)), ("GET", "state", None)):
        assert acme.ask(method, f"/v1/subscriptions/s/{path}", body).json()["code"] == "subscription_not_found"


def test_what_could_not_be_published_is_not_explained(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"(*) within ({shop.name}.Mall)")
    path = "/v1/subscriptions/s/explain"
    assert shop.ask("POST", path, [fix(acme, 0), fix(acme, 1)]).json()["code"] == "batch_too_large"
    assert shop.ask("POST", path, {"oid": acme.name, "loc": [0, 0]}).json()["code"] == "ts_invalid"
    assert shop.ask("POST", path, fix(acme, 0) | {"ts": 4_000_000_000_000}).json()["code"] == "ts_ahead"
