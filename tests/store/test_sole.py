"""One server a database: a second one is told so, and a killed one leaves nothing behind."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from server.store import sole
from server.store.errors import DatabaseInUse
from server.store.sole import sole_server

_ROOT = Path(__file__).resolve().parents[2]
_HOLD = """
import sys
from server.store.sole import sole_server
with sole_server(sys.argv[1], lambda: None):
    print("held", flush=True)
    sys.stdin.read()
"""


def nothing() -> None:
    raise AssertionError("nobody took it over")


def test_a_second_server_is_refused_until_the_first_has_stopped(database_url: str):
    with (
        sole_server(database_url, nothing),
        pytest.raises(DatabaseInUse, match="Another server is running"),
        sole_server(database_url, nothing, wait_s=0.2),
    ):
        pass
    with sole_server(database_url, nothing, wait_s=0):
        pass


def test_a_killed_server_gives_its_database_back(database_url: str):
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, database_url],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(DatabaseInUse), sole_server(database_url, nothing, wait_s=0):
            pass
        process.kill()
    with sole_server(database_url, nothing):
        pass


def test_a_lock_that_broke_is_taken_again(postgis_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sole, "_WATCH_S", 0.05)
    engine = create_engine(postgis_url, isolation_level="AUTOCOMMIT")
    holders = text("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")
    with engine.connect() as conn, sole_server(postgis_url, nothing):
        first = conn.execute(holders).scalar_one()
        conn.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": first})
        for _ in range(200):
            pids = conn.execute(holders).scalars().all()
            if pids and pids != [first]:
                break
            threading.Event().wait(0.05)
        else:
            raise AssertionError("the lock was not taken again")
    engine.dispose()


def test_a_server_that_lost_its_database_to_another_hears_of_it(postgis_url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sole, "_WATCH_S", 0.3)
    lost = threading.Event()
    engine = create_engine(postgis_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as other, sole_server(postgis_url, lost.set):
        pid = other.execute(text("SELECT pid FROM pg_locks WHERE locktype = 'advisory'")).scalar_one()
        other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        for _ in range(200):
            if other.execute(sole._TRY_LOCK).scalar_one():
                break
        assert lost.wait(10)
    engine.dispose()
