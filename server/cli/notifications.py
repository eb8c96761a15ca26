"""`fencepost notifications`: what you were told, and with `--follow` what you are being told."""

import argparse
from typing import Any

from server.cli.http import add_server_arguments, connect
from server.cli.output import add_json_argument, print_json

__all__ = ["add_arguments", "run"]

_PAGE = 500
_WAIT_S = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", type=int, default=0, metavar="N", help="only those behind this offset (default: 0)")
    parser.add_argument("--follow", action="store_true", help="go on, and print each as it comes")
    add_server_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    client = connect(args)
    after = args.after
    wait_s = _WAIT_S if args.follow else None
    try:
        while True:
            page = client.call("GET", "/v1/notifications", query={"after": after, "limit": _PAGE, "wait_s": wait_s})
            for notification in page["notifications"]:
                _print(notification, as_json=args.json)
            if not args.follow and not page["notifications"]:
                return 0
            after = page["next"]
    except KeyboardInterrupt:
        return 0  # the way to end --follow


def _print(notification: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(notification)
    elif notification.get("withdrawn"):
        print(f"{notification['offset']}  withdrawn", flush=True)
    else:
        shown = (notification.get(name) for name in ("offset", "ts", "oid", "mode", "target", "subscription"))
        print("  ".join("-" if value is None else str(value) for value in shown), flush=True)
