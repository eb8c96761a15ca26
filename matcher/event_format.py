"""Events as plain JSON objects, in and out.

    {"oid": "mike", "ts": "2026-11-18T07:00:00.000Z", "loc": [116.37, 39.91], "unc": 12.5, "priority": "High"}

What comes in is checked to the last value, so that nothing behind this has to wonder: numbers are finite and fit
into 64 bits, names are plain identifiers and none that notifications or the server use. Sentences tell the sender
what they sent; codes, hints and details never hold a coordinate, because those are logged.
"""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, TypeVar

from matcher.errors import (
    EventInvalid,
    LocationInvalid,
    LocationUnknown,
    NameInvalid,
    NumberInvalid,
    ReservedName,
    TextTooLong,
    TimestampInvalid,
    TooManyPairs,
    ValueInvalid,
)
from matcher.events import RESERVED_NAMES, Event, Located, Region, Value
from matcher.instants import format_instant, parse_instant
from matcher.selector.tree import Time
from zones.errors import CallerError
from zones.geojson import point_from_geojson, shape_from_geojson, shape_to_geojson
from zones.oids import parse_oid
from zones.shapes import Point
from zones.validation import check_shape

__all__ = [
    "MAX_PAIRS",
    "MAX_TEXT_BYTES",
    "REGION_TYPES",
    "check_event",
    "format_event",
    "format_instant",
    "parse_event",
    "parse_instant",
]

_T = TypeVar("_T")

MAX_PAIRS = 64
MAX_TEXT_BYTES = 16_384  # of names and strings in all

_OWN_NAMES = frozenset({"oid", "ts", "loc", "unc"})
_is_name = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}").fullmatch
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
REGION_TYPES = frozenset({"Polygon", "MultiPolygon", "Circle", "Rectangle"})
_VALUES = 'a string, a number, true, false, {"time": "..."}, a GeoJSON Point, or a Polygon or other region'
_LOC_HINT = 'Send [lon, lat] or {"type": "Point", "coordinates": [lon, lat]}.'


def parse_event(obj: object, *, default_oid: str | None = None, locate: Callable[[str], Point] | None = None) -> Event:
    """A checked event. `default_oid` is used if it names no object: the sender's own, or "" on a device.

    `locate` gives the place of a `loc` that is a text, or refuses it. Without it every text is refused.
    """
    if type(obj) is not dict and not isinstance(obj, Mapping):  # the first is enough nearly always, and quick
        raise EventInvalid(
            "An event is a JSON object.", hint='For example {"ts": 1795000000000, "loc": [116.37, 39.91]}.'
        )
    pairs = {name: value for name, value in obj.items() if value is not None and name not in _OWN_NAMES}
    _check_names(pairs)
    if len(pairs) > MAX_PAIRS:
        raise _too_many(len(pairs))
    if obj.get("ts") is None:
        raise TimestampInvalid("The event has no ts.", hint="Say when: RFC 3339 text or integer epoch milliseconds.")
    loc, unc = obj.get("loc"), obj.get("unc")
    event = Event(
        ts=parse_instant(obj["ts"]),
        loc=None if loc is None else locate(loc) if locate and isinstance(loc, str) else _parse_loc(loc),
        oid=_parse_oid(obj.get("oid"), default_oid),
        unc=None if unc is None else _parse_unc(unc),
        pairs={name: _parse_value(name, value) for name, value in pairs.items()},
    )
    _check_text(event.pairs)
    return event


def check_event(event: Event) -> Event:
    """The same for an event that came in the wire's own form, as agents send it. `lpid` is the server's affair."""
    if event.oid:
        parse_oid(event.oid)
    _check_names(event.pairs)
    for name in event.pairs:
        if name in _OWN_NAMES:
            raise ReservedName(f"The name '{name}' can't be a pair's.", hint="It has a place of its own in an event.")
    if len(event.pairs) > MAX_PAIRS:
        raise _too_many(len(event.pairs))
    checked = Event(
        ts=parse_instant(event.ts),
        loc=None if event.loc is None else _parse_loc(event.loc),
        oid=event.oid,
        unc=None if event.unc is None else _parse_unc(event.unc),
        lpid=event.lpid,
        pairs={name: _check_value(name, value) for name, value in event.pairs.items()},
    )
    _check_text(checked.pairs)
    return checked


def format_event(event: Event) -> dict[str, Any]:
    """The event as a JSON object; what it does not have is left out."""
    body: dict[str, Any] = {"oid": event.oid} if event.oid else {}
    body["ts"] = format_instant(event.ts)
    if event.loc is not None:
        body["loc"] = list(event.loc)
    if event.unc is not None:
        body["unc"] = event.unc
    if event.lpid is not None:
        body["lpid"] = event.lpid
    for name, value in event.pairs.items():
        body[name] = _format_value(value)
    return body


# --- one part at a time --------------------------------------------------------------------------------


def _parse_oid(oid: object, default: str | None) -> str:
    if oid is None:
        if default is None:
            raise EventInvalid("The event does not say whose it is.", hint="Add oid, for example mike or acme/van7.")
        return default
    if not isinstance(oid, str):
        raise EventInvalid("The event's oid is not a string.", hint="Write mike or acme/van7.")
    parse_oid(oid)
    return oid


def _parse_loc(loc: object) -> Point:
    if isinstance(loc, str):
        raise LocationUnknown("The event's loc is a text; places by name are not known here.", hint=_LOC_HINT)
    try:
        return point_from_geojson(loc)
    except CallerError as fault:
        raise LocationInvalid(f"The event's loc is no place: {fault.sentence}", hint=_LOC_HINT) from fault


def _parse_unc(unc: object) -> float:
    number = _float(unc) if type(unc) in (int, float) else None
    if number is None or number < 0:
        raise NumberInvalid("The event's unc is not a finite number from 0 up.", hint="It is in metres.", name="unc")
    return number


def _float(number: Any) -> float | None:
    try:
        value = float(number)
    except OverflowError:
        return None
    return value if isfinite(value) else None


def _check_names(pairs: Mapping[Any, object]) -> None:
    for name in pairs:
        if not isinstance(name, str) or not _is_name(name):
            raise NameInvalid(
                f"The name '{str(name)[:70]}' can't be a pair's.",
                hint="Names have up to 64 letters (a to z), digits and _, and don't begin with a digit.",
            )
        if name in RESERVED_NAMES or name == "lpid":
            raise ReservedName(
                f"The name '{name}' is reserved.",
                hint="The server sets it." if name == "lpid" else "Notifications use it; choose another.",
                name=name,
            )


def _parse_value(name: str, value: object) -> Value:
    if isinstance(value, Mapping):
        if value.keys() == {"time"}:
            return Time(_at(name, parse_instant, value["time"]))
        kind = value.get("type")
        if kind == "Point":
            return Located(_at(name, point_from_geojson, value))
        if isinstance(kind, str) and kind in REGION_TYPES:
            return Region(_at(name, shape_from_geojson, value))
    return _plain(name, value)


def _check_value(name: str, value: object) -> Value:
    if isinstance(value, Time):
        return Time(_at(name, parse_instant, value.ms))
    if isinstance(value, Located):
        return Located(_at(name, point_from_geojson, value.point))
    if isinstance(value, Region):
        return Region(_at(name, check_shape, value.shape))
    return _plain(name, value)


def _plain(name: str, value: object) -> Value:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if _INT_MIN <= value <= _INT_MAX:
            return value
        raise NumberInvalid(f"The value of '{name}' has more than 64 bits.", hint="Send it as a string.", name=name)
    if isinstance(value, float):
        if isfinite(value):
            return value
        raise NumberInvalid(f"The value of '{name}' is not finite.", hint="Leave the pair out instead.", name=name)
    raise ValueInvalid(f"The value of '{name}' is of no type that events know.", hint=f"Send {_VALUES}.", name=name)


def _at(name: str, parse: Callable[[Any], _T], value: object) -> _T:
    """What `parse` makes of the value; its refusal says which pair it was, and keeps its code."""
    try:
        return parse(value)
    except CallerError as fault:
        raise type(fault)(f"In '{name}': {fault.sentence}", hint=fault.hint, name=name) from fault


def _check_text(pairs: Mapping[str, Value]) -> None:
    size = 0
    for name, value in pairs.items():
        size += len(name)
        if isinstance(value, str):
            try:
                size += len(value.encode())
            except UnicodeEncodeError:
                raise ValueInvalid(
                    f"The value of '{name}' has half a surrogate pair in it.", hint="Send UTF-8.", name=name
                ) from None
    if size > MAX_TEXT_BYTES:
        raise TextTooLong(
            f"The event's names and strings have {size} bytes; {MAX_TEXT_BYTES} are allowed.",
            hint="Send a reference to long texts instead.",
        )


def _too_many(count: int) -> TooManyPairs:
    return TooManyPairs(
        f"The event has {count} pairs besides oid, ts, loc and unc; {MAX_PAIRS} are allowed.",
        hint="Leave some out, or put them into one string.",
    )


def _format_value(value: Value) -> Any:
    if isinstance(value, Time):
        return {"time": format_instant(value.ms)}
    if isinstance(value, Located):
        return {"type": "Point", "coordinates": list(value.point)}
    return shape_to_geojson(value.shape) if isinstance(value, Region) else value
