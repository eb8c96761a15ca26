"""A throw-away PostGIS server, so that the store is tested on what production runs.

The cluster lives in a temporary folder and listens on a free port of the loopback interface. The server is a child
of the test process and is told by the kernel when that process dies, so that a killed test run leaves no server behind.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from scripts.prerequisites import postgis_bindir

__all__ = ["PostgisServer", "PostgisUnavailable", "running_postgis"]

_TEMPLATE = "fencepost_template"
_START_SECONDS = 30.0
_ATTEMPTS = 5  # another process may take the free port between finding and using it


class PostgisUnavailable(RuntimeError):
    """The server can't be run here; the text says what to do."""


class PostgisServer:
    """A running server. Databases are copied from a template that has the extension already."""

    def __init__(self, port: int, process: "subprocess.Popen[bytes]") -> None:
        self.port = port
        self.pid = process.pid
        self._numbers = count(1)

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a fresh database with PostGIS; it is dropped afterwards, whoever is still connected."""
        name = f"fencepost_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def execute(self, statement: str, database: str = "postgres") -> None:
        with self._connect(database) as connection:
            connection.execute(statement.encode())

    def _connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True)


@contextmanager
def running_postgis(*, fsync: bool = True) -> Iterator[PostgisServer]:
    """Make a cluster, run it, and stop and remove it at the end."""
    bindir = postgis_bindir()
    if bindir is None:
        raise PostgisUnavailable(
            "These tests need PostgreSQL with PostGIS: run 'make test', or install the package postgresql-postgis."
        )
    folder = Path(tempfile.mkdtemp(prefix="fencepost-postgis-"))
    try:
        account = _server_account()
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        initdb = [str(bindir / "initdb"), "--pgdata", str(folder / "data"), "--username", "postgres"]
        initdb += ["--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"]
        made = subprocess.run([*_become(account), *initdb], cwd="/", capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise PostgisUnavailable(f"initdb failed: {made.stderr.strip()}")
        with _serving(bindir, folder, account, fsync) as server:
            server.execute(f"CREATE DATABASE {_TEMPLATE}")
            server.execute("CREATE EXTENSION postgis", _TEMPLATE)
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _serving(bindir: Path, folder: Path, account: pwd.struct_passwd | None, fsync: bool) -> Iterator[PostgisServer]:
    settings = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on" if fsync else "off",
        "max_connections": "200",
        "shared_buffers": "64MB",
        "max_wal_size": "1GB",
        "log_min_messages": "error",
    }
    options = [f"--{name}={value}" for name, value in settings.items()]
    log = folder / "server.log"
    for _ in range(_ATTEMPTS):
        port = _free_port()
        command = [str(bindir / "postgres"), "-D", str(folder / "data"), f"--port={port}", *options]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*_become(account, "--pdeathsig", "INT"), *command],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        server = PostgisServer(port, process)
        try:
            if _answers(server, process):
                yield server
                return
        finally:
            _stop(process)
    raise PostgisUnavailable(f"The PostgreSQL server did not start: {log.read_text(errors='replace').strip()}")


def _answers(server: PostgisServer, process: "subprocess.Popen[bytes]") -> bool:
    """Wait until the server takes connections; False if it ended instead."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.execute("SELECT 1")
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return process.poll() is None  # else another server answered on that port
    return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Fast shutdown, then immediate, then the hard way."""
    for sign in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            continue


def _server_account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root, so root lends it the account of Debian's package."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgisUnavailable("PostgreSQL does not run as root and there is no account 'postgres' to lend it.")


def _become(account: pwd.struct_passwd | None, *options: str) -> list[str]:
    if account is not None:
        options += (f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups")
    return ["setpriv", *options] if options else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
