"""`fencepost poll`: a real feed, a real server, and what goes wrong between them."""

import gzip
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent_sdk.errors import ServerUnreachable
from server.cli.feeds import FeedInvalid, FeedMap
from server.cli.http import Client, Refused
from server.cli.main import main
from server.cli.poll import Feed, Polled, Poller, keep_polling
from tests.e2e.conftest import LiveServer, Person


@dataclass
class Service:
    """A tracking service; `answers` go before `document`."""

    url: str = ""
    document: Any = None
    etag: str | None = None
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append(dict(self.headers))
            headers: dict[str, str] = {}
            status, data = 200, json.dumps(service.document).encode()
            if service.answers:
                status, headers, data = service.answers.pop(0)
            elif service.etag is not None:
                headers = {"ETag": service.etag, "Last-Modified": "Wed, 18 Nov 2026 07:00:00 GMT"}
                if self.headers.get("If-None-Match") == service.etag:
                    status, data = 304, b""
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        service.url = f"http://127.0.0.1:{server.server_port}/vehicles"
        yield service
        server.shutdown()
        thread.join()


@dataclass
class Fleet:
    carrier: Person
    acme: Person
    shop: Person

    def told(self) -> list[tuple[str, str, str]]:
        return [(each["oid"].rpartition("/")[2], each["mode"], each["lpid"]) for each in self.shop.told()]


@pytest.fixture
def fleet(live_server: LiveServer) -> Fleet:
    fleet = Fleet(*(live_server.user(name) for name in ("carrier", "acme", "shop")))
    fleet.acme.grant(fleet.shop)
    oids = [f"{fleet.acme.name}/{name}" for name in ("7", "8")]
    fleet.acme.done("PUT", f"/v1/privacy/delegations/{fleet.carrier.name}", {"oids": oids})
    fleet.shop.square(f"{fleet.shop.name}.Yard", 10, 50)
    fleet.shop.subscribe("yard", f"(*) within ('{fleet.shop.name}.Yard')")
    return fleet


def vehicle(id: Any, ts: int, lon: Any = 10.5) -> dict[str, Any]:
    return {"id": id, "seen": ts, "position": {"lon": lon, "lat": 50.5}}


def poller_of(fleet: Fleet, service: Service, clock: Any = lambda: 0.0) -> Poller:
    paths = {"oid": "id", "ts": "seen", "lon": "position.lon", "lat": "position.lat"}
    mapping = FeedMap(paths, fleet.acme.name, seconds=True)
    return Poller(Client(fleet.carrier.url, fleet.carrier.key), Feed(service.url, {}), mapping, "vehicles", clock)


def test_what_is_new_in_a_feed_is_published(fleet: Fleet, service: Service):
    poller = poller_of(fleet, service)
    service.document = {"vehicles": [vehicle(7, 1), vehicle(8, 1, 0), vehicle(7, 2)]}
    assert poller.poll() == Polled(items=3, published=3)
    assert poller.poll() == Polled(items=3)
    service.document = {"vehicles": [vehicle(7, 3, 0), vehicle(8, 1, 0), {"id": 9}]}
    assert poller.poll() == Polled(items=3, published=1, faulty=1)
    assert fleet.told() == [("7", "enter", fleet.carrier.name), ("7", "leave", fleet.carrier.name)]


def test_another_poller_sends_it_again_and_that_changes_nothing(fleet: Fleet, service: Service):
    service.document = {"vehicles": [vehicle(7, 1)]}
    assert poller_of(fleet, service).poll() == Polled(items=1, published=1)
    assert poller_of(fleet, service).poll() == Polled(items=1, late=1)


def test_a_service_is_told_what_is_known_already(fleet: Fleet, service: Service):
    poller = poller_of(fleet, service)
    service.document, service.etag = {"vehicles": [vehicle(7, 1)]}, '"v1"'
    assert poller.poll().published == 1
    assert poller.poll() == Polled(unchanged=True)
    service.document, service.etag = {"vehicles": [vehicle(7, 2)]}, '"v2"'
    assert poller.poll().published == 1
    assert [asked.get("If-None-Match") for asked in service.asked] == [None, '"v1"', '"v1"']
    assert service.asked[1]["If-Modified-Since"] == "Wed, 18 Nov 2026 07:00:00 GMT"


def test_what_could_not_be_published_is_not_taken_for_known(fleet: Fleet, service: Service):
    poller = poller_of(fleet, service)
    service.document, service.etag = {"vehicles": [vehicle(7, 1)]}, '"v1"'
    good, poller._client = poller._client, Client("http://127.0.0.1:1", "fpk_x_y")
    with pytest.raises(ServerUnreachable):
        poller.poll()
    poller._client = good
    assert poller.poll().published == 1
    assert "If-None-Match" not in service.asked[1]


def test_objects_that_are_not_delegated_do_not_keep_the_others_back(fleet: Fleet, service: Service, capsys):
    now = [0.0]
    poller = poller_of(fleet, service, lambda: now[0])
    service.document = {"vehicles": [vehicle(name, 1) for name in ("x", 7, "y", 8, "z")]}
    assert poller.poll() == Polled(items=5, published=2, refused=3)
    assert [mode for _, mode, _ in fleet.told()] == ["enter", "enter"]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert f"There is no object '{fleet.acme.name}/x' that you may publish for. It is left out" in said[0]
    service.document = {"vehicles": [vehicle("x", 2), vehicle(7, 2)]}
    assert poller.poll() == Polled(items=2, published=1, refused=1)
    assert capsys.readouterr().err == ""
    fleet.acme.done("PUT", f"/v1/privacy/delegations/{fleet.carrier.name}", {})
    now[0] = 601.0
    assert poller.poll() == Polled(items=2, published=1)


def test_packed_feeds_are_unpacked(fleet: Fleet, service: Service):
    packed = gzip.compress(json.dumps({"vehicles": [vehicle(7, 1)]}).encode())
    service.answers = [(200, {"Content-Encoding": "gzip"}, packed), (200, {"Content-Encoding": "gzip"}, b"broken")]
    poller = poller_of(fleet, service)
    assert poller.poll().published == 1
    with pytest.raises(FeedInvalid, match="damaged"):
        poller.poll()


def test_a_feed_of_nothing_that_is_an_event_is_a_mistake_in_the_mapping(fleet: Fleet, service: Service):
    service.document = {"vehicles": [{"name": "7"}, {"name": "8"}]}
    with pytest.raises(FeedInvalid, match="No item of the feed is an event"):
        poller_of(fleet, service).poll()
    service.document = {"vehicles": []}
    assert poller_of(fleet, service).poll() == Polled()


class Enough(Exception):
    pass


def polling(poller: Poller, times: int, interval_s: float = 10.0) -> tuple[list[Polled], list[str], list[float]]:
    """What is shown, complained about and waited for in so many rounds."""
    shown: list[Polled] = []
    said: list[str] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == times:
            raise Enough

    with pytest.raises(Enough):
        keep_polling(poller, interval_s, shown.append, said.append, wait)
    return shown, said, waits


def test_errors_are_survived_and_waited_out(fleet: Fleet, service: Service):
    poller = poller_of(fleet, service)
    service.document = {"vehicles": [vehicle(7, 1)]}
    service.answers = [
        (503, {}, b""),
        (503, {}, b""),
        (200, {}, b"<html>"),
        (429, {"Retry-After": "333"}, b""),
        (302, {"Location": "http://127.0.0.1:1/"}, b""),
    ]
    shown, said, waits = polling(poller, 7)
    assert shown == [Polled(items=1, published=1), Polled(items=1)]
    assert said == [
        "The tracking service answered 503 Service Unavailable. Trying again.",
        "The feed is not JSON. Trying again.",
        "The tracking service answered 429 Too Many Requests. Trying again.",
        "The tracking service answered 302 Found, and that it is at http://127.0.0.1:1/ now. Trying again.",
    ]
    assert all(wait >= 10 for wait in waits)
    assert waits[3] >= 333
    assert waits[5:] == [10.0, 10.0]


def test_a_service_that_is_away_is_asked_less_and_less_often(fleet: Fleet):
    poller = poller_of(fleet, Service(url="http://127.0.0.1:1/"))
    _, said, waits = polling(poller, 40)
    assert len(said) == 1
    assert said[0].startswith("The tracking service does not answer: ")
    assert all(10 <= wait <= 10 + 900 for wait in waits)
    assert max(waits[20:]) > 200  # drawn from up to 900 s each


def test_a_key_that_is_no_longer_valid_ends_it(fleet: Fleet, service: Service, live_server: LiveServer):
    service.document = {"vehicles": [vehicle(7, 1), vehicle(8, 1)]}
    live_server.revoke_key(fleet.carrier)
    with pytest.raises(Refused, match="API key"):
        keep_polling(poller_of(fleet, service), 10, print, print, lambda _seconds: None)


def test_once_is_for_cron(fleet: Fleet, service: Service, capsys: pytest.CaptureFixture[str]):
    service.document = {"vehicles": [vehicle("7", 1), vehicle("9", 1)]}
    argv = [
        "poll",
        "--feed",
        service.url,
        "--items",
        "vehicles",
        "--owner",
        fleet.acme.name,
        "--ts-unit",
        "s",
        "--once",
    ]
    for word in ("oid=id", "ts=seen", "lon=position.lon", "lat=position.lat"):
        argv += ["--map", word]
    argv += ["--header", "X-Key: secret", "--url", fleet.carrier.url, "--key", fleet.carrier.key]
    assert main([*argv, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "items": 2,
        "published": 1,
        "late": 0,
        "faulty": 0,
        "refused": 1,
        "unchanged": False,
    }
    assert service.asked[0]["X-Key"] == "secret"
    assert main(argv) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "2 items: 0 published, 1 late, 1 refused."
    service.answers = [(500, {}, b"")]
    assert main(argv) == 1
    assert "answered 500 Internal Server Error." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--feed", "ftp://x"], 1, "'ftp://x' is not the URL of a feed"),
        (["--feed", "http://127.0.0.1:1/", "--header", "nothing"], 1, "'nothing' is not a header"),
        (["--feed", "http://127.0.0.1:1/", "--owner", "a/b"], 1, "has a '/' in it"),
        (["--feed", "http://127.0.0.1:1/", "--map", "oid"], 2, "'oid' is not NAME=PATH"),
        (["--feed", "http://127.0.0.1:1/", "--interval", "0"], 2, "not a number of seconds"),
        (["--feed", "http://127.0.0.1:1/", "--once"], 1, "The tracking service does not answer"),
    ],
)
def test_bad_usage_is_said(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]):
    assert main(["poll", *words, "--key", "fpk_x_y"]) == code
    assert said in capsys.readouterr().err
