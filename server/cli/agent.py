"""`fencepost agent`: be the agent of an object, on a device that has a shell.

It lives beside the server's commands but needs nothing of the server's: a device installs `fencepost` alone. The
credential is made once, from a token, and kept in a file that only its owner can read.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from agent_sdk.client import Agent
from agent_sdk.enrolment import enrol
from agent_sdk.errors import CredentialInvalid
from agent_sdk.sources.base import Source
from agent_sdk.sources.gpsd import GpsdSource
from agent_sdk.sources.trace import TraceSource, read_trace
from server.cli.http import default_url
from server.cli.output import add_json_argument, explain, print_json
from zones.errors import FencepostError

__all__ = ["add_arguments", "run"]

_CREDENTIAL = Path("fencepost-agent.credential")
_STATE = Path("fencepost-agent.db")
_STDIN = 0
_LINES_MAX = 1000  # that wait to be evaluated; whoever writes them waits then
_LINE_MAX = 1_000_000
_SAY_AFTER_S = 5.0
_QUIET_S = 1.0
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
    parser.add_argument("--verbose", action="store_true", help="log what happens, not only what goes wrong")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.WARNING)
    if args.verbose:
        logging.getLogger("fencepost").setLevel(logging.INFO)
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _STOPS:  # from the start: enrolling must not be cut off between the token and the file
        loop.add_signal_handler(number, stop.set)
    url = default_url(args.url)
    source = _source(args)
    credential = await _enrolled(url, args.token, args.credential) if args.token else _remembered(args.credential)
    agent = Agent(
        url,
        credential,
        source,
        state=args.state,
        subprotocol=f"fencepost.v1.{args.wire}",
        notifications=args.notifications,
    )
    async with agent:
        await _until_done_or(stop, agent, url, _show(args.json) if args.notifications else None)
        figures = _figures(agent, source)
    if args.json:
        print_json(figures)
    else:
        _print_figures(figures)
    return 0


def _print_figures(figures: dict[str, Any]) -> None:
    print(
        f"{figures['fixes']} fixes gave {figures['edges']} edges in {figures['messages_sent']} messages "
        f"({figures['bytes_sent']} bytes); {figures['waiting']} wait to be sent, {figures['dead']} were refused."
    )
    if without := figures["invalid"] + figures["late"] + figures["suspended"]:
        explain(
            f"Of {without} fixes nothing came: {figures['late']} were not newer than the one before, "
            f"{figures['invalid']} were invalid or from the future, {figures['suspended']} found no valid plan."
        )
    if figures["skipped"]:
        explain(f"{figures['skipped']} lines of the input could not be read as fixes.")


async def _until_done_or(stop: asyncio.Event, agent: Agent, url: str, show: Callable[[Any], None] | None) -> None:
    """Wait for the source's end and the last acknowledgement, or to be told to stop: the outbox is kept then."""
    shown = _Shown(agent, show)
    working, stopping = asyncio.create_task(_work(agent, shown)), asyncio.create_task(stop.wait())
    others = [stopping, asyncio.create_task(_say_how_it_goes(agent, url)), asyncio.create_task(shown.follow())]
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    finally:
        for task in (working, *others):
            task.cancel()
        await asyncio.gather(working, *others, return_exceptions=True)


async def _work(agent: Agent, shown: "_Shown") -> None:
    await agent.run()
    await shown.until_quiet()


async def _say_how_it_goes(agent: Agent, url: str) -> None:
    """Somebody who waits for the first fix to be evaluated wants to know for what."""
    with contextlib.suppress(FencepostError):  # what ends the agent is said once, at the end
        try:
            async with asyncio.timeout(_SAY_AFTER_S):
                await agent.until_planned()
        except TimeoutError:
            explain(f"The server at {url} has not given a plan yet; the fixes wait, and the agent keeps trying.")
            await agent.until_planned()
        explain("The agent has its plan: fixes are evaluated here from now on.")


class _Shown:
    """Notifications to the device's own user, as they come; `show` is None if nobody asked for them."""

    def __init__(self, agent: Agent, show: Callable[[Any], None] | None) -> None:
        self._agent = agent
        self._show = show
        self._news = asyncio.Event()

    async def follow(self) -> None:
        if self._show is not None:
            async for notification in self._agent.notifications():
                self._show(notification)
                self._news.set()

    async def until_quiet(self) -> None:
        """The last reports are acknowledged; what they gave for this user is on its way, and nobody says how much."""
        with contextlib.suppress(TimeoutError):
            while self._show is not None:
                self._news.clear()
                async with asyncio.timeout(_QUIET_S):
                    await self._news.wait()


def _show(as_json: bool) -> Callable[[Any], None]:
    return print_json if as_json else _print_notification


def _print_notification(notification: dict[str, Any]) -> None:
    words = [str(notification.get(name) or "-") for name in ("ts", "mode", "oid", "target")]
    print("  ".join(words), flush=True)


def _figures(agent: Agent, source: Source) -> dict[str, Any]:
    counts = agent.counts
    return {
        "fixes": counts.fixes,
        "skipped": source.skipped if isinstance(source, GpsdSource) else 0,
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
        _sync(path.parent)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    explain(f"Enrolled; the credential is in {path}.")
    return credential


def _sync(folder: Path) -> None:
    """Make the new name survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remembered(path: Path) -> str:
    given = os.environ.get("FENCEPOST_CREDENTIAL")
    if given:
        return given
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        raise CredentialInvalid(
            f"This device has no credential: there is no file {path}.",
            hint="Enrol it once: `fencepost agents enrol OID` prints a token for --token.",
        ) from None


def _source(args: argparse.Namespace) -> Source:
    if args.gpsd:
        return GpsdSource(_lines_of_stdin())
    next(read_trace(Path(args.trace), oid=args.oid), None)  # before a token is used up for a file that is no trace
    return TraceSource(args.trace, speed=args.speed, oid=args.oid)


async def _lines_of_stdin() -> AsyncIterator[bytes]:
    """Read in a thread of its own, because a pipe, a file and a terminal can't all be waited for in one way.

    It reads the descriptor itself: a thread that waits inside `sys.stdin` would make Python abort at its exit.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_LINES_MAX)

    def hand_over(line: bytes) -> None:
        room.acquire()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended before the input
            rest = b""
            while block := _read(_STDIN):
                *whole, rest = (rest + block).split(b"\n")
                for line in whole:
                    hand_over(line + b"\n")
                rest = rest[-_LINE_MAX:]  # somebody pipes something else into us: no line of gpsd's is that long
            if rest:
                hand_over(rest + b"\n")
            hand_over(b"")

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while line := await lines.get():
        room.release()
        yield line


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # stdin was closed from the start
        return b""


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a factor above 0")
    return factor
