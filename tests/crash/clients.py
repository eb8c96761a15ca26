"""Who talks to the server while it is being killed: a subscriber, and the owner of objects that have no agent.

Both go on as any client would: what got no answer is asked or sent again.
"""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.crash.scene import Fix

__all__ = ["Publisher", "Retrying", "Subscriber"]

_TRY_AGAIN_S = 0.03
_UNAVAILABLE = 503


class Retrying:
    """One user's requests, each repeated until it is answered.

    A server that is killed answers nothing at all; only one that has lost its database may say "not now".
    """

    def __init__(self, http: httpx.AsyncClient, key: str, *, may_be_unavailable: bool) -> None:
        self.repeated = 0
        self._http = http
        self._headers = {"Authorization": f"Bearer {key}"}
        self._may_be_unavailable = may_be_unavailable

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        while True:
            try:
                answer = await self._http.request(method, path, headers=self._headers, **options)
            except httpx.TransportError:
                pass
            else:
                if answer.is_success:
                    return answer.json()
                is_excused = self._may_be_unavailable and answer.status_code == _UNAVAILABLE
                assert is_excused, (method, path, answer.status_code, answer.text)
            self.repeated += 1
            await asyncio.sleep(_TRY_AGAIN_S)


class Subscriber:
    """Polls its cursor: what comes has no gap, and what has been read never changes."""

    def __init__(self, name: str, client: Retrying, rng: random.Random) -> None:
        self.name = name
        self.read: list[dict[str, Any]] = []
        self._client = client
        self._rng = rng

    async def follow(self, all_sent: asyncio.Event) -> None:
        """Until everything has been sent and there is no more: what was acknowledged is there."""
        page: list[dict[str, Any]] = []
        while page or not all_sent.is_set():
            page = await self._page(len(self.read), self._rng.choice((1, 20, 500)), wait_s=0.3)
            self.read += page
            if self.read and self._rng.random() < 0.3:
                after = self._rng.randrange(len(self.read))
                again = await self._page(after, 50)
                assert again[: len(self.read) - after] == self.read[after : after + 50]

    async def read_again(self) -> list[dict[str, Any]]:
        """Everything there is, from the beginning."""
        found: list[dict[str, Any]] = []
        while page := await self._page(len(found), 1000):
            found += page
        return found

    async def _page(self, after: int, limit: int, **options: Any) -> list[dict[str, Any]]:
        query = {"after": after, "limit": limit, **options}
        page = await self._client.ask("GET", "/v1/notifications", params=query)
        found: list[dict[str, Any]] = page["notifications"]
        assert [each["offset"] for each in found] == list(range(after + 1, after + 1 + len(found)))
        return found


class Publisher:
    """Sends one object's fixes when they are due, and some batches twice."""

    def __init__(self, oid: str, fixes: list[Fix], telling: set[int], client: Retrying, rng: random.Random) -> None:
        self._events = [fix.event(oid) for fix in fixes]
        self._telling = telling
        self._client = client
        self._rng = rng

    async def publish(self, begin_s: float, pace_s: float, busy: Callable[[], None]) -> None:
        sent = 0
        while sent < len(self._events):
            await asyncio.sleep(max(0.0, begin_s + sent * pace_s - time.time()))
            due = max(sent + 1, int((time.time() - begin_s) / pace_s))
            batch = self._events[sent : min(due, sent + 20)]
            if any(event["ts"] in self._telling for event in batch):
                busy()
            answer = await self._client.ask("POST", "/v1/events", json=batch)
            assert answer["accepted"] + answer["late"] == len(batch)
            sent += len(batch)
            if self._rng.random() < 0.1:
                again = await self._client.ask("POST", "/v1/events", json=batch)
                assert again == {"accepted": 0, "late": len(batch)}
