"""Subscribing over /v1/stream: the same as over HTTP, on the connection that brings the notifications."""

import json
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.e2e.conftest import LiveServer, Person

NOON = 1_790_000_000_000


@pytest.fixture
def acme(live_server: LiveServer) -> Person:
    return live_server.user("acme")


@pytest.fixture
def shop(live_server: LiveServer, acme: Person) -> Person:
    shop = live_server.user("shop")
    shop.square(f"{shop.name}.Mall", 0, 0)
    acme.grant(shop)
    return shop


def streaming(who: Person) -> ClientConnection:
    url = who.url.replace("http", "ws", 1)
    return connect(f"{url}/v1/stream", additional_headers=who.headers, proxy=None)


def say(socket: ClientConnection, message: Any) -> dict[str, Any]:
    socket.send(message if isinstance(message, str | bytes) else json.dumps(message))
    answer: dict[str, Any] = json.loads(socket.recv(timeout=10))
    return answer


def test_one_connection_subscribes_is_told_changes_and_ends_it(acme: Person, shop: Person) -> None:
    selector = f"('{acme.name}/van') within ({shop.name}.Mall)"
    with streaming(shop) as socket:
        created = say(socket, {"t": "subscribe", "ref": 1, "id": "s", "subscription": {"selector": selector}})
        assert (created["ref"], created["status"]) == (1, 201)
        assert created["body"] == shop.done("GET", "/v1/subscriptions/s")
        again = say(socket, {"t": "subscribe", "ref": "b", "id": "s", "subscription": {"selector": selector}})
        assert (again["ref"], again["status"], again["body"]) == ("b", 200, created["body"])

        acme.publish({"oid": f"{acme.name}/van", "ts": NOON, "loc": [0.5, 0.5]})
        told = json.loads(socket.recv(timeout=10))
        assert (told["offset"], told["mode"], told["subscription"]) == (1, "enter", "s")
        assert "offset" not in created

        body = {"selector": selector, "paused": True, "expires": "2030-01-01T00:00:00Z"}
        paused = say(socket, {"t": "subscribe", "ref": 2, "id": "s", "subscription": body})
        assert (paused["status"], paused["body"]["paused"]) == (200, True)
        assert say(socket, {"t": "read", "ref": 3, "id": "s"})["body"] == paused["body"]
        listed = say(socket, {"t": "list", "ref": 4})
        assert listed["body"] == {"items": [paused["body"]], "next": None}
        assert say(socket, {"t": "unsubscribe", "ref": 5, "id": "s"}) == {"ref": 5, "status": 204, "body": None}
        assert say(socket, {"t": "read", "ref": 6, "id": "s"})["status"] == 404
    assert shop.ask("GET", "/v1/subscriptions/s").status_code == 404


def test_what_is_refused_is_refused_as_over_http(shop: Person) -> None:
    bodies = [
        {"selector": "speed >"},
        {"selector": f"(nobody) within ({shop.name}.Mall)"},
        {"selector": "TRUE", "tos": "every", "dwell_s": 5},
        {"selector": "TRUE", "id": "another"},
    ]
    with streaming(shop) as socket:
        for ref, body in enumerate(bodies):
            over_http = shop.ask("PUT", "/v1/subscriptions/s", body)
            reply = say(socket, {"t": "subscribe", "ref": ref, "id": "s", "subscription": body})
            assert (reply["ref"], reply["status"]) == (ref, over_http.status_code)
            assert reply["body"]["code"] == over_http.json()["code"]
        assert (
            say(socket, {"t": "unsubscribe", "ref": 9, "id": "s"})["body"]
            == shop.ask("DELETE", "/v1/subscriptions/s").json()
        )


@pytest.mark.parametrize(
    "frame",
    ["", "[]", "{", "null", '{"t": "shout", "ref": 1}', '{"t": "list"}', b"\x00", '{"t": "list", "ref": 1, "x": 1}',
     '{"t": "list", "ref": 1, "after": -1}', '{"t": "list", "ref": "' + "x" * 101 + '"}',
     '{"t": "subscribe", "ref": 1, "id": "s", "subscription": {}}', "[" * 5000],
)  # fmt: skip
def test_a_frame_that_says_nothing_is_answered_and_the_stream_goes_on(shop: Person, frame: str | bytes) -> None:
    with streaming(shop) as socket:
        assert say(socket, frame)["status"] == 400
        assert say(socket, {"t": "list", "ref": "still"})["ref"] == "still"


def test_messages_are_answered_in_the_order_in_which_they_were_sent(shop: Person) -> None:
    with streaming(shop) as socket:
        for ref in range(20):
            body = {"selector": f"({shop.name}) within ({shop.name}.Mall)"}
            socket.send(json.dumps({"t": "subscribe", "ref": ref, "id": f"s{ref}", "subscription": body}))
        replies = [json.loads(socket.recv(timeout=10)) for _ in range(20)]
    assert [reply["ref"] for reply in replies] == list(range(20))
    assert all(reply["status"] == 201 for reply in replies)


def test_a_revoked_key_does_nothing_more(shop: Person, live_server: LiveServer) -> None:
    body = {"selector": f"({shop.name}) within ({shop.name}.Mall)"}
    with streaming(shop) as socket:
        live_server.revoke_key(shop)
        socket.send(json.dumps({"t": "subscribe", "ref": 1, "id": "s", "subscription": body}))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=10)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "key_invalid")
