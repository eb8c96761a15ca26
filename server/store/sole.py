"""One server a database.

A node keeps the world in memory and changes it only together with the store. A second one on the same store would go
on from its own memory, and both would number the same edges. So a server holds a lock for as long as it lives, of a
kind that the system takes back however the process ends. The commands that add users and keys need none: a node
knows that users come from elsewhere.
"""

import fcntl
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from server.store.engine import open_engine
from server.store.errors import DatabaseInUse, DatabaseUnreachable

__all__ = ["sole_server"]

_log = logging.getLogger("fencepost.store")
_WAIT_S = 5.0  # a server that was killed may need a moment to be gone
_LOOK_AGAIN_S = 0.1
_WATCH_S = 5.0
_TRY_LOCK = text("SELECT pg_try_advisory_lock(1178944089)")  # the number only has to be nobody else's


@contextmanager
def sole_server(database: str, lost: Callable[[], None], *, wait_s: float = _WAIT_S) -> Iterator[None]:
    """Hold the database for this process; `lost` is called, from a thread, if another server has taken it over."""
    engine = open_engine(database)
    try:
        if engine.dialect.name == "sqlite":
            with _file_lock(Path(f"{engine.url.database}.lock"), database, wait_s):
                yield
        else:
            with _advisory_lock(engine, lost, wait_s):
                yield
    finally:
        engine.dispose()


@contextmanager
def _file_lock(path: Path, database: str, wait_s: float) -> Iterator[None]:
    with path.open("ab") as file:

        def try_lock() -> bool:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        _until(try_lock, database, wait_s)
        yield


@contextmanager
def _advisory_lock(engine: Engine, lost: Callable[[], None], wait_s: float) -> Iterator[None]:
    """PostgreSQL gives such a lock to a connection, so that connection is watched, and made anew when it breaks."""
    where = engine.url.render_as_string(hide_password=True)
    holder = _Holder(engine)
    _until(holder.try_lock, where, wait_s)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_WATCH_S):
            try:
                if not holder.holds():
                    _log.error("database_taken_over")
                    lost()
                    return
            except (SQLAlchemyError, DatabaseUnreachable):
                holder.drop()  # nobody can write now; look again when the database is back

    watcher = threading.Thread(target=watch, name="sole-server", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        holder.drop()


class _Holder:
    """The connection that has the lock."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._conn: Connection | None = None

    def holds(self) -> bool:
        if self._conn is None:
            return self.try_lock()
        self._conn.execute(text("SELECT 1"))
        return True

    def try_lock(self) -> bool:
        conn = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if conn.execute(_TRY_LOCK).scalar_one():
            self._conn = conn
            return True
        conn.close()
        return False

    def drop(self) -> None:
        if self._conn is not None:
            with suppress(SQLAlchemyError, DatabaseUnreachable):
                self._conn.invalidate()  # closes it: a pooled one would keep the lock
                self._conn.close()
            self._conn = None


def _until(try_lock: Callable[[], bool], where: str, wait_s: float) -> None:
    give_up = time.monotonic() + wait_s
    while not try_lock():
        if time.monotonic() > give_up:
            raise DatabaseInUse(
                f"Another server is running on the database {where}.",
                hint="Stop it first: one server serves one database.",
            )
        time.sleep(_LOOK_AGAIN_S)
