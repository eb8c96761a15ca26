"""Notifications as a subscriber gets them: by cursor, by waiting, as server-sent events and on a WebSocket."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agent_sdk import Agent, CallbackSource
from tests.e2e.conftest import LiveServer, Person

_BEGIN = 1_700_000_000_000


@dataclass
class Pair:
    """A shop that follows one customer in and out of its zone."""

    mover: Person
    shop: Person
    grant: int
    steps: Iterator[int]

    def move(self, times: int = 1) -> None:
        """In, out, in, ... one notification each."""
        events = []
        for _ in range(times):
            step = next(self.steps)
            lon = 10.5 if step % 2 == 0 else 9.0
            events.append({"oid": self.mover.name, "ts": _BEGIN + step * 60_000, "loc": [lon, 50.5], "step": step})
        self.mover.publish(*events)


@pytest.fixture
def pair(live_server: LiveServer) -> Pair:
    mover, shop = live_server.user("mover"), live_server.user("shop")
    shop.square(f"{shop.name}.DOOR", 10, 50)
    grant = mover.grant(shop)
    shop.subscribe("door", f"({mover.name}) within ({shop.name}.DOOR)")
    return Pair(mover, shop, grant, count())


def offsets(notifications: list[dict[str, Any]]) -> list[int]:
    return [each["offset"] for each in notifications]


def test_a_cursor_reads_everything_once_and_in_order(pair: Pair):
    pair.move(7)
    after, seen = 0, []
    while True:
        page = pair.shop.done("GET", "/v1/notifications", params={"after": after, "limit": 3})
        if not page["notifications"]:
            break
        assert page["next"] == page["notifications"][-1]["offset"]
        seen += page["notifications"]
        after = page["next"]
    assert page["next"] == after == 7
    assert offsets(seen) == list(range(1, 8))
    assert [each["mode"] for each in seen] == ["enter", "leave"] * 3 + ["enter"]
    assert len({each["id"] for each in seen}) == 7
    assert pair.shop.told() == pair.shop.told()  # reading changes nothing


def test_a_long_poll_waits_for_what_comes_and_not_for_ever(pair: Pair):
    assert pair.shop.told(wait_s=0.05) == []
    threading.Timer(0.3, pair.move).start()
    (told,) = pair.shop.told(wait_s=20)
    assert told["mode"] == "enter"


@contextmanager
def server_sent(who: Person, **headers: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    def events(answer: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
        fields: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif fields:
                assert fields["event"] == "notification"
                yield fields["id"], json.loads(fields["data"])
                fields = {}

    headers = {**who.headers, "Accept": "text/event-stream", **headers}
    with (
        httpx.Client(base_url=who.url, timeout=20, trust_env=False) as http,
        http.stream("GET", "/v1/notifications", headers=headers) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events(answer)


def test_server_sent_events_resume_behind_the_last_event_id(pair: Pair):
    pair.move(3)
    with server_sent(pair.shop) as events:
        first = [next(events) for _ in range(2)]
    assert [identifier for identifier, _ in first] == ["1", "2"]
    with server_sent(pair.shop, **{"Last-Event-ID": first[-1][0]}) as events:
        assert next(events)[1]["offset"] == 3
        pair.move()
        live = next(events)[1]
    assert live == pair.shop.told(after=3)[0]


def streaming(who: Person, after: object) -> ClientConnection:
    url = who.url.replace("http", "ws", 1)
    return connect(f"{url}/v1/stream?after={after}", additional_headers=who.headers, proxy=None)


def test_the_stream_begins_behind_after_and_goes_on_live(pair: Pair):
    pair.move(3)
    with streaming(pair.shop, 1) as socket:
        seen = [json.loads(socket.recv(timeout=10)) for _ in range(2)]
        pair.move()
        seen.append(json.loads(socket.recv(timeout=10)))
    assert seen == pair.shop.told(after=1)


@pytest.mark.parametrize(("key", "after", "status"), [("fpk_no_key", 0, 401), (None, "soon", 400)])
def test_a_stream_that_can_not_be_is_a_problem(pair: Pair, key: str | None, after: object, status: int):
    caller = Person(pair.shop.name, key or pair.shop.key, pair.shop.url, pair.shop.http)
    with pytest.raises(InvalidStatus) as refused:
        streaming(caller, after)
    assert refused.value.response.status_code == status
    assert refused.value.response.headers["Content-Type"] == "application/problem+json"


def test_a_revoked_grant_withdraws_the_next_delivery_and_a_new_one_brings_it_back(pair: Pair):
    pair.move(2)
    before = pair.shop.told()
    withdrawn = [{"offset": 1, "withdrawn": True}, {"offset": 2, "withdrawn": True}]
    pair.mover.done("DELETE", f"/v1/privacy/grants/{pair.grant}")
    assert pair.shop.told() == withdrawn
    with server_sent(pair.shop) as events:
        assert [next(events)[1] for _ in range(2)] == withdrawn
    with streaming(pair.shop, 0) as socket:
        assert [json.loads(socket.recv(timeout=10)) for _ in range(2)] == withdrawn
    pair.move(2)  # never allowed: no offset, no trace
    assert pair.shop.told() == withdrawn

    pair.mover.grant(pair.shop)
    assert pair.shop.told() == before
    pair.move()
    (told,) = pair.shop.told(after=2)
    assert (told["offset"], told["mode"]) == (3, "enter")  # a gap would mean loss


def test_a_grant_for_enter_alone_withdraws_only_the_leave(pair: Pair):
    pair.move(2)
    pair.mover.grant(pair.shop, "enter")
    first, second = pair.shop.told()
    assert first["mode"] == "enter"
    assert second == {"offset": 2, "withdrawn": True}


def test_a_stranger_can_not_tell_not_there_from_not_allowed(pair: Pair, live_server: LiveServer):
    stranger = live_server.user("stranger")
    there, absent = pair.mover.name, f"nobody{pair.mover.name}"
    their_zone = f"{pair.shop.name}.DOOR"
    no_zone = f"{pair.shop.name}.ROOD"
    home = f"{stranger.name}.HOME"
    stranger.square(home, 0, 0)

    def same(one: httpx.Response, other: httpx.Response, real: str, unreal: str) -> None:
        assert one.status_code == other.status_code == 404
        assert one.content.replace(real.encode(), b"?") == other.content.replace(unreal.encode(), b"?")
        assert one.headers.keys() == other.headers.keys()

    def selector(text: str) -> dict[str, str]:
        return {"selector": text}

    ask = stranger.ask
    put = "/v1/subscriptions/s"
    for real, unreal in ((there, absent), (f"{there}/van", f"{absent}/van")):
        one = ask("PUT", put, selector(f"('{real}') within ({home})"))
        same(one, ask("PUT", put, selector(f"('{unreal}') within ({home})")), real, unreal)
        event = {"ts": _BEGIN, "loc": [1, 1]}
        one = ask("POST", "/v1/events", {**event, "oid": real})
        same(one, ask("POST", "/v1/events", {**event, "oid": unreal}), real, unreal)
        one = ask("POST", "/v1/agents", {"oid": real})
        same(one, ask("POST", "/v1/agents", {"oid": unreal}), real, unreal)
    for real, unreal in ((their_zone, no_zone), (their_zone, f"{absent}.DOOR")):
        one = ask("PUT", put, selector(f"({stranger.name}) within ({real})"))
        same(one, ask("PUT", put, selector(f"({stranger.name}) within ({unreal})")), real, unreal)
        same(ask("GET", f"/v1/zones/{real}"), ask("GET", f"/v1/zones/{unreal}"), real, unreal)
        same(ask("DELETE", f"/v1/zones/{real}"), ask("DELETE", f"/v1/zones/{unreal}"), real, unreal)
    grant = ask("DELETE", f"/v1/privacy/grants/{pair.grant}")
    same(grant, ask("DELETE", "/v1/privacy/grants/987654"), str(pair.grant), "987654")
    zones = stranger.done("GET", "/v1/zones", params={"owner": pair.shop.name})
    assert zones == stranger.done("GET", "/v1/zones", params={"owner": absent})


def test_a_grant_for_leave_alone_does_not_say_when_the_visit_began(pair: Pair):
    pair.move(2)
    assert pair.shop.told()[1]["duration_s"] == 60
    pair.mover.grant(pair.shop, "leave")
    withdrawn, leave = pair.shop.told()
    assert withdrawn == {"offset": 1, "withdrawn": True}
    assert leave["mode"] == "leave"
    assert not leave.keys() & {"visit", "duration_s"}


@pytest.mark.parametrize("selector", ["NOT ({0}) within ({1})", "(*) within (SYSTEM.*) OR NOT ({0}) within ({1})"])
@pytest.mark.parametrize(("granted", "options"), [("enter", {"tos": "first"}), ("leave", {"modes": ["leave"]})])
def test_not_does_not_turn_a_grant_for_one_edge_into_the_other(
    pair: Pair, selector: str, granted: str, options: dict[str, Any]
):
    pair.mover.grant(pair.shop, granted)
    negated = selector.format(pair.mover.name, f"{pair.shop.name}.DOOR")
    answer = pair.shop.ask("PUT", "/v1/subscriptions/not", {"selector": negated, **options})
    assert (answer.status_code, answer.json()["code"]) == (404, "object_not_found")

    everybody = negated.replace(f"({pair.mover.name})", "(*)")
    pair.shop.subscribe("not", everybody, **options)
    pair.move(4)
    assert [each for each in pair.shop.told() if each.get("subscription") == "not"] == []


def test_a_revoked_key_ends_the_streams_it_has_opened(pair: Pair, live_server: LiveServer):
    pair.move()
    with streaming(pair.shop, 0) as socket, server_sent(pair.shop) as events:
        socket.recv(timeout=10)
        next(events)
        live_server.revoke_key(pair.shop)
        pair.move()
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=10)
        assert list(events) == []
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "key_invalid")


async def test_the_device_shows_its_own_user_what_is_addressed_to_them(live_server: LiveServer):
    mike = live_server.user("mike")
    selector = f"({mike.name}) within (CIRCLE(10 50, 1000))"
    mike.subscribe("coupon", selector)
    source = CallbackSource()
    async with Agent(live_server.url, mike.enrol(), source, state=None, notifications=True) as agent:
        source.push(10.0, 50.0, ts=_BEGIN, coupon="10 % off")
        source.push(11.0, 50.0, ts=_BEGIN + 60_000)
        source.close()
        shown = []
        async for notification in agent.notifications():
            shown.append(notification)
            if len(shown) == 2:
                break
        await agent.run()
        assert agent.counts.edges == 2
    assert [(each["mode"], each.get("coupon")) for each in shown] == [("enter", "10 % off"), ("leave", None)]
    assert shown == mike.told()
