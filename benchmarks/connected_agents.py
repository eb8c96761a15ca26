"""What do connected agents cost one server on SQLite, and what would matching on the server cost instead?

    python -m benchmarks.connected_agents --agents 1000 --fixes-per-second 200 --seconds 60 --json

Real agents, in processes of their own, connect to a server and evaluate the fixes of vans in a city. Then, on a new
server, the same vans publish the same fixes one by one to POST /v1/events: the named peer, server-side matching. Both
times a subscriber must hear exactly the edges of a reference that looks at every point itself; figures of a run that
got one wrong are never printed. A run with a tenth of the agents goes before, as warm-up and as the small size.

Latencies count from when a fix was due, so a sender that falls behind makes them longer. CPU is user and system time
divided by the wall time of the same stretch: 1.0 is one core.
"""

import argparse
import asyncio
import contextlib
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import msgspec

from benchmarks.support.listening import Listener
from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import percentile, spread
from benchmarks.support.town import Timetable, reference_edges
from benchmarks.support.usage import allow_files, cpu_seconds, resident_bytes
from benchmarks.workers.agents import AgentsDone
from benchmarks.workers.publishers import PublishersDone
from benchmarks.workers.talk import Job, Worker, started_worker
from simulators.demo.city import city_collection
from simulators.demo.http_api import HttpUser
from simulators.demo.server_process import ServerProcess, running_server

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "connected_agents"
_START_IN_S = 0.5  # so that every worker knows the start before it comes
_SET_UP_S = 600.0
_DRAIN_S = 120.0
_WHILE_DRIVING = ("report", "ack", "renew", "lease")  # the rest is sent once for each connection
_SMALL = 10  # the warm-up has this part of the agents


class Options(msgspec.Struct, frozen=True):
    agents: int = 1000
    fixes_per_second: float = 200.0
    seconds: float = 60.0
    processes: int = 2
    seed: int = 1
    idle_seconds: float = 30.0  # longer than the 20 s between two pings of a WebSocket

    @property
    def timetable(self) -> Timetable:
        fixes = max(1, round(self.seconds * self.fixes_per_second / self.agents))
        return Timetable(self.agents, fixes, self.fixes_per_second, self.seed)

    @property
    def small(self) -> "Options":
        """A tenth of the agents, each with its fixes as often."""
        agents = max(1, self.agents // _SMALL)
        rate = self.fixes_per_second * agents / self.agents
        return msgspec.structs.replace(self, agents=agents, fixes_per_second=rate, seconds=self.seconds / 2)


def measure(options: Options, *, runs: int = 3, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The figures of the small size and of several runs at full size."""
    allow_files(options.agents * 2 + 512)
    say(f"Warming up with {options.small.agents} agents.")
    small = measure_once(options.small)
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {options.agents} agents.")
        large.append(measure_once(msgspec.structs.replace(options, seed=options.seed + run - 1)))
    return {"options": msgspec.structs.asdict(options), "runs": runs, "small": spread([small]), "large": spread(large)}


def measure_once(options: Options) -> dict[str, Any]:
    """One run with agents and one without, and how they compare."""
    allow_files(options.agents * 2 + 512)
    with_agents = asyncio.run(_with_agents(options))
    without = asyncio.run(_without_agents(options))
    return {
        "with_agents": with_agents,
        "without_agents": without,
        "without_to_with": {
            "messages": _ratio(without["messages"]["requests"], with_agents["messages"]["plans_and_reports"]),
            "messages_while_driving": _ratio(without["messages"]["all"], with_agents["messages"]["while_driving"]),
            "messages_all_kinds": _ratio(without["messages"]["all"], with_agents["messages"]["all"]),
            "bytes_while_driving": _ratio(without["bytes"]["all"], with_agents["bytes"]["while_driving"]),
            "bytes_all_kinds": _ratio(without["bytes"]["all"], with_agents["bytes"]["all"]),
            "server_cpu": _ratio(without["cpu"]["server"], with_agents["cpu"]["server"]),
            "latency_heard_p50": _ratio(without["latency_ms"]["heard_p50"], with_agents["latency_ms"]["heard_p50"]),
        },
    }


# --- the two halves --------------------------------------------------------------------------------------


async def _with_agents(options: Options) -> dict[str, Any]:
    timetable = options.timetable
    async with _town() as town, AsyncExitStack() as stack:
        began = time.monotonic()
        workers = [
            await stack.enter_async_context(started_worker("agents", town.job(timetable, vans)))
            for vans in _shares(options.agents, options.processes)
        ]
        await _all(workers, str, _SET_UP_S)
        enrol_s = time.monotonic() - began
        resident_before, connecting = resident_bytes(town.pid), _Stretch(town.pid, workers)
        _tell(workers, "connect")
        await _all(workers, str, _SET_UP_S)
        connecting.end()
        resident_connected = resident_bytes(town.pid)
        await town.check_sessions(options.agents)
        idling = _Stretch(town.pid, workers)
        await asyncio.sleep(options.idle_seconds)
        idling.end()
        driving, done = await town.drive(timetable, workers, AgentsDone)
        await town.check_sessions(options.agents)
        total = _sum_up(done, options.agents, timetable)
        messages, size = total.messages, total.bytes
        result = {
            "enrol_s": round(enrol_s, 2),
            "connect_s": round(connecting.wall_s, 2),
            "memory": {
                "server_before_mib": _mib(resident_before),
                "server_connected_mib": _mib(resident_connected),
                "server_after_mib": _mib(resident_bytes(town.pid)),
                "per_connection_kib": round((resident_connected - resident_before) / 1024 / options.agents, 1),
            },
            "cpu": {
                "server": driving.server,
                "agents": driving.workers,
                "server_idle": idling.server,
                "agents_idle": idling.workers,
                "server_connecting_s": round(connecting.server * connecting.wall_s, 2),
            },
            "seconds": round(driving.wall_s, 1),
            "fixes": total.fixes,
            "edges": total.edges,
            "latency_ms": town.latencies(),
            "messages": {
                "reports": messages.get("report", 0),
                "plans": messages.get("plan", 0),
                "plans_and_reports": messages.get("report", 0) + messages.get("plan", 0),
                "acknowledgements": messages.get("ack", 0),
                "hellos_and_welcomes": messages.get("hello", 0) + messages.get("welcome", 0),
                "while_driving": sum(messages.get(kind, 0) for kind in _WHILE_DRIVING),
                "all": sum(messages.values()),
            },
            "bytes": {
                "reports": size.get("report", 0),
                "plans": size.get("plan", 0),
                "while_driving": sum(size.get(kind, 0) for kind in _WHILE_DRIVING),
                "all": sum(size.values()),
            },
        }
        _tell(workers, "end")
    return result


async def _without_agents(options: Options) -> dict[str, Any]:
    timetable = options.timetable
    async with _town() as town, AsyncExitStack() as stack:
        job = town.job(timetable, range(options.agents))
        workers = [await stack.enter_async_context(started_worker("publishers", job))]
        await _all(workers, str, _SET_UP_S)
        publishing, (done,) = await town.drive(timetable, workers, PublishersDone)
        result = {
            "memory": {"server_after_mib": _mib(resident_bytes(town.pid))},
            "cpu": {"server": publishing.server, "publisher": publishing.workers},
            "seconds": round(publishing.wall_s, 1),
            "fixes": done.fixes,
            "edges": len(town.listener.heard),
            "latency_ms": town.latencies(),
            "messages": {"requests": done.requests, "all": 2 * done.requests},
            "bytes": {"bodies": done.body_bytes, "all": done.bytes_sent + done.bytes_received},
        }
        _tell(workers, "end")
    return result


# --- the town they happen in -----------------------------------------------------------------------------


@dataclass
class _Town:
    """A server with the city's zones, a fleet's grant and a subscriber that listens."""

    server: ServerProcess
    folder: Path
    fleet_key: str
    listener: Listener

    @property
    def pid(self) -> int:
        return self.server.pid

    def job(self, timetable: Timetable, vans: range) -> Job:
        return Job(self.server.url, self.fleet_key, "acme", str(self.folder), vans.start, vans.stop, timetable)

    async def drive(self, timetable: Timetable, workers: list[Worker], kind: type[Any]) -> "tuple[_Stretch, list[Any]]":
        """Let the workers have their fixes; returns when the subscriber has heard every edge, and no other."""
        expected = reference_edges(timetable)
        start_ms = time.time_ns() // 1_000_000 + round(_START_IN_S * 1000)
        _tell(workers, start_ms)
        stretch = _Stretch(self.pid, workers)
        within_s = timetable.total / timetable.per_second * 3 + _DRAIN_S
        done = await _all(workers, kind, within_s)
        heard_all = await self.listener.has_heard(expected.total(), within_s=_DRAIN_S)
        stretch.end()
        wrong = self.listener.disagreement(expected, start_ms)
        if wrong is not None or not heard_all:
            raise BenchmarkFailed(wrong or "The subscriber did not hear every edge in time.")
        return stretch, done

    async def check_sessions(self, agents: int) -> None:
        """The server is up and says that every agent is connected."""
        metrics = await asyncio.to_thread(_get, f"{self.server.url}/metrics")
        connected = [line.split()[1] for line in metrics.splitlines() if line.startswith("fencepost_agent_sessions ")]
        if [float(number) for number in connected] != [agents]:
            raise BenchmarkFailed(f"The server counts {connected} connected agents instead of {agents}.")

    def latencies(self) -> dict[str, float | None]:
        """From when the fix was due until the edge was in the store, and until the subscriber had it."""
        heard = [each.at_ms - each.ts for each in self.listener.heard]
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / 'fencepost.db'}?mode=ro", uri=True)) as db:
            recorded = [float(ms) for (ms,) in db.execute("SELECT recorded - ts FROM notifications")]
        return {
            "recorded_p50": _rounded(percentile(recorded, 0.5)),
            "recorded_p99": _rounded(percentile(recorded, 0.99)),
            "heard_p50": _rounded(percentile(heard, 0.5)),
            "heard_p99": _rounded(percentile(heard, 0.99)),
            "heard_max": _rounded(max(heard, default=None)),
        }


@contextlib.asynccontextmanager
async def _town() -> AsyncIterator[_Town]:
    with tempfile.TemporaryDirectory(prefix="fencepost-benchmark-") as name:
        folder = Path(name)
        async with running_server(folder) as server:
            keys = await asyncio.gather(
                server.add_user("ada", admin=True), server.add_user("acme"), server.add_user("shop")
            )
            admin, acme, shop = (HttpUser(server.url, key) for key in keys)
            await admin.ask("POST", "/v1/zones:import", city_collection(), owner="SYSTEM")
            await acme.ask("POST", "/v1/privacy/grants", {"who": "shop", "operations": ["enter", "leave"]})
            await shop.ask("PUT", "/v1/subscriptions/in-town", {"selector": "(*) within (SYSTEM.*)", "tos": "once"})
            listener = Listener(server.url, keys[2])
            listening = asyncio.create_task(listener.listen())
            await listener.connected.wait()
            try:
                yield _Town(server, folder, keys[1], listener)
                if listening.done():
                    listening.result()
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)


class _Stretch:
    """What server and workers use up from here to `end`."""

    def __init__(self, server_pid: int, workers: list[Worker]) -> None:
        self._pids = [server_pid, *(worker.pid for worker in workers)]
        self._before = [cpu_seconds(pid) for pid in self._pids]
        self._began = time.monotonic()

    def end(self) -> None:
        self.wall_s = time.monotonic() - self._began
        used = [cpu_seconds(pid) - before for pid, before in zip(self._pids, self._before, strict=True)]
        self.server = round(used[0] / self.wall_s, 4)
        self.workers = round(sum(used[1:]) / self.wall_s, 4)


async def _all(workers: list[Worker], kind: type[Any], within_s: float) -> list[Any]:
    return await asyncio.gather(*(worker.heard(kind, within_s=within_s) for worker in workers))


def _tell(workers: list[Worker], said: Any) -> None:
    for worker in workers:
        worker.tell(said)


def _sum_up(done: Sequence[AgentsDone], agents: int, timetable: Timetable) -> AgentsDone:
    total = AgentsDone(
        fixes=sum(each.fixes for each in done),
        not_evaluated=sum(each.not_evaluated for each in done),
        edges=sum(each.edges for each in done),
        refused=sum(each.refused for each in done),
        connections=sum(each.connections for each in done),
        messages={kind: sum(each.messages.get(kind, 0) for each in done) for each in done for kind in each.messages},
        bytes={kind: sum(each.bytes.get(kind, 0) for each in done) for each in done for kind in each.bytes},
    )
    if total.fixes != timetable.total or total.not_evaluated or total.refused:
        raise BenchmarkFailed(
            f"Of {timetable.total} fixes {total.fixes} arrived and {total.not_evaluated} of them were not evaluated; "
            f"{total.refused} reports were refused."
        )
    if total.connections != agents:
        raise BenchmarkFailed(f"{agents} agents made {total.connections} connections: some were lost on the way.")
    return total


def _shares(agents: int, processes: int) -> list[range]:
    bounds = [agents * number // processes for number in range(processes + 1)]
    return [range(first, behind) for first, behind in pairwise(bounds) if first < behind]


def _get(url: str) -> str:
    with build_opener(ProxyHandler({})).open(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def _ratio(one: float | None, other: float | None) -> float | None:
    return round(one / other, 3) if one is not None and other else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _mib(size: int) -> float:
    return round(size / 2**20, 1)


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--agents", type=positive_int, default=1000, metavar="N")
    parser.add_argument("--fixes-per-second", type=_positive, default=200.0, metavar="R", help="in all (default: 200)")
    parser.add_argument("--seconds", type=_positive, default=60.0, metavar="S", help="of each half (default: 60)")
    parser.add_argument("--processes", type=positive_int, default=2, metavar="P", help="the agents' (default: 2)")
    args = parser.parse_args(argv)
    options = Options(args.agents, args.fixes_per_second, args.seconds, args.processes, args.seed)
    return measured(NAME, args, lambda say: measure(options, runs=args.runs, say=say))


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


if __name__ == "__main__":
    sys.exit(main())
