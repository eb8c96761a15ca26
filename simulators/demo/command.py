"""`fencepost demo`: options in, lines and figures out."""

import argparse
import asyncio
import resource
import signal
import sys
from typing import Any

import msgspec

from simulators.demo.figures import Figures, Traffic, describe_savings
from simulators.demo.scenario import Demo, Options
from simulators.demo.screen import Screen
from simulators.demo.shop import describe

__all__ = ["add_arguments", "run"]

_AGENTS_MAX = 1000
_SECONDS_MAX = 86_400.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FILES_PER_AGENT = 8  # a socket, and a state file with its journals; some to spare

_ABOUT = """\
Starts a server with a temporary SQLite file on a free port of this machine, imports a small city, and lets vans drive
through it, each with a real agent that decides by itself when it enters or leaves a zone. Prints enter and leave as the
subscriber hears of them.

messages_sent counts the frames that matching on the device needs: reports (agent to server) and plans (server to
agent). messages_server_side is what matching on the server would have needed: one message for each fix.
savings = 1 - messages_sent / messages_server_side. Acknowledgements, lease renewals, and the one hello and welcome of
each connection are counted apart. At the end the edges heard are compared with the edges that happened; if they
differ, the exit code is 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _ABOUT
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="how long to drive (default: until Ctrl-C)")
    parser.add_argument("--agents", type=_agents, default=50, metavar="N", help="how many vans (default: 50)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other ways through the city (default: 1)")
    parser.add_argument("--json", action="store_true", help="print only the figures, as one JSON object")


def run(args: argparse.Namespace) -> int:
    _allow_files(args.agents * _FILES_PER_AGENT + 256)
    return asyncio.run(_run(Options(args.seconds, args.agents, args.seed), as_json=args.json))


async def _run(options: Options, *, as_json: bool) -> int:
    screen = Screen(as_json=as_json)

    def tell(notification: dict[str, Any]) -> None:
        screen.tell(describe(notification))

    demo = Demo(options, say=screen.say, tell=tell, count=screen.count)
    running = asyncio.create_task(demo.run())
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if demo.is_driving and not interrupted:
            screen.say("Stopping when the last reports are heard; once more to stop at once.")
            demo.stop()
        else:
            running.cancel()
        interrupted = True

    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, interrupt)
    try:
        figures = await running
    except asyncio.CancelledError:
        screen.end_count()
        print("fencepost: Stopped before the end.", file=sys.stderr)
        return 1
    finally:
        screen.end_count()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
    if as_json:
        print(msgspec.json.encode(figures).decode(), flush=True)
    else:
        print(_summary(figures, demo.traffic), flush=True)
    return 0


def _summary(figures: Figures, traffic: Traffic) -> str:
    return (
        f"\nIn {figures.seconds:g} s {figures.agents} agents had {figures.fixes} fixes, which gave "
        f"{figures.enters} enter and {figures.leaves} leave. The subscriber heard each of them, and none twice.\n"
        f"{figures.messages_sent} messages sent ({traffic.plans} plans, {traffic.reports} reports); "
        f"server-side matching would have needed {figures.messages_server_side}, one for each fix "
        f"({describe_savings(figures.savings)}).\n"
        f"Counted apart: {traffic.greetings} hellos and welcomes, {traffic.acks} acknowledgements, "
        f"{traffic.leases} messages about leases."
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and at most {_SECONDS_MAX:.0f}")
    return seconds


def _agents(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _AGENTS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to {_AGENTS_MAX}")
    return int(text)


def _allow_files(count: int) -> None:
    """Raise the number of open files, which the server inherits, as far as is needed and allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
