"""Opening the database: an SQLite file by default, PostgreSQL with PostGIS in production.

SQLite runs in WAL mode with synchronous FULL, because an acknowledgement is a promise that must survive a power
cut; what that costs is won back by committing many works at once (`server.store.writer`). The driver's own
transaction handling is switched off: it would begin transactions where it likes and break SAVEPOINT. A connection
marked with `for_writing` begins IMMEDIATE, so that it waits for the write lock at the start and never half way.
"""

import sqlite3
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError

from server.store.errors import DatabaseNotMigrated, DatabaseUnreachable, DatabaseUrlInvalid

__all__ = ["REVISION", "check_migrated", "for_writing", "open_engine", "parse_database_url"]

REVISION = "0003"  # the newest migration; a test compares it with migrations/versions

_BUSY_S = 15.0  # how long a writer waits for another process's write, for example the command line's
_LOOK_AGAIN_S = 0.01
_IMMEDIATE = "fencepost_immediate"


def parse_database_url(text: str) -> URL:
    """`sqlite:///file.db`, a bare path, or `postgresql://user@host/name`."""
    if "://" not in text:
        if not text.strip():
            raise _bad_url("The database URL is empty.")
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise _bad_url("The database URL can't be read.") from None
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.database or url.database.startswith((":memory:", "file:")):
            raise _bad_url(f"The database URL '{text}' names no file.")
        return url.set(drivername="sqlite")
    if url.drivername in ("postgres", "postgresql", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    raise _bad_url(f"Databases of the kind '{url.drivername}' are not supported.")


def open_engine(url: str) -> Engine:
    """An engine whose connections may be used from any thread, one thread at a time.

    Nothing is connected yet. Whenever a connection can't be made or breaks, the error is `DatabaseUnreachable`.
    """
    parsed = parse_database_url(url)
    engine = _open_sqlite(parsed) if parsed.drivername == "sqlite" else _open_postgresql(parsed)

    @event.listens_for(engine, "handle_error", retval=True)
    def say_unreachable(context: ExceptionContext) -> DatabaseUnreachable | None:
        if context.is_pre_ping:
            return None  # the pool is about to make a new connection
        # No connection in the context means that making one has failed.
        if context.connection is None or context.is_disconnect:
            return _unreachable(parsed, context.original_exception)
        return None

    return engine


def for_writing(conn: Connection) -> Connection:
    """Mark a connection, before its first statement, as one that is going to write."""
    return conn.execution_options(**{_IMMEDIATE: True})


def check_migrated(engine: Engine) -> None:
    """Raise unless the tables are those of this version."""
    found = _revision(engine)
    if found == REVISION:
        return
    where = engine.url.render_as_string(hide_password=True)
    if found is None:
        sentence = f"The database {where} has no tables of Fencepost yet."
    else:
        sentence = f"The database {where} has the tables of revision {found}, but this version needs {REVISION}."
    raise DatabaseNotMigrated(sentence, hint="Run `fencepost db upgrade` with the same database.", found=found)


def _revision(engine: Engine) -> str | None:
    path = engine.url.database or ""
    if engine.dialect.name == "sqlite" and Path(path).parent.is_dir() and not Path(path).exists():
        return None  # and connecting would leave an empty file
    with engine.connect() as conn:
        if not inspect(conn).has_table("alembic_version"):
            return None
        found: str | None = conn.scalar(text("SELECT version_num FROM alembic_version"))
        return found


def _open_sqlite(url: URL) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _BUSY_S, "check_same_thread": False}, max_overflow=-1)

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        _switch_to_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        immediate = conn.get_execution_options().get(_IMMEDIATE, False)
        conn.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Wait for whoever writes a file that is new to WAL.

    SQLite itself waits everywhere but here: it has begun to read when it finds that it must write, and two who
    waited for each other at that point would wait for ever.
    """
    give_up = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(_LOOK_AGAIN_S)


def _open_postgresql(url: URL) -> Engine:
    return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20, connect_args={"connect_timeout": 10})


def _unreachable(url: URL, cause: BaseException) -> DatabaseUnreachable:
    where = url.render_as_string(hide_password=True)
    if url.drivername == "sqlite":
        folder = Path(url.database or "").absolute().parent
        hint = "The file must be an SQLite database that this user may read and write, as its folder."
        if not folder.is_dir():
            hint = f"The folder {folder} does not exist: create it, or name another file."
    else:
        hint = "Check that PostgreSQL runs there and that the URL has the right host, user, password and name."
    reason = " ".join(str(cause).split()) or type(cause).__name__
    return DatabaseUnreachable(f"The database {where} does not answer: {reason}", hint=hint)


def _bad_url(sentence: str) -> DatabaseUrlInvalid:
    return DatabaseUrlInvalid(sentence, hint="Write sqlite:///file.db, a file's path, or postgresql://user@host/name.")
