"""The demo's fleet: vans that drive through the city, each with a real agent on board.

An agent has its own connection and its own state file, as on a device of its own; only the process is shared. When
and where a van has its fixes is fixed by the seed and its number, not by how busy this machine is.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from agent_sdk.client import Agent
from agent_sdk.enrolment import enrol
from agent_sdk.sources.callback import CallbackSource
from simulators.demo.city import CITY
from simulators.demo.http_api import HttpUser
from simulators.errors import DemoFailed
from simulators.mobility.streets import drive, position, set_out
from zones.shapes import Point

__all__ = ["FIXES_PER_S", "Van", "started_fleet"]

FIXES_PER_S = 2
_SPEED_M_S = (40.0, 60.0)  # some five times what streets allow, so that half a minute is worth watching
_ENROL_AT_ONCE = 8
_CONNECT_S = 60.0


class Van:
    def __init__(self, oid: str, seed: str, agent: Agent, source: CallbackSource) -> None:
        self.oid = oid
        self.agent = agent
        self._source = source
        self._random = random.Random(f"{seed}/{oid}")
        self._traveller = set_out(CITY, self._random.random)
        self._metres_per_fix = self._random.uniform(*_SPEED_M_S) / FIXES_PER_S

    async def travel(
        self, start_s: float, fixes: int | None, stop: asyncio.Event, see: Callable[[str, Point], None]
    ) -> None:
        """Have that many fixes (None: no end), the first at `start_s` of the loop's clock; or until `stop` is set."""
        loop = asyncio.get_running_loop()
        started_ms = time.time_ns() // 1_000_000 + round((start_s - loop.time()) * 1000)
        number = 0
        while fixes is None or number < fixes:
            if await _is_set_before(stop, start_s + number / FIXES_PER_S):
                break
            point = position(CITY, self._traveller)
            see(self.oid, point)
            # Dated by the schedule: two fixes never have the same time, even if this machine has fallen behind.
            self._source.push(*point, ts=started_ms + number * 1000 // FIXES_PER_S)
            self._traveller = drive(CITY, self._traveller, self._metres_per_fix, self._random.random)
            number += 1
        self._source.close()


@asynccontextmanager
async def started_fleet(
    oids: Sequence[str], owner: HttpUser, url: str, folder: Path, *, seed: int
) -> AsyncIterator[list[Van]]:
    """Vans whose agents are enrolled, connected and have their plans."""
    credentials = await _enrol_all(oids, owner, url)
    async with AsyncExitStack() as stack:
        vans = []
        for number, (oid, credential) in enumerate(zip(oids, credentials, strict=True), 1):
            source = CallbackSource()
            agent = Agent(url, credential, source, state=folder / f"van{number}.db")
            vans.append(Van(oid, str(seed), await stack.enter_async_context(agent), source))
        try:
            async with asyncio.timeout(_CONNECT_S):
                await asyncio.gather(*(van.agent.until_planned() for van in vans))
        except TimeoutError:
            raise DemoFailed(f"Not every agent had its plan within {_CONNECT_S:.0f} s.") from None
        yield vans


async def _enrol_all(oids: Sequence[str], owner: HttpUser, url: str) -> list[str]:
    room = asyncio.Semaphore(_ENROL_AT_ONCE)

    async def enrol_one(oid: str) -> str:
        async with room:
            invitation = await owner.ask("POST", "/v1/agents", {"oid": oid})
            return await enrol(url, invitation["token"])

    return await asyncio.gather(*map(enrol_one, oids))


async def _is_set_before(stop: asyncio.Event, due_s: float) -> bool:
    """Sleep until that moment of the loop's clock, or until `stop` is set; says which."""
    if not stop.is_set():
        try:
            async with asyncio.timeout_at(due_s):
                await stop.wait()
        except TimeoutError:
            return False
    return True
