"""The subscriber of the demo: a shop that follows its notifications and counts what it hears."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from matcher.once import Mode
from simulators.demo.figures import Edge
from simulators.demo.http_api import HttpUser
from simulators.errors import DemoFailed

__all__ = ["Shop", "describe"]

_PAGE = 500
_WAIT_S = 1.0  # short, because a request that waits can't be taken back when the demo ends


class Shop:
    """`heard` counts each edge; `tell` gets each notification as it comes."""

    def __init__(self, user: HttpUser, tell: Callable[[dict[str, Any]], None]) -> None:
        self.heard: Counter[Edge] = Counter()
        self._user = user
        self._tell = tell
        self._news = asyncio.Event()

    async def follow(self) -> None:
        """Read notifications for ever. An offset that is not the next one means loss, and is an error."""
        after = 0
        while True:
            page = await self._user.ask("GET", "/v1/notifications", after=after, limit=_PAGE, wait_s=_WAIT_S)
            for notification in page["notifications"]:
                self._take(notification, after)
                after = notification["offset"]
            self._news.set()

    async def has_heard(self, count: int) -> None:
        """Wait until that many notifications have come, or more."""
        while self.heard.total() < count:
            self._news.clear()
            await self._news.wait()

    def count(self, mode: Mode) -> int:
        return sum(times for edge, times in self.heard.items() if edge.mode is mode)

    def _take(self, notification: dict[str, Any], after: int) -> None:
        if notification["offset"] != after + 1:
            raise DemoFailed(f"The notification after offset {after} has offset {notification['offset']}.")
        if notification.get("withdrawn"):
            raise DemoFailed(f"The notification with offset {notification['offset']} was withdrawn.")
        edge = Edge(notification["oid"], notification["target"], Mode(notification["mode"]))
        self.heard[edge] += 1
        self._tell(notification)


def describe(notification: dict[str, Any]) -> str:
    """A notification as a line for people."""
    time = notification["ts"][11:23]
    line = f"{time}  {notification['mode']:<5}  {notification['oid']:<11}  {notification['target']}"
    duration_s = notification.get("duration_s")
    return line if duration_s is None else f"{line}  after {duration_s:.1f} s"
