"""A trace replayed: events in memory, a CSV file, or a file of JSON lines.

Time passes with the fixes and not with the clock: the trace's instants may be years old, and at any speed the
same trace gives the same edges.
"""

import asyncio
import csv
import json
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import msgspec

from agent_sdk.errors import TraceInvalid
from agent_sdk.sources.base import Source
from matcher.event_format import check_event, parse_event
from matcher.events import Event, Value
from matcher.once import Instant
from zones.errors import FencepostError

__all__ = ["TraceSource", "read_trace"]


class TraceSource(Source):
    """Replays `trace`, a path or events, at `speed` times its own pace; None is as fast as they can be evaluated.

    A CSV file has a header with ts, lon, lat, and whatever else is a pair (`unc` is known); a file of any other
    name has one JSON event per line. In a file of several objects `oid` picks one.
    """

    is_patient = True
    is_checked = True

    def __init__(
        self,
        trace: str | os.PathLike[str] | Iterable[Event],
        *,
        speed: float | None = None,
        oid: str | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> None:
        if speed is not None and not (math.isfinite(speed) and speed > 0):
            raise TraceInvalid(f"A trace can't be replayed at speed {speed}.", hint="Name a factor above 0.")
        self.is_finished = False
        self._trace = trace
        self._speed = speed
        self._oid = oid
        self._sleep = sleep
        self._clock = clock

    @property
    def waiting(self) -> int:
        return 0 if self.is_finished else 1

    def seconds_until_seen(self, instant: Instant, now: Instant) -> float | None:
        return None

    async def __aiter__(self) -> AsyncIterator[Event]:
        clock = self._clock or asyncio.get_running_loop().time
        began, first = clock(), None
        try:
            for event in self._events():
                if self._speed is not None:
                    first = event.ts if first is None else first
                    ahead = (event.ts - first) / 1000 / self._speed - (clock() - began)
                    if ahead > 0:
                        await self._sleep(ahead)
                yield event
        finally:
            self.is_finished = True

    def _events(self) -> Iterator[Event]:
        if isinstance(self._trace, (str, os.PathLike)):
            return read_trace(Path(self._trace), oid=self._oid)
        return (
            check_event(msgspec.structs.replace(event, oid=""))
            for event in self._trace
            if self._oid in (None, event.oid)
        )


def read_trace(path: Path, *, oid: str | None = None) -> Iterator[Event]:
    """The events of one object in a file, in the file's order and without oid; raises `TraceInvalid`."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = _csv_rows(path, file) if path.suffix.lower() == ".csv" else _json_rows(path, file)
            seen = oid
            for number, row in rows:
                whose = row.pop("oid", None)
                if oid is not None and whose is not None and whose != oid:
                    continue
                if whose is not None and seen is None:
                    seen = whose
                if whose is not None and whose != seen:
                    raise TraceInvalid(
                        f"{path.name} has fixes of several objects ({seen} and {whose}).",
                        hint="An agent speaks for one object: say which oid to replay.",
                    )
                yield _event(path, number, row)
    except OSError as error:
        raise TraceInvalid(
            f"The trace {path} can't be read: {error.strerror}.", hint="Name a readable file."
        ) from error
    except UnicodeDecodeError as error:
        raise TraceInvalid(f"The trace {path} is not UTF-8 text.", hint="Traces are CSV or JSON lines.") from error


def _csv_rows(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(file)
    missing = {"ts", "lon", "lat"} - set(reader.fieldnames or ())
    if missing:
        raise TraceInvalid(
            f"{path.name} has no column {', '.join(sorted(missing))}.",
            hint="The first line is a header: ts,lon,lat,...",
        )
    for row in reader:
        if None in row:
            raise TraceInvalid(f"Line {reader.line_num} of {path.name} has more fields than the header.")
        yield (
            reader.line_num,
            {name: text if name == "oid" else _typed(text) for name, text in row.items() if text not in (None, "")},
        )


def _json_rows(path: Path, file: TextIO) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise TraceInvalid(
                f"Line {number} of {path.name} is not a JSON object.",
                hint='One event a line: {"ts": ..., "loc": [lon, lat]}. A CSV file is named *.csv.',
            )
        yield number, row


def _event(path: Path, number: int, row: dict[str, Any]) -> Event:
    if "loc" not in row and "lon" in row and "lat" in row:
        row["loc"] = [row.pop("lon"), row.pop("lat")]
    try:
        event = parse_event(row, default_oid="")
    except FencepostError as error:
        raise TraceInvalid(f"Line {number} of {path.name}: {error.sentence}", hint=error.hint) from error
    if event.loc is None:
        raise TraceInvalid(
            f"Line {number} of {path.name} has no position.", hint="Give lon and lat, or loc as [lon, lat]."
        )
    return event


def _typed(text: str) -> Value:
    """A CSV field as what it looks like: a number, a truth value, or text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
