"""Fixes pushed by the application, from whatever its platform calls back with and from any thread."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator

from agent_sdk.sources.base import Source
from agent_sdk.sources.fixes import checked_fix
from matcher.events import Event, Value
from matcher.once import Instant

__all__ = ["CallbackSource"]


class CallbackSource(Source):
    """Call `push` for each fix and `close` when there will be no more.

    At most `limit` fixes wait to be evaluated; beyond that the oldest give way and are counted in `dropped`.
    """

    is_checked = True

    def __init__(self, *, limit: int = 10_000) -> None:
        self.dropped = 0
        self._fixes: deque[Event] = deque()
        self._limit = limit
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pushed: asyncio.Event | None = None

    def push(self, lon: float, lat: float, ts: Instant | None = None, unc: float | None = None, **pairs: Value) -> None:
        """Hand over one fix. `ts` is in epoch milliseconds, now if left out; a bad one raises `EventInvalid`."""
        if ts is None:
            ts = time.time_ns() // 1_000_000
        self._fixes.append(checked_fix(lon, lat, ts, unc, pairs))
        while len(self._fixes) > self._limit:
            self._fixes.popleft()
            self.dropped += 1
        self._wake()

    def close(self) -> None:
        """No more fixes will come; those that wait are still evaluated."""
        self._closed = True
        self._wake()

    @property
    def waiting(self) -> int:
        return len(self._fixes)

    async def __aiter__(self) -> AsyncIterator[Event]:
        self._pushed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while True:
            self._pushed.clear()
            while self._fixes:
                yield self._fixes.popleft()
            if self._closed:
                return
            await self._pushed.wait()

    def _wake(self) -> None:
        loop, pushed = self._loop, self._pushed
        if loop is None or pushed is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(pushed.set)
