"""What the feed of a tracking service says, as events: which of its items, which of their fields, and what is new.

A feed is JSON: a list, an object with a list somewhere in it, or a GeoJSON FeatureCollection, whose features are read
as their properties with `id` and `geometry` beside them. Fields are named by paths: `position.lat`, `stops.0.name`.
What a feed has of one object is often faulty: that item is left out and counted, and the others go on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from matcher.event_format import parse_event
from matcher.once import Instant
from zones.errors import CallerError
from zones.names import fold
from zones.shapes import Point

__all__ = ["FeedEvent", "FeedInvalid", "FeedMap", "News", "items_of"]

# Where an event's own parts are looked for when nobody says where they are.
_USUAL = {
    "oid": ("oid", "id"),
    "ts": ("ts", "timestamp", "time"),
    "loc": ("loc", "geometry"),
    "lon": ("lon", "lng", "longitude"),
    "lat": ("lat", "latitude"),
    "unc": ("unc",),
}


class FeedInvalid(CallerError):
    """A feed is not JSON, or has no list of items that are events where it was looked for."""

    code = "feed_invalid"


def items_of(data: bytes, path: str | None) -> list[Any]:
    """The items of a feed: at this path, else the feed itself, or the features of a FeatureCollection."""
    try:
        document = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise FeedInvalid("The feed is not JSON.", hint="Give the address of a JSON or GeoJSON feed.") from None
    if path is None:
        is_collection = isinstance(document, Mapping) and document.get("type") == "FeatureCollection"
        items = document.get("features") if is_collection else document
    else:
        items = _at(document, path)
    if not isinstance(items, list):
        where = "is not a list" if path is None else f"has no list at {path}"
        raise FeedInvalid(f"The feed {where}.", hint="Say with --items where its list is, for example data.vehicles.")
    return items


@dataclass(frozen=True)
class FeedEvent:
    """An item of a feed that is an event, as it is published."""

    oid: str  # folded
    ts: Instant
    body: dict[str, Any]


@dataclass(frozen=True)
class FeedMap:
    """How an item becomes an event: the paths of its parts and pairs, whose objects they are, and the unit of `ts`."""

    paths: Mapping[str, str] = field(default_factory=dict)
    owner: str | None = None  # the feed's ids are names of this user's objects
    seconds: bool = False  # numbers in ts are seconds, not milliseconds

    def event_of(self, item: Any) -> FeedEvent:
        """The item as an event; raises a `CallerError` if it is none."""
        if not isinstance(item, Mapping):
            raise FeedInvalid("An item of the feed is not an object.", hint="Say with --items where they are.")
        source = _flat(item)
        event = {name: _at(source, path) for name, path in self.paths.items()}
        for name, usual in _USUAL.items():
            if name not in event:
                event[name] = next((source[each] for each in usual if source.get(each) is not None), None)
        lon, lat = event.pop("lon"), event.pop("lat")
        if event["loc"] is None or "lon" in self.paths:
            event["loc"] = None if lon is None or lat is None else [_number(lon), _number(lat)]
        if event["loc"] is None:
            raise FeedInvalid("An item of the feed has no place.", hint="Say with --map where lon and lat are.")
        event["unc"] = _number(event["unc"])
        event["oid"] = self._oid(event["oid"])
        event["ts"] = self._instant(event["ts"])
        body = {name: value for name, value in event.items() if value is not None}
        checked = parse_event(body, locate=_anywhere)
        return FeedEvent(fold(checked.oid), checked.ts, body)

    def _oid(self, oid: object) -> object:
        text = str(oid) if isinstance(oid, int) and not isinstance(oid, bool) else oid
        return f"{self.owner}/{text}" if self.owner is not None and isinstance(text, str) else text

    def _instant(self, ts: object) -> object:
        if isinstance(ts, str) and ts.isascii() and ts.isdigit():
            ts = int(ts)
        if self.seconds and isinstance(ts, int | float) and not isinstance(ts, bool):
            return round(ts * 1000)
        return int(ts) if isinstance(ts, float) and ts.is_integer() else ts


class News:
    """What of a feed has not been published yet: of each object what is newer than the newest."""

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def of(self, items: Sequence[Any], mapping: FeedMap) -> tuple[list[FeedEvent], list[CallerError]]:
        """The new events in the order of time, and what was wrong with other items."""
        events: list[FeedEvent] = []
        faults: list[CallerError] = []
        for item in items:
            try:
                event = mapping.event_of(item)
            except CallerError as fault:
                faults.append(fault)
                continue
            if event.ts > self._newest.get(event.oid, -1):
                events.append(event)
        return sorted(events, key=lambda event: event.ts), faults

    def taken(self, event: FeedEvent) -> None:
        """The server has it."""
        self._newest[event.oid] = max(event.ts, self._newest.get(event.oid, -1))


def _anywhere(_text: str) -> Point:
    """Whether a textual place is one, the server knows."""
    return 0.0, 0.0


def _flat(item: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = item.get("properties")
    if item.get("type") != "Feature" or not isinstance(properties, Mapping):
        return item
    return {"id": item.get("id"), **properties, "geometry": item.get("geometry")}


def _at(value: Any, path: str) -> Any:
    """What is at the path; None if it leads nowhere."""
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _number(value: Any) -> Any:
    """Feeds write numbers as text, too."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
