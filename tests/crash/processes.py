"""The processes that are killed: a server on a port that stays its own, and groups of devices.

What they say on stderr is kept in a file: a process that fails by itself, or writes a traceback, fails the test.
"""

import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import httpx

__all__ = ["KilledProcess", "activity_pipe", "devices_process", "quiet_port", "server_process", "wait_until_ready"]

_ROOT = Path(__file__).resolve().parents[2]
_READY_S = 60.0


class KilledProcess:
    """Can be started again and again; `kills` counts the kills that met a running process."""

    def __init__(self, arguments: list[str], log: Path, stdout: int = subprocess.DEVNULL) -> None:
        self.kills = 0
        self._arguments = arguments
        self._log = log
        self._stdout = stdout
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._arguments], cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=self._stdout, stderr=log
            )

    @property
    def ended_with(self) -> int | None:
        """The exit code of a process that has ended by itself."""
        return None if self._process is None else self._process.poll()

    def kill(self) -> bool:
        """kill -9; says whether there was something to kill."""
        assert self._process is not None
        self._process.kill()
        met = self._process.wait() == -9
        self.kills += met
        return met

    def end(self) -> None:
        """Leave nothing behind, whatever has happened."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""


def server_process(database: str, port: int, folder: Path) -> KilledProcess:
    arguments = ["-m", "server.cli.main", "serve", "--json", "--port", str(port), "--database", database]
    return KilledProcess(arguments, folder / "server.log")


def devices_process(plan: Path, activity: BinaryIO) -> KilledProcess:
    arguments = ["-m", "tests.crash.devices", str(plan)]
    return KilledProcess(arguments, plan.with_suffix(".log"), stdout=activity.fileno())


def quiet_port(rng: random.Random) -> int:
    """A free port that the kernel gives to nobody else while our server is down."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    while True:
        port = rng.randrange(lowest // 2, lowest)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def wait_until_ready(server: KilledProcess, http: httpx.Client) -> None:
    give_up = time.monotonic() + _READY_S
    while True:
        assert server.ended_with is None, server.said()
        assert time.monotonic() < give_up, f"the server is not ready after {_READY_S:g} s"
        try:
            if http.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.02)


def activity_pipe() -> tuple[int, BinaryIO]:
    """A pipe that processes write to while they are busy; the end to be read does not block."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    return read_end, os.fdopen(write_end, "wb", buffering=0)
