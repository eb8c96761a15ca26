"""`fencepost publish`: say where an object is that has no agent, once or from a file."""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from server.cli.http import add_server_arguments, connect
from server.cli.output import add_json_argument, explain, print_json
from zones.errors import CallerError

__all__ = ["EventUnreadable", "add_arguments", "run"]

_BATCH = 1000


class EventUnreadable(CallerError):
    code = "event_unreadable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "event",
        nargs="?",
        metavar="EVENT",
        help='JSON: \'{"ts": "2026-11-18T07:00:00Z", "loc": [116.375, 39.905]}\'; without oid it is about you',
    )
    given.add_argument("--file", metavar="FILE", help="one JSON event a line; - is stdin")
    add_server_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    client = connect(args)
    total = {"accepted": 0, "late": 0}
    for batch in _batches(args):
        answer = client.call("POST", "/v1/events", body=batch)
        total = {name: count + answer[name] for name, count in total.items()}
    if args.json:
        print_json(total)
    else:
        late = f"; {total['late']} were not newer than what was known, and changed nothing" if total["late"] else ""
        explain(f"Published {total['accepted']} events{late}.")
    return 0


def _batches(args: argparse.Namespace) -> Iterator[list[Any]]:
    if args.file is None:
        yield [_parsed(args.event, "The event")]
        return
    name, source = ("stdin", sys.stdin.fileno()) if args.file == "-" else (args.file, args.file)
    with open(source, encoding="utf-8", errors="surrogateescape", closefd=source is args.file) as file:
        batch = []
        for number, line in enumerate(file, 1):
            if line.strip():
                batch.append(_parsed(line, f"Line {number} of {name}"))
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def _parsed(text: str, what: str) -> Any:
    try:
        text.encode()  # what is not UTF-8 came in as surrogates
        return json.loads(text)
    except (ValueError, RecursionError):
        raise EventUnreadable(f"{what} is not JSON.", hint="Write one JSON object, on one line.") from None
