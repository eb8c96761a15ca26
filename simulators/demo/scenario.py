"""What happens in the demo, from an empty folder to the figures.

A city has zones, a fleet lets a shop know when its vans enter and leave them, and the vans' own agents decide when
that is. At the end the shop must have heard exactly what the witness saw: the demo is a test that can be watched.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec

from matcher.once import Mode
from simulators.demo.city import city_collection, city_zones
from simulators.demo.figures import Figures, Traffic, Witness, describe_savings, disagreement
from simulators.demo.fleet import FIXES_PER_S, Van, started_fleet
from simulators.demo.http_api import HttpUser
from simulators.demo.server_process import ServerProcess, running_server
from simulators.demo.shop import Shop
from simulators.errors import DemoFailed

__all__ = ["Demo", "Options"]

_DRAIN_S = 60.0  # for the last reports to be acknowledged, and to be heard of
_COUNT_EVERY_S = 1.0
_SUBSCRIPTION = "vans-in-town"
_SELECTOR = "(*) within (SYSTEM.*)"


class Options(msgspec.Struct, frozen=True):
    seconds: float | None = None  # None: until `stop`
    agents: int = 50
    seed: int = 1


class Demo:
    """One run. `say` gets progress, `tell` each notification, `count` the running count; `stop` ends the driving."""

    def __init__(
        self,
        options: Options,
        *,
        say: Callable[[str], None],
        tell: Callable[[dict[str, Any]], None],
        count: Callable[[str], None],
    ) -> None:
        self.is_driving = False
        self.traffic = Traffic()
        self._options = options
        self._say = say
        self._tell = tell
        self._show_count = count
        self._stop = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> Figures:
        with tempfile.TemporaryDirectory(prefix="fencepost-demo-") as name:
            folder = Path(name)
            self._say("Starting a server with a new SQLite file.")
            async with running_server(folder) as server:
                return await _unless(server.watch(), self._in_town(server, folder))

    async def _in_town(self, server: ServerProcess, folder: Path) -> Figures:
        keys = await asyncio.gather(
            server.add_user("ada", admin=True), server.add_user("acme"), server.add_user("shop")
        )
        admin, acme, shop_user = (HttpUser(server.url, key) for key in keys)
        imported = await admin.ask("POST", "/v1/zones:import", city_collection(), owner="SYSTEM")
        await acme.ask("POST", "/v1/privacy/grants", {"who": "shop", "operations": ["enter", "leave"]})
        subscription = {"selector": _SELECTOR, "tos": "once"}
        await shop_user.ask("PUT", f"/v1/subscriptions/{_SUBSCRIPTION}", subscription)
        self._say(
            f"Imported {imported['imported']} zones. The fleet acme lets shop know when its vans enter or leave them, "
            f"and shop has subscribed to: {_SELECTOR}"
        )
        oids = [f"acme/van{number}" for number in range(1, self._options.agents + 1)]
        self._say(f"Enrolling and connecting {len(oids)} agents.")
        async with started_fleet(oids, acme, server.url, folder, seed=self._options.seed) as vans:
            self._say(f"While this runs, the API docs are at {server.docs}")
            self._say(f'and shop reads: curl -H "Authorization: Bearer {keys[2]}" {server.url}/v1/notifications')
            self._say("The vans set out." if self._options.seconds else "The vans set out. Ctrl-C stops them.")
            shop = Shop(shop_user, self._tell)
            return await _unless(shop.follow(), self._drive(vans, shop))

    async def _drive(self, vans: list[Van], shop: Shop) -> Figures:
        witness = Witness({f"SYSTEM.{name}": shape for name, shape in city_zones().items()})
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        seconds = self._options.seconds
        fixes = None if seconds is None else max(1, round(seconds * FIXES_PER_S))
        spread_s = 1 / FIXES_PER_S / len(vans)  # so that not all have their fixes at the same moment
        self.is_driving = True
        travels = [
            van.travel(start_s + number * spread_s, fixes, self._stop, witness.see) for number, van in enumerate(vans)
        ]
        counting = asyncio.create_task(self._count(vans))
        try:
            # An agent that has failed for good ends the demo at once, not after the last fix.
            await _together(*travels, *(van.agent.run() for van in vans), grace_s=_DRAIN_S, after=len(travels))
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
        if seconds is None or self._stop.is_set():
            seconds = round(loop.time() - start_s, 1)
        with contextlib.suppress(TimeoutError):  # what is missing then is said below
            async with asyncio.timeout(_DRAIN_S):
                await shop.has_heard(witness.edges.total())
        return self._figures(vans, shop, witness, seconds)

    async def _count(self, vans: list[Van]) -> None:
        while True:
            await asyncio.sleep(_COUNT_EVERY_S)
            fixes = sum(van.agent.counts.fixes for van in vans)
            traffic = Traffic.of(van.agent.counts.traffic for van in vans)
            self._show_count(
                f"{traffic.messages_sent} messages sent; server-side matching would have needed {fixes} "
                f"({describe_savings(traffic.savings(fixes))})."
            )

    def _figures(self, vans: list[Van], shop: Shop, witness: Witness, seconds: float) -> Figures:
        counts = [van.agent.counts for van in vans]
        wrong = disagreement(witness.edges, shop.heard)
        if wrong is not None:
            raise DemoFailed(wrong)
        reported = sum(each.edges for each in counts)
        if reported != shop.heard.total():
            raise DemoFailed(f"The agents reported {reported} edges and the subscriber heard {shop.heard.total()}.")
        fixes = sum(each.fixes for each in counts)
        self.traffic = Traffic.of(each.traffic for each in counts)
        return Figures(
            seconds=int(seconds) if seconds == int(seconds) else seconds,
            agents=len(vans),
            fixes=fixes,
            enters=shop.count(Mode.ENTER),
            leaves=shop.count(Mode.LEAVE),
            messages_sent=self.traffic.messages_sent,
            messages_server_side=fixes,
            savings=self.traffic.savings(fixes),
        )


async def _unless(guard: Coroutine[Any, Any, None], job: Coroutine[Any, Any, Figures]) -> Figures:
    """The job's result, unless the guard, which has no end of its own, fails before."""
    guarding, working = asyncio.create_task(guard), asyncio.create_task(job)
    try:
        done, _ = await asyncio.wait({guarding, working}, return_when=asyncio.FIRST_COMPLETED)
        if guarding in done:
            guarding.result()
        return await working
    finally:
        for task in (working, guarding):
            task.cancel()
        await asyncio.gather(working, guarding, return_exceptions=True)


async def _together(*jobs: Coroutine[Any, Any, None], after: int, grace_s: float) -> None:
    """Run all; the first failure ends them. Once the first `after` of them are done the rest have `grace_s` left."""
    tasks = [asyncio.create_task(job) for job in jobs]

    async def lose_patience() -> None:
        await asyncio.wait(tasks[:after])
        await asyncio.sleep(grace_s)

    ending = asyncio.create_task(asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION))
    patience = asyncio.create_task(lose_patience())
    watching: set[asyncio.Future[Any]] = {ending, patience}
    try:
        await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        if not ending.done():
            raise DemoFailed(f"Not every report was acknowledged within {grace_s:.0f} s after the last fix.")
    finally:
        for each in (*tasks, *watching):
            each.cancel()
        await asyncio.gather(*tasks, *watching, return_exceptions=True)
