"""Bringing a database to the tables of this version.

The whole upgrade is one transaction that begins with a lock: two servers that start together upgrade one after the
other, and one that is killed half way leaves the database as it was.
"""

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from server.store.engine import for_writing, open_engine

__all__ = ["alembic_config", "upgrade"]

_LOCK = 7_307_102_115  # any number, as long as it stays the same


def upgrade(url: str, revision: str = "head") -> None:
    """Create what is missing; harmless when nothing is."""
    engine = open_engine(url)
    try:
        with engine.connect() as plain:
            conn = for_writing(plain)
            with conn.begin():  # on SQLite this is the lock
                if conn.dialect.name == "postgresql":
                    conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                command.upgrade(alembic_config(conn), revision)
    finally:
        engine.dispose()


def alembic_config(conn: Connection) -> Config:
    """Alembic's settings, with the migrations as a package: they are found in a checkout and in an installed wheel."""
    config = Config(attributes={"connection": conn})
    config.set_main_option("script_location", "migrations:")
    return config
