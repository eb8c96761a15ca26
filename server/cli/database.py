"""What the commands share that work on the database itself, beside a running server or without one."""

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from server.settings import read_settings
from server.store.engine import check_migrated, for_writing, open_engine
from server.store.errors import DatabaseUnreachable

__all__ = ["add_database_argument", "database_errors", "database_of", "now_ms", "transaction"]


def add_database_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database", metavar="URL", help="a file, or postgresql://... (default: FENCEPOST_DATABASE, or fencepost.db)"
    )


def database_of(args: argparse.Namespace) -> str:
    return read_settings(os.environ, database=args.database).database


@contextmanager
def database_errors() -> Iterator[None]:
    """A disk that is full or may not be written to is nothing to print a traceback for."""
    try:
        yield
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        hint = "Look at the disk's free space and at who may write there."
        raise DatabaseUnreachable(f"The database did not do what it was asked to: {reason}.", hint=hint) from error


@contextmanager
def transaction(args: argparse.Namespace) -> Iterator[Connection]:
    """A connection in a transaction that is committed unless the block raises."""
    engine = open_engine(database_of(args))
    try:
        check_migrated(engine)
        with database_errors(), engine.connect() as conn, for_writing(conn).begin():
            yield conn
    finally:
        engine.dispose()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
