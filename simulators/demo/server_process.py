"""The demo's server: a `fencepost serve` of its own, and the commands that add its users.

The demo talks to it as a stranger would: by commands and over the network. The server is a process in a session of
its own, so that a Ctrl-C in the terminal reaches the demo alone, which then stops things in order.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from simulators.errors import DemoFailed

__all__ = ["ServerProcess", "running_server"]

_START_S = 60.0
_COMMAND_S = 60.0
_STOP_S = 20.0


class ServerProcess:
    def __init__(self, process: Process, database: Path, log: Path, url: str, docs: str) -> None:
        self.url = url
        self.docs = docs
        self._process = process
        self._database = database
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    async def add_user(self, name: str, *, admin: bool = False) -> str:
        """Add a user; gives the user's key."""
        options = ["--admin"] if admin else []
        arguments = ["users", "add", name, *options, "--database", str(self._database), "--json"]
        process = await asyncio.create_subprocess_exec(
            *_command(*arguments), env=_environment(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), _COMMAND_S)
        except TimeoutError:
            raise DemoFailed(f"`fencepost users add {name}` took more than {_COMMAND_S:.0f} s.") from None
        finally:
            await _end(process)
        if process.returncode != 0:
            raise DemoFailed(f"`fencepost users add {name}` failed: {_last_line(err)}")
        key: str = json.loads(out)["key"]
        return key

    async def watch(self) -> None:
        """Raises when the server ends by itself."""
        await self._process.wait()
        raise _ended(self._process, self._log)


@contextlib.asynccontextmanager
async def running_server(folder: Path) -> AsyncIterator[ServerProcess]:
    """A server on a free port of this machine, with its database in that folder; stopped at the end."""
    database, log = folder / "fencepost.db", folder / "server.log"
    arguments = ["serve", "--host", "127.0.0.1", "--port", "0", "--database", str(database), "--json"]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *_command(*arguments), env=_environment(), stdin=DEVNULL, stdout=PIPE, stderr=errors, start_new_session=True
        )
    try:
        said = await _first_line(process, log)
        yield ServerProcess(process, database, log, said["url"], said["docs"])
    finally:
        await _end(process)


async def _first_line(process: Process, log: Path) -> dict[str, Any]:
    """Where it listens; it says so when the database is ready."""
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_S)
    except TimeoutError:
        raise DemoFailed(f"The server did not start within {_START_S:.0f} s.") from None
    if not line:
        await process.wait()
        raise _ended(process, log)
    said: dict[str, Any] = json.loads(line)
    return said


async def _end(process: Process) -> None:
    """Ask it to stop, and insist if it doesn't."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _ended(process: Process, log: Path) -> DemoFailed:
    return DemoFailed(f"The server ended by itself (exit code {process.returncode}): {_last_line(log.read_bytes())}")


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fencepost: ") if lines else "it said nothing."


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "server.cli.main", *arguments]


def _environment() -> dict[str, str]:
    """Without the settings of a real server that this machine may have."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
