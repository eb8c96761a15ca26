"""Checking what a source says, before it can reach a state or a wire.

A sensor that reports NaN, or an application that attaches a list, must hear of it at once: a bad value that got as
far as the outbox would be refused by the server for ever.
"""

from collections.abc import Mapping
from math import isfinite

from agent_sdk.errors import FixInvalid
from matcher.events import RESERVED_NAMES, Event, Located, Region, Value
from matcher.once import Instant
from matcher.selector.tree import Time

__all__ = ["checked_fix"]

_OWN_NAMES = frozenset({"oid", "ts", "loc", "unc", "lpid"})
_INT_MAX = 2**63 - 1
_TEXT_MAX = 4096


def checked_fix(
    lon: float, lat: float, ts: Instant, unc: float | None = None, pairs: Mapping[str, Value] | None = None
) -> Event:
    """An event without oid; raises `FixInvalid` with what is wrong."""
    if not (_is_number(lon) and -180 <= lon <= 180 and _is_number(lat) and -90 <= lat <= 90):
        raise FixInvalid(
            "A fix's position is not a lon in -180..180 and a lat in -90..90.",
            hint="The order is lon, lat, in degrees.",
        )
    if type(ts) is not int or not 0 <= ts <= _INT_MAX:
        raise FixInvalid(f"A fix's ts is {ts!r}.", hint="ts is an integer, milliseconds since 1970 in UTC.")
    if unc is not None and not (_is_number(unc) and unc >= 0):
        raise FixInvalid(f"A fix's unc is {unc!r}.", hint="unc is a distance in metres, 0 or more.")
    for name, value in (pairs or {}).items():
        _check_pair(name, value)
    return Event(ts=ts, loc=(float(lon), float(lat)), unc=None if unc is None else float(unc), pairs=dict(pairs or {}))


def _check_pair(name: str, value: Value) -> None:
    if not name or len(name) > 100 or "\0" in name:
        raise FixInvalid(f"A pair's name is {name[:100]!r}.", hint="Names have 1 to 100 characters.")
    if name in RESERVED_NAMES or name in _OWN_NAMES:
        raise FixInvalid(f"The name {name} is reserved.", hint="Give the pair another name.", name=name)
    if isinstance(value, (bool, Time, Located, Region)):
        return
    if isinstance(value, str):
        fine = len(value) <= _TEXT_MAX and "\0" not in value
    elif isinstance(value, int):
        fine = abs(value) <= _INT_MAX
    else:
        fine = _is_number(value)
    if not fine:
        raise FixInvalid(
            f"The pair {name} has a value that can't be carried.",
            hint=f"Values are finite numbers, 64-bit integers, booleans, and text of at most {_TEXT_MAX} characters.",
            name=name,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)
