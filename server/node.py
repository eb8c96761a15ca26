"""One node: the store, the world in memory, and the one way to change both.

The compiled matching engine comes to life beside all this, once there is something for it to match, and so do the
tables it is merged into; until then, and meanwhile, everything is answered.

`run` takes a command, a function of a `Work`, through the writer: in order, in a transaction, acknowledged after the
commit. What the command noted is let happen then: subscribers wake up, agents get new plans.
"""

import asyncio
import logging
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

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

if TYPE_CHECKING:
    from matcher.engine import Merge

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
        self._chores: set[asyncio.Task[None]] = set()
        self.is_warm = False  # the matching engine is compiled, and in use
        self._is_warming = False
        self._is_merging = False

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.writer.start()
        self._timer = asyncio.create_task(self._keep_time())

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for chore in self._chores:
            chore.cancel()
        await asyncio.gather(*self._chores, return_exceptions=True)
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
        work.settle()
        work.recorder.flush(tx.conn)
        tx.after_commit(lambda: self._committed(work))
        return result

    def _committed(self, work: Work) -> None:
        self.metrics.recorded(work.recorder.recorded)
        if self._loop is None:
            return
        if not self._is_warming and self.world.rulebook.wants_engine:
            self._is_warming = True
            self._loop.call_soon_threadsafe(self._begin, self._warm_up())
        if not self._is_merging and self.world.rulebook.candidates.is_merge_due:
            self._is_merging = True
            merge = self.world.rulebook.candidates.begin_merge()
            self._loop.call_soon_threadsafe(self._begin, self._merge(self.world, merge))
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
        if self.is_warm:
            self.start_engine()

    def _begin(self, chore: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _warm_up(self) -> None:
        """Compile the engine, or find it compiled, and use it.

        Where it has never run, that takes a process of its own many seconds; it leaves a cache, which is read here.
        """
        try:
            compiler = await asyncio.create_subprocess_exec(sys.executable, "-m", "matcher.warmup", stdin=DEVNULL)
            try:
                status = await compiler.wait()
            finally:
                if compiler.returncode is None:
                    compiler.kill()
                    await compiler.wait()
            if status:
                _log.error("engine_unusable status=%d", status)
                return
            await asyncio.to_thread(_warm_up_here)
            await self.run(lambda work: self.start_engine())
        except Exception:  # without the engine the server is slower, and right
            _log.exception("engine_unusable")

    def start_engine(self) -> None:
        """Match with the compiled engine from now on; in the writer's thread."""
        from matcher.engine import Engine  # numba is heavy, and not every server needs it
        from matcher.zone_index import ZoneIndex

        self.world.rulebook.candidates.start(Engine())
        self.world.rulebook.fences.start(ZoneIndex)
        self.is_warm = True
        self.metrics.engine_warm.set(1)

    async def _merge(self, world: World, merge: "Merge") -> None:
        """Build the engine's next table beside everything else, and go over to it."""
        try:
            table = await asyncio.to_thread(merge.build)
            await self.run(lambda work: world.rulebook.candidates.finish_merge(table) if world is self.world else None)
        except Exception:
            _log.exception("merge_failed")
        finally:
            self._is_merging = False

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


def _warm_up_here() -> None:
    from matcher.warmup import warm_up

    warm_up()
