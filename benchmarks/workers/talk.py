"""How a worker and the one who started it talk: JSON lines, one question and one answer at a time."""

import asyncio
import contextlib
import os
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchmarks.support.town import Timetable

__all__ = ["Job", "Worker", "answer", "next_line", "started_worker", "until", "work"]

T = TypeVar("T")
_ROOT = Path(__file__).resolve().parent.parent.parent
_LINE_MAX = 16 * 1024 * 1024
_END_S = 30.0


class Job(msgspec.Struct, frozen=True):
    """What a worker is told first: whom to speak to as whom, and for which of the vans."""

    url: str
    key: str
    owner: str
    folder: str
    first: int
    behind: int
    timetable: Timetable

    @property
    def vans(self) -> range:
        return range(self.first, self.behind)

    def oid(self, van: int) -> str:
        return f"{self.owner}/van{van}"


# --- in the worker ---------------------------------------------------------------------------------------


def work(task: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
    """Run a worker's task with the job that comes in."""
    asyncio.run(task(msgspec.json.decode(sys.stdin.readline(), type=Job)))


async def next_line(kind: type[T]) -> T:
    """The next thing we are told; ends the process if nobody is there any more."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise SystemExit(1)
    return msgspec.json.decode(line, type=kind)


def answer(said: Any) -> None:
    print(msgspec.json.encode(said).decode(), flush=True)


async def until(epoch_ms: int) -> None:
    """Sleep until that moment of the wall clock, which all processes of this machine share."""
    ahead_s = (epoch_ms - time.time_ns() / 1_000_000) / 1000
    if ahead_s > 0:
        await asyncio.sleep(ahead_s)


# --- in the one who started it ---------------------------------------------------------------------------


class Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, said: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(said) + b"\n")

    async def heard(self, kind: type[T], *, within_s: float) -> T:
        """Its next answer."""
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), within_s)
        if not line:
            raise RuntimeError(f"A worker ended by itself (exit code {await self._process.wait()}).")
        return msgspec.json.decode(line, type=kind)


@contextlib.asynccontextmanager
async def started_worker(module: str, job: Job) -> AsyncIterator[Worker]:
    """A process that runs `benchmarks.workers.<module>`; it ends with its stdin."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"benchmarks.workers.{module}", cwd=_ROOT, env=_environment(), stdin=PIPE, stdout=PIPE,
        limit=_LINE_MAX,
    )  # fmt: skip
    try:
        worker = Worker(process)
        worker.tell(job)
        yield worker
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
