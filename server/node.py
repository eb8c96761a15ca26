"""One node: the store, the world in memory, and the one way to change both.

`run` takes a command, a function of a `Work`, through the writer: in order, in a transaction, acknowledged after the
commit. What the command noted is let happen then: subscribers wake up, agents get new plans.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection, Engine

from matcher.once import Instant
from server.bus.bus import Bus, InProcessBus, notifications_of
from server.metrics import Metrics
from server.pubsub.loading import load_world
from server.pubsub.publishing import expire_dwells, next_deadline
from server.pubsub.work import Work
from server.pubsub.world import World
from server.settings import Settings
from server.store.engine import check_migrated, open_engine
from server.store.writer import Transaction, Writer

__all__ = ["Node", "PlanKeeper", "system_clock"]

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger("fencepost.node")


def system_clock() -> Instant:
    return time.time_ns() // 1_000_000


class PlanKeeper(Protocol):
    """Who hands out plans: told what a commit has changed, in the event loop's thread."""

    def plans_changed(self, object_ids: set[int]) -> None: ...

    def agents_ended(self, agent_ids: set[int]) -> None: ...


class Node:
    def __init__(self, settings: Settings, *, clock: Callable[[], Instant] = system_clock) -> None:
        self.settings = settings
        self.clock = clock
        self.bus: Bus = InProcessBus()
        self.metrics = Metrics()
        self.engine: Engine = open_engine(settings.database)
        self.plan_keeper: PlanKeeper | None = None
        check_migrated(self.engine)
        with self.engine.connect() as conn:
            self.world: World = load_world(conn)
        self.writer = Writer(self.engine, max_batch=settings.max_commit_batch, on_rollback=self._reload)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Task[None] | None = None
        self._timer_changed = asyncio.Event()

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.writer.start()
        self._timer = asyncio.create_task(self._keep_time())

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self.writer.stop()
        self.engine.dispose()

    async def run(self, command: Callable[Concatenate[Work, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The command's result, once it is committed."""
        return await self.writer.submit(lambda tx: self._unit(tx, command, *args, **kwargs))

    def run_now(self, command: Callable[Concatenate[Work, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same in the calling thread, for a node that has not been started."""
        return self.writer.run_now(lambda tx: self._unit(tx, command, *args, **kwargs))

    def _unit(
        self, tx: Transaction, command: Callable[Concatenate[Work, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        work = Work(tx, self.world, self.settings, self.clock())
        result = command(work, *args, **kwargs)
        work.recorder.flush(tx.conn)
        tx.after_commit(lambda: self._committed(work))
        return result

    def _committed(self, work: Work) -> None:
        self.metrics.recorded(work.recorder.recorded)
        if self._loop is None:
            return
        if work.recorder.subscribers or work.plans or work.ended_agents or work.recorder.dwells_changed:
            self._loop.call_soon_threadsafe(self._tell, work)

    def _tell(self, work: Work) -> None:
        for user_id in work.recorder.subscribers:
            self.bus.publish(notifications_of(user_id))
        if self.plan_keeper is not None:
            if work.ended_agents:
                self.plan_keeper.agents_ended(work.ended_agents)
            if work.plans:
                self.plan_keeper.plans_changed(work.plans)
        if work.recorder.dwells_changed:
            self._timer_changed.set()

    def _reload(self, conn: Connection) -> None:
        self.world = load_world(conn)

    async def _keep_time(self) -> None:
        """Call the state machines when their next deadline comes, whether or not an event does."""
        while True:
            try:
                self._timer_changed.clear()
                due = await self.run(next_deadline)
                wait_s = 3600.0 if due is None else max(0.0, (due - self.clock()) / 1000)
                await asyncio.wait_for(self._timer_changed.wait(), wait_s)
            except TimeoutError:
                await self.run(expire_dwells)
            except Exception:
                _log.exception("timer_failed")
                await asyncio.sleep(1)
