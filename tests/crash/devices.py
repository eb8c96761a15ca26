"""Some devices in a process of their own, which is there to be killed: `python -m tests.crash.devices PLAN`.

Each is a real agent with a state file. A fix is due at a moment of the wall clock, so a process that was killed
catches up with what it has missed; it is given its whole trace each time, and what it had evaluated already is
late. Each fix that is handed out is a byte on stdout, `!` if it has something to tell: whoever kills us wants to know
when. The process ends by itself when every trace has ended and everything has been acknowledged.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from agent_sdk import Agent
from agent_sdk.sources.base import Source
from matcher.events import Event

__all__ = ["DevicePlan", "ProcessPlan"]


_MISSED_S = 1.0  # a fix that was due longer ago may have been told already


class DevicePlan(msgspec.Struct):
    credential: str
    state: str
    fixes: list[tuple[int, float, float, int | None, bool]]  # ts, lon, lat, speed, has it something to tell


class ProcessPlan(msgspec.Struct):
    url: str
    begin_s: float  # when the first fix is due
    pace_s: float  # from one fix to the next
    devices: list[DevicePlan]


class _Scheduled(Source):
    """Patient, as a trace is: nothing is skipped while there is no plan."""

    is_patient = True

    def __init__(self, plan: ProcessPlan, device: DevicePlan) -> None:
        self._plan = plan
        self._device = device
        self._left = len(device.fixes)

    @property
    def waiting(self) -> int:
        return self._left

    def seconds_until_seen(self, instant: int, now: int) -> None:
        return None

    async def __aiter__(self) -> AsyncIterator[Event]:
        for number, (ts, lon, lat, speed, tells) in enumerate(self._device.fixes):
            ahead_s = self._plan.begin_s + number * self._plan.pace_s - time.time()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            self._left -= 1
            os.write(1, b"!" if tells and ahead_s > -_MISSED_S else b".")
            yield Event(ts, (lon, lat), pairs={} if speed is None else {"speed": speed})


async def _live(plan: ProcessPlan, device: DevicePlan) -> None:
    agent = Agent(
        plan.url,
        device.credential,
        _Scheduled(plan, device),
        state=device.state,
        backoff_base_s=0.05,
        backoff_cap_s=0.4,
    )
    async with agent:
        await agent.run()
        assert agent.dead() == (), agent.dead()


async def _main(plan: ProcessPlan) -> None:
    async with asyncio.TaskGroup() as tasks:
        for device in plan.devices:
            tasks.create_task(_live(plan, device))


if __name__ == "__main__":
    asyncio.run(_main(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=ProcessPlan)))
