"""Group commit: everything that changes the database goes through one writer.

A commit that survives a power cut costs a disk flush, whatever it holds. So one thread takes whatever is queued, runs
each work in a savepoint of its own inside one transaction, and commits once; callers hear of their result after
the commit only. Being one thread also gives works an order, which the in-memory model needs that they change.

That model can get ahead of the database in two ways: a work fails after it has changed something, or the commit
fails. Both times `on_rollback` is called to load the memory anew. A work that refuses its input before it changes
anything (the usual case) costs no reload: writes are noticed by themselves, other changes are told by `touch`.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from server.store.engine import for_writing
from server.store.errors import NotRecorded
from zones.errors import FencepostError

__all__ = ["Transaction", "Writer"]

T = TypeVar("T")

_log = logging.getLogger("fencepost.store")


class Transaction:
    """What a work may use: the connection, and calls for after the commit. It must not commit by itself."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.touched = False
        self._calls: list[Callable[[], None]] = []

    def touch(self) -> None:
        """Say that memory is about to change: if the work fails from here on, memory has to be loaded anew."""
        self.touched = True

    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` made in the writer's thread once this work is safe on disk; never, if it fails."""
        self._calls.append(call)

    def _committed(self) -> None:
        for call in self._calls:
            try:
                call()
            except Exception:
                # The work is recorded: its caller must not be told otherwise.
                _log.exception("after_commit_failed")


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[Transaction], T]
    future: "Future[T]" = field(default_factory=Future)
    result: T | None = None
    error: BaseException | None = None
    transaction: Transaction | None = None


class _BatchLost(Exception):
    """The transaction can't go on, with the works already done in it."""


class Writer:
    """Runs works in the order they were submitted.

    `works`, `commits` and `reloads` count, for the metrics.
    """

    def __init__(
        self, engine: Engine, *, max_batch: int = 256, on_rollback: Callable[[Connection], None] = lambda _conn: None
    ) -> None:
        self.works = 0
        self.commits = 0
        self.reloads = 0
        self._engine = engine
        self._max_batch = max_batch
        self._on_rollback = on_rollback
        self._queue: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._accepting = threading.Lock()  # held while `_open` changes, so that nothing is queued behind the end
        self._open = False
        self._running = threading.Lock()  # held by whoever uses the connection
        self._conn: Connection | None = None
        self._current: Transaction | None = None
        self._stale = False  # memory could not be loaded anew yet

    def start(self) -> None:
        with self._accepting:
            assert not self._open, "the writer has been started already"
            self._open = True
        self._thread = threading.Thread(target=self._loop, name="fencepost-writer", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Finish what is queued, refuse what comes later, and let go of the connection."""
        with self._accepting:
            if not self._open:
                return
            self._open = False
            self._queue.put(None)
        assert self._thread is not None
        await asyncio.to_thread(self._thread.join)
        self._thread = None

    async def submit(self, work: Callable[[Transaction], T]) -> T:
        """The work's result, after it was committed. A caller that is cancelled does not undo its work."""
        job: _Job[T] = _Job(work)
        with self._accepting:
            if not self._open:
                raise NotRecorded("Nothing can be recorded: the server is stopping.", hint="Send it again later.")
            self._queue.put(job)
        return await asyncio.wrap_future(job.future)

    def run_now(self, work: Callable[[Transaction], T]) -> T:
        """The same in the calling thread, as a batch of one."""
        job: _Job[T] = _Job(work)
        self._run([job])
        if self._thread is None:
            with self._running:
                self._disconnect()
        return job.future.result()

    def _loop(self) -> None:
        ending = False
        while not ending:
            jobs: list[_Job[Any]] = []
            first = self._queue.get()
            ending = first is None
            if first is not None:
                jobs.append(first)
            with suppress(queue.Empty):
                while not ending and len(jobs) < self._max_batch:
                    job = self._queue.get_nowait()
                    ending = job is None
                    if job is not None:
                        jobs.append(job)
            if jobs:
                self._run(jobs)
        with self._running:
            self._disconnect()

    def _run(self, jobs: list[_Job[Any]]) -> None:
        """One transaction; every future has its answer when this returns."""
        with self._running:
            try:
                self._commit(jobs)
            except Exception as error:
                lost = error.__cause__ if isinstance(error, _BatchLost) and error.__cause__ else error
                code = lost.code if isinstance(lost, FencepostError) else type(lost).__name__
                _log.error("batch_lost works=%d reason=%s", len(jobs), code)
                self._stale = True
                self._disconnect()
                try:
                    self._freshen()
                except Exception:
                    self._disconnect()  # memory stays stale, and the next batch tries again first
                for job in jobs:
                    job.error = _not_recorded(lost)
            else:
                for job in jobs:
                    if job.error is None and job.transaction is not None:
                        job.transaction._committed()
        for job in jobs:
            _answer(job)

    def _commit(self, jobs: list[_Job[Any]]) -> None:
        if self._stale:
            self._freshen()
        conn = self._connect()
        with conn.begin():
            for job in jobs:
                self._run_one(conn, job)
        self.commits += 1
        self.works += len(jobs)

    def _run_one(self, conn: Connection, job: _Job[Any]) -> None:
        savepoint = conn.begin_nested()
        transaction = self._current = job.transaction = Transaction(conn)
        try:
            job.result = job.work(transaction)
            self._current = None
            savepoint.commit()
        except Exception as error:
            self._current = None
            if conn.invalidated or not savepoint.is_active:
                raise _BatchLost from error
            # A StopIteration can't pass through an asyncio future: it would leave the caller waiting for ever.
            job.error = RuntimeError("work raised StopIteration") if isinstance(error, StopIteration) else error
            try:
                savepoint.rollback()
                if transaction.touched or not isinstance(error, FencepostError):
                    self._reload(conn)
            except Exception as failure:
                raise _BatchLost from failure

    def _freshen(self) -> None:
        with self._connect().begin():
            self._reload(self._connect())
        self._stale = False

    def _reload(self, conn: Connection) -> None:
        self.reloads += 1
        self._on_rollback(conn)

    def _connect(self) -> Connection:
        if self._conn is None:
            conn = for_writing(self._engine.connect())
            event.listen(conn, "after_cursor_execute", self._notice)
            self._conn = conn
        return self._conn

    def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            # Closing rolls back; on a broken connection that fails, and there is nothing to roll back then.
            with suppress(DBAPIError, FencepostError):
                conn.close()

    def _notice(self, _conn: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if self._current is not None and not statement.startswith("SELECT"):
            self._current.touched = True


def _answer(job: _Job[Any]) -> None:
    # The future is only ever resolved here; a cancelled one is of a caller that has gone.
    if not job.future.set_running_or_notify_cancel():
        return
    if job.error is not None:
        job.future.set_exception(job.error)
    else:
        job.future.set_result(job.result)


def _not_recorded(cause: BaseException) -> NotRecorded:
    error = NotRecorded("The database did not take the change, so nothing was recorded.", hint="Send it again.")
    error.__cause__ = cause
    return error
