"""`fencepost poll`: ask a tracking service again and again, and publish what is new.

It asks no more often than told, says what it has already (ETag, Last-Modified), waits longer and longer while the
service or the server does not answer, and keeps to Retry-After. Nothing is kept on disk: what is sent again after a
restart is not newer than what the server knows, and changes nothing there.
"""

import argparse
import http.client
import random
import re
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request

import msgspec

from agent_sdk.backoff import Backoff
from server.cli.feeds import FeedEvent, FeedInvalid, FeedMap, News, items_of
from server.cli.http import Client, Refused, ServerUrlInvalid, add_server_arguments, connect, host_of, opener_for
from server.cli.output import add_json_argument, explain, print_json
from zones.errors import CallerError, FencepostError
from zones.names import check_owner_name

__all__ = ["Feed", "FeedUnreachable", "Polled", "Poller", "add_arguments", "keep_polling", "run"]

_TIMEOUT_S = 30.0
_MAX_BYTES = 64 * 1024 * 1024
_BATCH = 1000
_LONGEST_WAIT_S = 900.0
_REFUSED_FOR_S = 600.0  # how long an object that the server refused is not tried again
_KEY_REFUSED = 401
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})


class FeedUnreachable(CallerError):
    """A tracking service does not answer, or not with its feed."""

    code = "feed_unreachable"


class Polled(msgspec.Struct, frozen=True):
    """What one look at the feed gave."""

    items: int = 0
    published: int = 0
    late: int = 0  # the server knew newer ones
    faulty: int = 0  # items that are no events
    refused: int = 0  # events that the server does not take
    unchanged: bool = False  # the service said that nothing is new


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Fetch a JSON or GeoJSON feed of a tracking service and publish what is new in it, again and again. The key is "
        "that of the location provider, to whom the owners of the objects have delegated."
    )
    parser.add_argument("--feed", required=True, metavar="URL", help="where the service has its feed")
    parser.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="to send to the service")
    parser.add_argument(
        "--items", metavar="PATH", help="where the list is: data.vehicles (default: the feed is the list)"
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        type=_field,
        metavar="NAME=PATH",
        help="a part of the event (oid, ts, lon, lat, loc, unc) or a pair, and where items have it: speed=motion.speed",
    )
    parser.add_argument("--owner", help="the feed's ids are names of this user's objects: 7 is OWNER/7")
    parser.add_argument("--ts-unit", choices=("ms", "s"), default="ms", help="of times that are numbers (default: ms)")
    parser.add_argument("--interval", type=_seconds, default=30.0, metavar="S", help="seconds (default: 30)")
    parser.add_argument("--once", action="store_true", help="look once and end, for cron")
    add_server_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    if args.owner is not None:
        check_owner_name(args.owner)
    mapping = FeedMap(dict(args.map), args.owner, args.ts_unit == "s")
    poller = Poller(connect(args), Feed(args.feed, _headers(args.header)), mapping, args.items)

    def show(polled: Polled) -> None:
        if args.json:
            print_json(msgspec.to_builtins(polled))
        elif args.once or polled.published or polled.refused:
            explain(_sentence(polled))

    if args.once:
        show(poller.poll())
        return 0
    keep_polling(poller, args.interval, show, explain, threading.Event().wait)
    return 0


def keep_polling(
    poller: "Poller",
    interval_s: float,
    show: Callable[[Polled], None],
    complain: Callable[[str], None],
    wait: Callable[[float], Any],
) -> None:
    """For ever, or until the server no longer takes the key; the same complaint is made once."""
    backoff = Backoff(random.random, base_s=2 * interval_s, cap_s=max(_LONGEST_WAIT_S, interval_s))
    said = ""
    while True:
        wait_s = interval_s
        try:
            show(poller.poll())
            backoff.reset()
            said = ""
        except FencepostError as error:
            if isinstance(error, Refused) and error.details.get("status") == _KEY_REFUSED:
                raise
            if error.sentence != said:
                said = error.sentence
                complain(f"{said} Trying again.")
            asked = error.details.get("retry_after_s", 0.0)
            wait_s = max(interval_s + backoff.next_s(), min(asked, _LONGEST_WAIT_S))
        wait(wait_s)


class Feed:
    """The feed of a tracking service, and what is known of the version that was read last."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        host = host_of(url)
        if not host:
            raise ServerUrlInvalid(f"'{url}' is not the URL of a feed.", hint="Write it as https://host/path.")
        self._url, self._headers, self._opener = url, headers, opener_for(host)
        self._known: dict[str, str] = {}
        self._next: dict[str, str] = {}

    def fetch(self) -> bytes | None:
        """What it says; None if it is still what `accepted` was called for."""
        usual = {"Accept": "application/json, application/geo+json", "Accept-Encoding": "gzip"}
        request = Request(self._url, headers=usual | self._headers | self._known)
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                data: bytes = answer.read(_MAX_BYTES + 1)
                headers = answer.headers
        except HTTPError as error:
            with error:
                if error.code == 304:
                    return None
                raise _no_feed(error) from None
        except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise FeedUnreachable(f"The tracking service does not answer: {text}.", hint="Check the URL.") from error
        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        self._next = {asked: headers[name] for name, asked in names.items() if headers[name]}
        if headers["Content-Encoding"] == "gzip":
            data = _unpacked(data)
        if len(data) > _MAX_BYTES:
            raise FeedInvalid(f"The feed has more than {_MAX_BYTES} bytes.", hint="Ask the service for a smaller one.")
        return data

    def accepted(self) -> None:
        """What was fetched last is published: only something newer is of interest."""
        self._known = self._next


class Poller:
    def __init__(
        self,
        client: Client,
        feed: Feed,
        mapping: FeedMap,
        items: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._feed, self._mapping, self._items, self._clock = client, feed, mapping, items, clock
        self._news = News()
        self._refused: dict[str, float] = {}  # until when objects are not tried again

    def poll(self) -> Polled:
        """Look once; raises what keeps it from looking or publishing."""
        data = self._feed.fetch()
        if data is None:
            return Polled(unchanged=True)
        items = items_of(data, self._items)
        events, faults = self._news.of(items, self._mapping)
        if faults and len(faults) == len(items):
            raise FeedInvalid(
                f"No item of the feed is an event; the first one: {faults[0].sentence}",
                hint="Say with --map where oid, ts, lon and lat are.",
            )
        now = self._clock()
        self._refused = {oid: until for oid, until in self._refused.items() if until > now}
        wanted = [event for event in events if event.oid not in self._refused]
        counts = _Counts(refused=len(events) - len(wanted))
        for start in range(0, len(wanted), _BATCH):
            self._publish(wanted[start : start + _BATCH], counts)
        self._feed.accepted()
        return Polled(len(items), counts.published, counts.late, len(faults), counts.refused)

    def _publish(self, events: Sequence[FeedEvent], counts: "_Counts") -> None:
        """A batch is taken whole or not at all, so one that is refused is halved until what is refused is alone."""
        try:
            answer = self._client.call("POST", "/v1/events", body=[event.body for event in events])
        except Refused as refused:
            status = refused.details.get("status")
            if status == _KEY_REFUSED or status in _TRY_AGAIN:
                raise
            if len(events) == 1:
                counts.refused += 1
                self._refused[events[0].oid] = self._clock() + _REFUSED_FOR_S
                explain(f"{refused.sentence} It is left out for {_REFUSED_FOR_S / 60:.0f} minutes.")
                return
            middle = len(events) // 2
            self._publish(events[:middle], counts)
            self._publish(events[middle:], counts)
            return
        counts.published += answer["accepted"]
        counts.late += answer["late"]
        for event in events:
            self._news.taken(event)


@dataclass
class _Counts:
    published: int = 0
    late: int = 0
    refused: int = 0


def _no_feed(error: HTTPError) -> FeedUnreachable:
    where = error.headers.get("Location") if 300 <= error.code < 400 else None
    moved = f", and that it is at {where} now" if where else ""
    retry = error.headers.get("Retry-After", "")
    return FeedUnreachable(
        f"The tracking service answered {error.code} {error.reason}{moved}.".replace(" .", "."),
        hint="Give that address with --feed." if where else "Check the URL, and what the service wants in --header.",
        retry_after_s=float(retry) if re.fullmatch(r"[0-9]{1,6}", retry) else 0.0,
    )


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _MAX_BYTES + 1)
    except zlib.error:
        raise FeedInvalid("The feed is packed by gzip, and damaged.", hint="Ask the service.") from None


def _sentence(polled: Polled) -> str:
    if polled.unchanged:
        return "Nothing is new."
    more = {"late": polled.late, "faulty": polled.faulty, "refused": polled.refused}
    rest = "".join(f", {count:,} {name}" for name, count in more.items() if count)
    return f"{polled.items:,} items: {polled.published:,} published{rest}."


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name.strip()) or not value.strip().isprintable():
            raise FeedInvalid(f"'{name}' is not a header.", hint="Write it as 'Name: value'.")
        headers[name.strip()] = value.strip()
    return headers


def _field(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name or not path:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PATH")
    return name, path


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 1 to 86400")
    return seconds
