"""An upgrade that is killed leaves the database as it was, so that the next one can do the whole work."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.store.engine import check_migrated, open_engine

_ROOT = Path(__file__).resolve().parents[2]
_KILLS = 6


class Upgrades:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, database: Path) -> tuple[int, float]:
        """The process, and the moment from which on it is at work."""
        pid = self._ask(str(database))
        began = time.perf_counter()
        while not database.exists() and time.perf_counter() < began + 30:
            pass
        return pid, time.perf_counter()

    def status(self) -> int:
        """Of the process that was started last, when it has ended."""
        return self._ask("")

    def _ask(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture
def upgrades() -> Iterator[Upgrades]:
    command = [sys.executable, "-m", "tests.crash.upgrades"]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Upgrades(process)
        process.kill()


def tables(database: Path) -> set[str]:
    conn = sqlite3.connect(database)
    try:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    finally:
        conn.close()


@pytest.mark.slow
def test_an_upgrade_that_was_killed_can_be_run_again(upgrades: Upgrades, tmp_path: Path):
    whole = tmp_path / "whole.db"
    _, began = upgrades.start(whole)
    assert upgrades.status() == 0
    took_s = time.perf_counter() - began
    complete = tables(whole)
    killed = half_done = 0
    for number in range(_KILLS):
        database = tmp_path / f"killed{number}.db"
        pid, began = upgrades.start(database)
        while time.perf_counter() - began < took_s * number / _KILLS:
            pass  # milliseconds: sleeping would be too coarse
        os.kill(pid, signal.SIGKILL)
        killed += upgrades.status() == -signal.SIGKILL
        found = tables(database)
        assert found in (set(), complete)
        half_done += found == set()
        upgrades.start(database)
        assert upgrades.status() == 0
        assert tables(database) == complete
        engine = open_engine(str(database))
        check_migrated(engine)
        engine.dispose()
    assert killed >= 3
    assert half_done >= 2, "hardly a kill has met the upgrade half way"


@pytest.mark.slow
def test_the_command_upgrades_what_a_killed_upgrade_left(upgrades: Upgrades, tmp_path: Path):
    database = tmp_path / "fencepost.db"
    pid, _ = upgrades.start(database)
    os.kill(pid, signal.SIGKILL)
    upgrades.status()
    command = [sys.executable, "-m", "server.cli.main", "db", "upgrade", "--database", str(database)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "alembic_version" in tables(database)
