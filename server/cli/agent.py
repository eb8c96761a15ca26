"""`fencepost agent`: be the agent of an object, on a device that has a shell.

It lives beside the server's commands but needs nothing of the server's: a device installs `fencepost` alone. The
credential is made once, from a token, and kept in a file that only its owner can read.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agent_sdk.client import Agent
from agent_sdk.enrolment import enrol
from agent_sdk.errors import CredentialInvalid
from agent_sdk.sources.base import Source
from agent_sdk.sources.gpsd import GpsdSource
from agent_sdk.sources.trace import TraceSource
from server.cli.http import default_url
from server.cli.output import add_json_argument, explain, print_json

__all__ = ["add_arguments", "run"]

_CREDENTIAL = Path("fencepost-agent.credential")
_STATE = Path("fencepost-agent.db")
_LINES_MAX = 1000
_STOPS = (signal.SIGINT, signal.SIGTERM)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--trace", metavar="FILE", help="replay fixes: CSV with ts, lon, lat, or one JSON event a line")
    source.add_argument("--gpsd", action="store_true", help="read gpsd's JSON from stdin: `gpspipe -w | fencepost ...`")
    parser.add_argument("--oid", help="which object of a trace that has several")
    parser.add_argument(
        "--speed", type=_factor, metavar="X", help="replay X times as fast as it was (default: as fast as it goes)"
    )
    parser.add_argument("--url", help="the server (default: FENCEPOST_URL, or http://127.0.0.1:8000)")
    parser.add_argument("--token", help="enrol first, with what `fencepost agents enrol` has printed")
    parser.add_argument(
        "--credential",
        type=Path,
        default=_CREDENTIAL,
        metavar="FILE",
        help=f"where enrolling puts the credential and later runs find it (default: {_CREDENTIAL}); "
        "FENCEPOST_CREDENTIAL goes before it",
    )
    parser.add_argument(
        "--state", type=Path, default=_STATE, metavar="FILE", help=f"survives a restart (default: {_STATE})"
    )
    parser.add_argument("--notifications", action="store_true", help="print what is addressed to the device's own user")
    parser.add_argument("--wire", choices=("json", "msgpack"), default="msgpack", help="default: msgpack")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    url = default_url(args.url)
    credential = await _enrolled(url, args.token, args.credential) if args.token else _remembered(args.credential)
    agent = Agent(
        url,
        credential,
        _source(args),
        state=args.state,
        subprotocol=f"fencepost.v1.{args.wire}",
        notifications=args.notifications,
    )
    async with agent:
        await _until_done_or_told_to_stop(agent, print_them=args.notifications)
        figures = _figures(agent)
    if args.json:
        print_json(figures)
    else:
        print(
            f"{figures['fixes']} fixes gave {figures['edges']} edges in {figures['messages_sent']} messages "
            f"({figures['bytes_sent']} bytes); {figures['waiting']} wait to be sent, {figures['dead']} were refused."
        )
        if skipped := figures["invalid"] + figures["late"] + figures["suspended"]:
            explain(
                f"Of {skipped} fixes nothing came: {figures['late']} were not newer than the one before, "
                f"{figures['invalid']} were invalid or from the future, {figures['suspended']} found no valid plan."
            )
    return 0


async def _until_done_or_told_to_stop(agent: Agent, *, print_them: bool) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(agent.run())
    printing = asyncio.create_task(_print_notifications(agent)) if print_them else None
    for number in _STOPS:
        loop.add_signal_handler(number, running.cancel)
    try:
        with contextlib.suppress(asyncio.CancelledError):  # told to stop: the outbox is kept
            await running
    finally:
        for number in _STOPS:
            loop.remove_signal_handler(number)
        if printing is not None:
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)


async def _print_notifications(agent: Agent) -> None:
    async for notification in agent.notifications():
        print_json(notification)


def _figures(agent: Agent) -> dict[str, Any]:
    counts = agent.counts
    return {
        "fixes": counts.fixes,
        "invalid": counts.invalid,
        "late": counts.late,
        "suspended": counts.suspended,
        "edges": counts.edges,
        "waiting": counts.waiting,
        "dead": len(agent.dead()),
        "messages_sent": counts.traffic.messages_sent,
        "messages_received": counts.traffic.messages_received,
        "bytes_sent": sum(tally.bytes for tally in counts.traffic.sent.values()),
    }


async def _enrolled(url: str, token: str, path: Path) -> str:
    """Open the file before the token is used up: a credential that can't be kept is lost for good."""
    fresh = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            credential = await enrol(url, token)
            file.write(credential + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    explain(f"Enrolled; the credential is in {path}.")
    return credential


def _remembered(path: Path) -> str:
    given = os.environ.get("FENCEPOST_CREDENTIAL")
    if given:
        return given
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise CredentialInvalid(
            f"This device has no credential: there is no file {path}.",
            hint="Enrol it once: `fencepost agents enrol OID` prints a token for --token.",
        ) from None


def _source(args: argparse.Namespace) -> Source:
    if args.gpsd:
        return GpsdSource(_lines_of_stdin())
    return TraceSource(args.trace, speed=args.speed, oid=args.oid)


async def _lines_of_stdin() -> AsyncIterator[bytes]:
    """Read in a thread of its own, because a pipe, a file and a terminal can't all be waited for in one way."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue(_LINES_MAX)

    def read() -> None:
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):  # the loop has ended before the input
            for line in sys.stdin.buffer:
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await lines.get():
        yield line


def _factor(text: str) -> float:
    factor = float(text)
    if not 0 < factor < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a factor above 0")
    return factor
