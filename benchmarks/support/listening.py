"""A subscriber that hears notifications over /v1/stream and notes when."""

import asyncio
import time
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
from websockets.asyncio.client import connect

from benchmarks.support.town import Edge
from matcher.once import Mode

__all__ = ["Heard", "Listener"]


class Heard(msgspec.Struct, frozen=True):
    offset: int
    oid: str
    target: str
    mode: Mode
    ts: int
    at_ms: float

    def edge(self, start_ms: int) -> Edge:
        return Edge(int(self.oid.rpartition("/van")[2]), self.ts - start_ms, self.target, self.mode)


class Listener:
    def __init__(self, url: str, key: str) -> None:
        self.heard: list[Heard] = []
        self.connected = asyncio.Event()
        self._url = url.replace("http", "ws", 1) + "/v1/stream"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._news = asyncio.Event()

    async def listen(self) -> None:
        """For ever; raises when the connection is lost."""
        async with connect(self._url, additional_headers=self._headers, compression=None, proxy=None) as socket:
            self.connected.set()
            async for frame in socket:
                self._take(msgspec.json.decode(frame))
        raise RuntimeError("The server closed the subscriber's stream.")

    async def has_heard(self, count: int, *, within_s: float) -> bool:
        """Whether that many, or more, have come in time."""
        try:
            async with asyncio.timeout(within_s):
                while len(self.heard) < count:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def disagreement(self, expected: Counter[Edge], start_ms: int) -> str | None:
        """What was heard too little or too much of, or out of order; None if it is exactly what there was."""
        offsets = [each.offset for each in self.heard]
        if offsets != list(range(1, len(offsets) + 1)):
            return "The offsets of the notifications are not 1, 2, 3, ..."
        heard = Counter(each.edge(start_ms) for each in self.heard)
        if heard == expected:
            return None
        missing, surplus = (expected - heard).total(), (heard - expected).total()
        return f"Of {expected.total()} edges the subscriber missed {missing} and heard {surplus} that never were."

    def _take(self, notification: dict[str, Any]) -> None:
        self.heard.append(
            Heard(
                offset=notification["offset"],
                oid=notification["oid"],
                target=notification["target"],
                mode=Mode(notification["mode"]),
                ts=round(datetime.fromisoformat(notification["ts"]).timestamp() * 1000),
                at_ms=time.time_ns() / 1_000_000,
            )
        )
        self._news.set()
