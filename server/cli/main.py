"""The `fencepost` command.

A command is a module with `add_arguments(parser)` and `run(args) -> int`. It is imported only when it is asked for:
a device has the same `fencepost` but not the server's packages, and `fencepost agent` must start fast there.

Exit codes: 0 done, 1 failed, 2 bad usage. A failure is one sentence on stderr, never a traceback.
"""

import argparse
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from zones.errors import FencepostError

__all__ = ["COMMANDS", "Command", "main"]

_OURS = ("zones", "matcher", "privacy", "agent_sdk", "server", "simulators", "migrations")


class Command(NamedTuple):
    module: str
    help: str
    extra: str = "server"  # what to install when its packages are missing


COMMANDS = {
    "serve": Command("server.cli.serve", "run the server"),
    "demo": Command("simulators.demo.command", "run a server, sample zones and moving agents for a while"),
    "db": Command("server.cli.db", "create or upgrade the database"),
    "users": Command("server.cli.users", "add and list users"),
    "keys": Command("server.cli.keys", "make, list and revoke API keys"),
    "zones": Command("server.cli.zones", "import, export and list zones"),
    "grants": Command("server.cli.grants", "say who may know about your objects"),
    "delegations": Command("server.cli.delegations", "say who may publish for your objects"),
    "subscriptions": Command("server.cli.subscriptions", "put, list, explain and delete subscriptions"),
    "publish": Command("server.cli.publish", "say where an object is that has no agent"),
    "poll": Command("server.cli.poll", "publish what the feed of a tracking service has that is new"),
    "notifications": Command("server.cli.notifications", "print your notifications, or follow them"),
    "agents": Command("server.cli.agents", "enrol, list and revoke the agents of your objects"),
    "match": Command("server.cli.match", "match regions in messages against constraints on regions, in files"),
    "replay": Command("server.cli.replay", "see what a subscription would have done with recorded fixes"),
    "agent": Command("server.cli.agent", "be the agent of an object: evaluate its fixes right here"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = next((word for word in arguments if not word.startswith("-")), None)
    command = COMMANDS.get(name or "")
    try:
        parser = _parser(arguments, name)
        args = parser.parse_args(arguments)
        if args.command is None:
            parser.print_help(sys.stderr)
            return 2
        code: int = args.run(args)
        if sys.stdout is not None:  # as it is when the caller has closed it
            sys.stdout.flush()
        return code
    except SystemExit as leaving:  # argparse, after it has said why
        return leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except FencepostError as error:
        return _fail(f"{error.sentence} {error.hint}".strip())
    except ModuleNotFoundError as missing:
        if command is None or _is_ours(missing.name or ""):
            raise
        package = (missing.name or "").partition(".")[0]
        return _fail(
            f"Install fencepost[{command.extra}] to use `fencepost {name}`: the package {package} is missing here."
        )
    except UnicodeEncodeError:
        return _fail("An argument has bytes in it that are not UTF-8.")
    except BrokenPipeError:
        # Whoever read our output has had enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}.")
    except KeyboardInterrupt:
        return _fail("Stopped.")


def _parser(arguments: list[str], name: str | None) -> argparse.ArgumentParser:
    """A parser that knows all commands by name, and the arguments of the one that is asked for."""
    parser = argparse.ArgumentParser(
        prog="fencepost", description="Tells applications when something that moves enters or leaves a place."
    )
    parser.add_argument("--version", action="version", version=f"fencepost {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for each, command in COMMANDS.items():
        sub = commands.add_parser(each, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}.")
        if each == name:
            module = importlib.import_module(command.module)
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OURS


def _version() -> str:
    try:
        return importlib.metadata.version("fencepost")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _fail(sentence: str) -> int:
    print(f"fencepost: {sentence}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
