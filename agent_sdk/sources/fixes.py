"""Checking what a source says, by the same rules as the server's, before it can reach a state or a wire.

A sensor that reports NaN, or an application that attaches a list, must hear of it at once: a bad value that got as
far as the outbox would only be refused by the server, after its edge had been decided.
"""

from collections.abc import Mapping

from matcher.event_format import check_event
from matcher.events import Event, Value
from matcher.instants import parse_instant

__all__ = ["checked_fix"]


def checked_fix(
    lon: float, lat: float, ts: object, unc: float | None = None, pairs: Mapping[str, Value] | None = None
) -> Event:
    """An event without oid; raises `EventInvalid` or one of its kinds for what can't be one.

    `ts` is epoch milliseconds or RFC 3339 text.
    """
    return check_event(Event(ts=parse_instant(ts), loc=(lon, lat), unc=unc, pairs=dict(pairs or {})))
