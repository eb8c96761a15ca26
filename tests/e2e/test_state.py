"""`state`: who is inside now, since when, as far as granted now."""

import asyncio
import time
from typing import Any

import pytest

from agent_sdk import Agent, CallbackSource
from matcher.instants import format_instant
from tests.e2e.conftest import LiveServer, Person

NOON = 1_790_000_000_000


@pytest.fixture
def acme(live_server: LiveServer) -> Person:
    return live_server.user("acme")


@pytest.fixture
def shop(live_server: LiveServer, acme: Person) -> Person:
    shop = live_server.user("shop")
    for number in range(3):
        shop.square(f"{shop.name}.Z{number}", 0, 0, 1 + number)
    acme.grant(shop)
    return shop


def standing(who: Person, name: str = "s", **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = who.done("GET", f"/v1/subscriptions/{name}/state", params=query)["items"]
    return items


def fix(acme: Person, minute: float, lon: float = 0.5, van: str = "van") -> dict[str, Any]:
    return {"oid": f"{acme.name}/{van}", "ts": round(NOON + 60_000 * minute), "loc": [lon, 0.5]}


def test_who_is_inside_is_there_from_its_enter_to_its_leave(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Z0, {shop.name}.Z1)")
    assert standing(shop) == []
    acme.publish(fix(acme, 0, 1.5), fix(acme, 1, 0.5), fix(acme, 2, 0.6))
    enters = {each["target"]: each for each in shop.told()}
    assert standing(shop) == [
        {
            "oid": f"{acme.name}/van",
            "target": f"{shop.name}.Z0",
            "since": "2026-09-21T14:14:20.000Z",
            "visit": enters[f"{shop.name}.Z0"]["id"],
        },
        {
            "oid": f"{acme.name}/van",
            "target": f"{shop.name}.Z1",
            "since": "2026-09-21T14:13:20.000Z",
            "visit": enters[f"{shop.name}.Z1"]["id"],
        },
    ]
    acme.publish(fix(acme, 3, 1.5))
    assert [each["target"] for each in standing(shop)] == [f"{shop.name}.Z1"]
    leave = shop.told()[-1]
    assert leave["visit"] == enters[leave["target"]]["id"]
    acme.publish(fix(acme, 4, 50))
    assert standing(shop) == []


def test_only_what_is_granted_now_is_shown(acme: Person, shop: Person, live_server: LiveServer) -> None:
    stranger = live_server.user("stranger")
    stranger.publish({"ts": NOON, "loc": [0.5, 0.5]})
    shop.subscribe("s", f"(*) within ({shop.name}.Z0)")
    acme.publish(fix(acme, 0))
    assert [each["oid"] for each in standing(shop)] == [f"{acme.name}/van"]
    acme.grant(shop, "enter")  # replaces: that it is inside still is no longer theirs to know
    assert standing(shop) == []
    acme.grant(shop)
    assert [each["oid"] for each in standing(shop)] == [f"{acme.name}/van"]


def test_a_dwell_that_runs_is_not_inside_yet(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"(*) within ({shop.name}.Z0)", dwell_s=120)
    began = time.time_ns() // 1_000_000 - 10_000  # the dwell of anything older would have ended by now
    inside = {"oid": f"{acme.name}/van", "loc": [0.5, 0.5]}
    acme.publish(inside | {"ts": began}, inside | {"ts": began + 5_000})
    assert standing(shop) == []
    acme.publish(inside | {"ts": began + 121_000})
    assert [each["since"] for each in standing(shop)] == [format_instant(began + 120_000)]


def test_many_come_in_pages(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"(*) within ({shop.name}.*)")
    acme.publish(*(fix(acme, 0, 0.5, f"v{number}") for number in range(4)))
    seen: list[tuple[str, str]] = []
    after = None
    while not seen or after:
        query = {"limit": 5, **({"after": after} if after else {})}
        page = shop.done("GET", "/v1/subscriptions/s/state", params=query)
        assert len(page["items"]) <= 5
        seen += [(each["oid"], each["target"]) for each in page["items"]]
        after = page["next"]
    assert len(seen) == len(set(seen)) == 12
    assert [each["target"] for each in standing(shop, oid=f"{acme.name}/v1", target=f"{shop.name}.Z2")] == [
        f"{shop.name}.Z2"
    ]


def test_a_pause_keeps_the_state_and_says_so(acme: Person, shop: Person) -> None:
    shop.subscribe("s", f"(*) within ({shop.name}.Z0)")
    acme.publish(fix(acme, 0))
    shop.subscribe("s", f"(*) within ({shop.name}.Z0)", paused=True)
    page = shop.done("GET", "/v1/subscriptions/s/state")
    assert page["paused"] is True
    assert len(page["items"]) == 1


@pytest.mark.parametrize("tos", ["first", "every"])
def test_those_who_do_not_look_back_know_of_nobody(acme: Person, shop: Person, tos: str) -> None:
    acme.grant(shop, "enter", "leave", "position")
    shop.subscribe("s", f"(*) within ({shop.name}.Z0)", tos=tos)
    answer = shop.ask("GET", "/v1/subscriptions/s/state")
    assert (answer.status_code, answer.json()["code"]) == (400, "option_invalid")


def test_a_distance_is_inside_while_it_is_near_and_both_allow_it(acme: Person, shop: Person) -> None:
    acme.grant(shop, "distance")
    acme.publish(fix(acme, 0))
    shop.subscribe("s", f"({shop.name}) distance (500, '{acme.name}/van')")
    shop.publish({"ts": NOON + 60_000, "loc": [0.5001, 0.5]})
    (near,) = standing(shop)
    assert (near["oid"], near["target"], near["since"]) == (
        shop.name,
        f"{acme.name}/van",
        "2026-09-21T14:14:20.000Z",
    )
    acme.grant(shop, "enter", "leave")
    assert standing(shop) == []


def test_of_an_object_with_an_agent_what_it_reported_last_is_shown(acme: Person, shop: Person) -> None:
    shop.square(f"{shop.name}.Z0", 0, 0, on_devices=True)
    shop.subscribe("s", f"('{acme.name}/van') within ({shop.name}.Z0)")
    credential = acme.enrol(f"{acme.name}/van")

    async def drive(*lons: float) -> None:
        source = CallbackSource()
        async with Agent(acme.url, credential, source, state=None) as agent:
            await agent.until_planned()
            for lon in lons:
                source.push(lon, 0.5, ts=NOON + round(60_000 * lon))
            source.close()
            await agent.run()

    asyncio.run(drive(-1, 0.5))
    (inside,) = standing(shop)
    (enter,) = shop.told()
    assert (inside["since"], inside["visit"]) == (enter["ts"], enter["id"])
    asyncio.run(drive(2))  # another run without a file: the server hands the state over
    assert standing(shop) == []
    assert shop.told()[-1]["visit"] == enter["id"]
