"""A whole run: a server, devices, publishers and subscribers, and somebody who disturbs them until all is told.

The moments are drawn from a seeded generator. Most of them fall a few milliseconds behind a sign of activity: that is
when a transaction is open, a commit is on its way to the disk, or an acknowledgement to the device.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec

from tests.crash.audit import Tally, check_order, stored, tally
from tests.crash.clients import Publisher, Retrying, Subscriber
from tests.crash.devices import DevicePlan, ProcessPlan
from tests.crash.processes import (
    KilledProcess,
    activity_pipe,
    devices_process,
    quiet_port,
    server_process,
    wait_until_ready,
)
from tests.crash.scene import SUBSCRIPTIONS, ZONES, Scene
from tests.e2e.conftest import LiveServer, Person

__all__ = ["Outcome", "Siege", "Size"]

_LOOK_S = 0.02
_BUSY_S = (0.004, 0.012, 0.04)  # a kill behind a sign of activity comes within so long
_STARTING_S = 30.0
_KILLS_AT_LEAST = 4  # of each process, if it lives long enough; then all may end in peace when the traces have ended
_END_S = 120.0  # how long everything may take to be told, once the traces have ended


@dataclass(frozen=True)
class Size:
    """`seconds` is how long the traces last; the others say how long a process lives once it is at work."""

    seconds: float
    groups: int
    server_lives_s: tuple[float, float]
    devices_live_s: tuple[float, float]


@dataclass(frozen=True)
class Outcome:
    tally: Tally
    notifications: int
    kills_server: int
    kills_agents: int
    disturbances: int
    repeated_requests: int
    seconds: float


@dataclass
class Siege:
    database: str
    folder: Path
    scene: Scene
    size: Size
    rng: random.Random
    _busy: asyncio.Event = field(default_factory=asyncio.Event, repr=False)  # somebody is
    _busy_groups: dict[int, asyncio.Event] = field(default_factory=dict, repr=False)  # by their pipe
    _awake: dict[int, asyncio.Event] = field(default_factory=dict, repr=False)
    _devices: dict[int, KilledProcess] = field(default_factory=dict)
    _disturbances: int = 0
    _end_s: float = 0.0

    def with_kills(self) -> Outcome:
        """The server and the devices are killed again and again."""
        return self._hold(self._kill_all, may_be_unavailable=False)

    def with_lost_connections(self, cut: Callable[[], None], every_s: tuple[float, float]) -> Outcome:
        """Nobody is killed, but `cut` takes the server's connections to its database away."""

        async def disturb(_http: httpx.Client) -> None:
            while not self._devices_are_done():
                await self._moment(every_s, self._busy)
                await asyncio.to_thread(cut)
                self._disturbances += 1

        return self._hold(disturb, may_be_unavailable=True)

    # --- from beginning to end -------------------------------------------------------------------------

    def _hold(self, disturb: Callable[[httpx.Client], Awaitable[None]], *, may_be_unavailable: bool) -> Outcome:
        port = quiet_port(self.rng)
        url = f"http://127.0.0.1:{port}"
        self._server = server_process(self.database, port, self.folder)
        with ExitStack() as stack:
            stack.callback(self._server.end)
            http = stack.enter_context(httpx.Client(base_url=url, timeout=30, trust_env=False))
            self._server.start()
            wait_until_ready(self._server, http)
            people, credentials = self._settle(LiveServer(url, self.database, http))
            began = time.monotonic()
            pace_s = self.size.seconds / self.scene.steps
            begin_s = time.time() + 0.5
            self._end_s = begin_s + self.size.seconds
            stack.enter_context(self._started_devices(url, credentials, begin_s, pace_s))
            keys = {name: person.key for name, person in people.items()}
            read, repeated = asyncio.run(self._run(url, http, keys, begin_s, pace_s, disturb, may_be_unavailable))
            seconds = time.monotonic() - began
            assert self._server.ended_with is None, self._server.said()
        for process in (self._server, *self._devices.values()):
            assert "Traceback" not in process.said(), process.said()
        assert stored(self.database) == read
        counted = tally(self.scene.expected, read)
        if counted == Tally(0, 0):
            check_order(self.scene.expected, read)
        return Outcome(
            tally=counted,
            notifications=sum(map(len, read.values())),
            kills_server=self._server.kills,
            kills_agents=sum(process.kills for process in self._devices.values()),
            disturbances=self._disturbances,
            repeated_requests=repeated,
            seconds=round(seconds, 1),
        )

    def _settle(self, live: LiveServer) -> tuple[dict[str, Person], dict[str, str]]:
        """Users, grants, zones, subscriptions, and a credential for each device."""
        people = {name: live.person(name) for name in ("acme", "shop", "depot")}
        for name, (west, south, east, north) in ZONES.items():
            shape = {"type": "Rectangle", "bbox": [west, south, east, north]}
            owner = people[name.partition(".")[0]]
            owner.done("PUT", f"/v1/zones/{name}", {"shape": shape, "on_devices": True})
        for name in ("shop", "depot"):
            people["acme"].grant(people[name], "enter", "leave", "position")
        # An object is there from its first event or its enrolment on, and can be subscribed to then.
        credentials = {oid: people["acme"].enrol(oid) for oid in self.scene.agents}
        for oid in self.scene.publishers:
            people["acme"].publish({"oid": oid, "ts": 1})
        for name, text in SUBSCRIPTIONS.items():
            selector = text.selector(self.scene.oids_of(text))
            people[text.subscriber].subscribe(name, selector, tos=text.tos, dwell_s=text.dwell_s)
        return people, credentials

    @contextmanager
    def _started_devices(self, url: str, credentials: dict[str, str], begin_s: float, pace_s: float) -> Iterator[None]:
        with ExitStack() as stack:
            for group in range(self.size.groups):
                devices = [
                    DevicePlan(
                        credentials[oid],
                        str(self.folder / f"{oid.replace('/', '-')}.db"),
                        [
                            (fix.ts, fix.lon, fix.lat, fix.speed, fix.ts in self.scene.telling[oid])
                            for fix in self.scene.traces[oid]
                        ],
                    )
                    for oid in self.scene.agents[group :: self.size.groups]
                ]
                plan = self.folder / f"group{group}.json"
                plan.write_bytes(msgspec.json.encode(ProcessPlan(url, begin_s, pace_s, devices)))
                reader, writer = activity_pipe()
                stack.callback(os.close, reader)
                process = devices_process(plan, stack.enter_context(writer))
                stack.callback(process.end)
                process.start()
                self._devices[reader] = process
                self._busy_groups[reader], self._awake[reader] = asyncio.Event(), asyncio.Event()
            yield

    async def _run(
        self,
        url: str,
        http: httpx.Client,
        keys: dict[str, str],
        begin_s: float,
        pace_s: float,
        disturb: Callable[[httpx.Client], Awaitable[None]],
        may_be_unavailable: bool,
    ) -> tuple[dict[str, list[dict[str, Any]]], int]:
        loop = asyncio.get_running_loop()
        for reader in self._devices:
            loop.add_reader(reader, self._drain, reader)
        limits = httpx.Limits(max_keepalive_connections=20)
        async with httpx.AsyncClient(base_url=url, timeout=20, trust_env=False, limits=limits) as anybody:
            clients = {
                name: Retrying(anybody, key, may_be_unavailable=may_be_unavailable) for name, key in keys.items()
            }
            subscribers = [Subscriber(name, clients[name], self._another()) for name in ("shop", "depot")]
            publishers = [
                Publisher(oid, self.scene.traces[oid], self.scene.telling[oid], clients["acme"], self._another())
                for oid in self.scene.publishers
            ]
            all_sent = asyncio.Event()
            async with asyncio.timeout(self.size.seconds + _END_S), asyncio.TaskGroup() as everybody:
                for subscriber in subscribers:
                    everybody.create_task(subscriber.follow(all_sent))
                async with asyncio.TaskGroup() as senders:
                    senders.create_task(disturb(http))
                    senders.create_task(self._await_devices())
                    for publisher in publishers:
                        senders.create_task(publisher.publish(begin_s, pace_s, self._busy.set))
                all_sent.set()
            # What was read before the last kill is what is there after it, and there is no more.
            if not may_be_unavailable:
                self._server.kill()
                self._server.start()
            read = {subscriber.name: subscriber.read for subscriber in subscribers}
            for subscriber in subscribers:
                assert await subscriber.read_again() == subscriber.read
        for reader in self._devices:
            loop.remove_reader(reader)
        return read, sum(client.repeated for client in clients.values())

    # --- disturbing ------------------------------------------------------------------------------------

    async def _kill_all(self, http: httpx.Client) -> None:
        async with asyncio.TaskGroup() as killers:
            killers.create_task(self._kill_server(http))
            for reader, process in self._devices.items():
                killers.create_task(self._kill_devices(process, reader))

    async def _kill_server(self, http: httpx.Client) -> None:
        while not self._devices_are_done() and self._has_time(self._server):
            if self.rng.random() < 0.85:  # else it may be killed while it starts
                await asyncio.to_thread(wait_until_ready, self._server, http)
            await self._moment(self.size.server_lives_s, self._busy)
            self._server.kill()
            if self.rng.random() < 0.3:
                await asyncio.sleep(self.rng.uniform(0, 0.5))
            self._server.start()
        await asyncio.to_thread(wait_until_ready, self._server, http)

    async def _kill_devices(self, process: KilledProcess, reader: int) -> None:
        while process.ended_with is None and self._has_time(process):
            await _seen(self._awake[reader], _STARTING_S)
            await self._moment(self.size.devices_live_s, self._busy_groups[reader])
            if process.ended_with is None and process.kill():
                process.start()

    async def _moment(self, lives_s: tuple[float, float], busy: asyncio.Event) -> None:
        """Wait for a random moment, or for one just behind the next sign of activity."""
        await asyncio.sleep(self.rng.uniform(*lives_s))
        if self.rng.random() < 0.8 and await _seen(busy, 1.0):
            await asyncio.sleep(self.rng.uniform(0, self.rng.choice(_BUSY_S)))

    def _has_time(self, process: KilledProcess) -> bool:
        """A slow machine that is disturbed all the time would hardly come to an end."""
        return time.time() < self._end_s or process.kills < _KILLS_AT_LEAST

    async def _await_devices(self) -> None:
        while not self._devices_are_done():  # noqa: ASYNC110 - a process ends without an event
            await asyncio.sleep(_LOOK_S)

    def _devices_are_done(self) -> bool:
        for process in self._devices.values():
            assert process.ended_with in (None, 0), process.said()
        return all(process.ended_with == 0 for process in self._devices.values())

    def _drain(self, reader: int) -> None:
        signs = os.read(reader, 65_536)
        self._awake[reader].set()
        if b"!" in signs:
            self._busy.set()
            self._busy_groups[reader].set()

    def _another(self) -> random.Random:
        return random.Random(self.rng.random())


async def _seen(sign: asyncio.Event, seconds: float) -> bool:
    """Wait for the next sign, but not for ever."""
    sign.clear()
    try:
        async with asyncio.timeout(seconds):
            await sign.wait()
    except TimeoutError:
        return False
    return True
