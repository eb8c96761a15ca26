"""A process full of real agents, each with its own connection and its own state file."""

import asyncio
from pathlib import Path

import msgspec

from agent_sdk.client import Agent
from agent_sdk.enrolment import enrol
from agent_sdk.protocol.counts import Counts
from agent_sdk.sources.callback import CallbackSource
from benchmarks.support.keep_alive import KeepAlive
from benchmarks.support.town import fixes_of
from benchmarks.support.usage import allow_files
from benchmarks.workers.talk import Job, answer, next_line, until, work

__all__ = ["AgentsDone"]

_ENROL_AT_ONCE = 4
_CONNECT_AT_ONCE = 32
_FILES_PER_AGENT = 6  # a socket, and the state file with its journals


class AgentsDone(msgspec.Struct, frozen=True):
    """What the agents of one process have counted."""

    fixes: int
    not_evaluated: int  # late, invalid, or without a plan
    edges: int
    refused: int
    connections: int
    messages: dict[str, int]  # by the frame's kind, both directions
    bytes: dict[str, int]


async def run(job: Job) -> None:
    allow_files(len(job.vans) * _FILES_PER_AGENT + 256)
    credentials = await _enrol_all(job)
    answer("enrolled")
    await next_line(str)
    sources = {van: CallbackSource() for van in job.vans}
    agents = [
        Agent(job.url, credentials[van], sources[van], state=Path(job.folder) / f"van{van}.db") for van in job.vans
    ]
    try:
        await _connect_all(agents)
        answer("connected")
        fixes = fixes_of(job.timetable, job.vans)
        start_ms = await next_line(int)
        for fix in fixes:
            await until(start_ms + fix.due_ms)
            sources[fix.van].push(*fix.point, ts=start_ms + fix.due_ms)
        for source in sources.values():
            source.close()
        await asyncio.gather(*(agent.run() for agent in agents))
        answer(_done(agents))
        await next_line(str)
    finally:
        await asyncio.gather(*(agent.stop() for agent in agents))


async def _enrol_all(job: Job) -> dict[int, str]:
    waiting = list(reversed(job.vans))
    credentials: dict[int, str] = {}

    async def enrol_some() -> None:
        owner = KeepAlive(job.url, job.key)
        while waiting:
            van = waiting.pop()
            status, body = await owner.post("/v1/agents", msgspec.json.encode({"oid": job.oid(van)}))
            if status != 201:
                raise RuntimeError(f"The invitation was refused ({status}): {body.decode()}")
            credentials[van] = await enrol(job.url, msgspec.json.decode(body)["token"])
        owner.close()

    await asyncio.gather(*(enrol_some() for _ in range(_ENROL_AT_ONCE)))
    return credentials


async def _connect_all(agents: list[Agent]) -> None:
    """A few at a time: devices come one after another too, unless a network comes back."""
    waiting = list(agents)

    async def connect_some() -> None:
        while waiting:
            agent = waiting.pop()
            await agent.__aenter__()
            await agent.until_planned()

    await asyncio.gather(*(connect_some() for _ in range(_CONNECT_AT_ONCE)))


def _done(agents: list[Agent]) -> AgentsDone:
    counts = [agent.counts for agent in agents]
    traffic = Counts()
    for each in counts:
        traffic.include(each.traffic)
    messages: dict[str, int] = {}
    size: dict[str, int] = {}
    for side in (traffic.sent, traffic.received):
        for kind, tally in side.items():
            messages[kind] = messages.get(kind, 0) + tally.messages
            size[kind] = size.get(kind, 0) + tally.bytes
    return AgentsDone(
        fixes=sum(each.fixes for each in counts),
        not_evaluated=sum(each.invalid + each.late + each.suspended for each in counts),
        edges=sum(each.edges for each in counts),
        refused=sum(len(agent.dead()) for agent in agents),
        connections=sum(each.connections for each in counts),
        messages=messages,
        bytes=size,
    )


if __name__ == "__main__":
    work(run)
