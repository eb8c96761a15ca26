"""Fixes from gpsd, or anything else that writes its JSON lines.

Only reports of class TPV with a fix in two or three dimensions are taken. gpsd says where and how fast in its own
names; `eph`, the estimated horizontal error, becomes `unc`.
"""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any

from agent_sdk.sources.base import Source
from agent_sdk.sources.fixes import checked_fix
from matcher.events import Event, Value
from zones.errors import CallerError

__all__ = ["GpsdSource", "parse_tpv"]

_PAIRS = ("speed", "track", "climb", "altHAE", "altMSL")  # as gpsd names them: m/s, degrees, m/s, m, m


class GpsdSource(Source):
    """Reads lines from an async stream (an `asyncio.StreamReader` is one) or from any iterable, such as a file.

    Lines that hold no usable fix are skipped; `skipped` counts those that should have been one.
    """

    is_checked = True

    def __init__(self, lines: AsyncIterable[bytes | str] | Iterable[bytes | str]) -> None:
        self.skipped = 0
        self._lines = lines
        self.is_patient = not isinstance(lines, AsyncIterable)

    async def __aiter__(self) -> AsyncIterator[Event]:
        if isinstance(self._lines, AsyncIterable):
            async for line in self._lines:
                if (event := self._parsed(line)) is not None:
                    yield event
        else:
            for line in self._lines:
                if (event := self._parsed(line)) is not None:
                    yield event

    def _parsed(self, line: bytes | str) -> Event | None:
        try:
            report = json.loads(line)
            return parse_tpv(report) if isinstance(report, dict) else None
        except (ValueError, RecursionError, CallerError):
            self.skipped += bool(line.strip())
            return None


def parse_tpv(report: dict[str, Any]) -> Event | None:
    """The fix in one report of gpsd's; None if there is none."""
    if report.get("class") != "TPV" or not isinstance(report.get("mode"), int) or report["mode"] < 2:
        return None
    if "lon" not in report or "lat" not in report or "time" not in report:
        return None
    pairs: dict[str, Value] = {name: report[name] for name in _PAIRS if name in report}
    return checked_fix(report["lon"], report["lat"], report["time"], report.get("eph"), pairs)
