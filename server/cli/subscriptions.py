"""`fencepost subscriptions`: what you want to be told."""

import argparse
import json
from typing import Any

from server.cli.http import add_server_arguments, connect, segment
from server.cli.output import add_json_argument, explain, print_items, print_json

__all__ = ["add_arguments", "run"]

_OPTIONS = (
    "tos", "modes", "dwell_s", "hysteresis_m", "unc_factor", "crossing", "stale_s", "expires", "purpose", "paused",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    put = actions.add_parser("put", help="create a subscription, or change it")
    put.add_argument("id", metavar="ID", help="your name for it")
    put.add_argument("selector", metavar="SELECTOR", help='for example "(mike) within (SYSTEM.Xidan)"')
    put.add_argument("--tos", choices=("once", "every", "first"), help="the type of service (default: once)")
    put.add_argument("--modes", type=_words, metavar="LIST", help="enter, leave or both: enter,leave")
    put.add_argument("--dwell-s", type=float, metavar="S", help="seconds inside before an enter is told")
    put.add_argument(
        "--hysteresis-m", type=float, metavar="M", help="metres around the boundary in which nothing changes"
    )
    put.add_argument("--unc-factor", type=float, metavar="K", help="widen that by so many times a fix's unc")
    put.add_argument(
        "--crossing", action="store_true", default=None, help="tell also what was passed through between two fixes"
    )
    put.add_argument(
        "--stale-s", type=float, metavar="S", help="seconds after which a place says nothing of a distance"
    )
    put.add_argument("--expires", metavar="TIME", help="when it ends, for example 2030-01-31T12:00:00Z")
    put.add_argument("--purpose", help="what you want to know it for")
    put.add_argument("--paused", action="store_true", default=None, help="keep it, but tell nothing for now")
    listing = actions.add_parser("list", help="list your subscriptions")
    why = actions.add_parser("explain", help="say who evaluates it, object by object")
    why.add_argument("id", metavar="ID")
    why.add_argument("--event", type=_json_object, metavar="JSON", help="say what this event would do, and why")
    state = actions.add_parser("state", help="say who is inside now, and since when")
    state.add_argument("id", metavar="ID")
    delete = actions.add_parser("delete", help="delete a subscription")
    delete.add_argument("id", metavar="ID")
    for action in (put, listing, why, state, delete):
        add_server_arguments(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    actions = {"put": _put, "list": _list, "explain": _explain, "state": _state, "delete": _delete}
    return actions[args.action](args)


def _put(args: argparse.Namespace) -> int:
    body: dict[str, Any] = {"selector": args.selector}
    body.update({name: value for name in _OPTIONS if (value := getattr(args, name)) is not None})
    subscription = connect(args).call("PUT", f"/v1/subscriptions/{segment(args.id)}", body=body)
    if args.json:
        print_json(subscription)
    else:
        explain(f"Subscription {args.id}: {args.selector}")
    return 0


def _list(args: argparse.Namespace) -> int:
    subscriptions = connect(args).items("/v1/subscriptions")
    print_items(subscriptions, ["id", "tos", "modes", "dwell_s", "paused", "selector"], as_json=args.json)
    return 0


def _explain(args: argparse.Namespace) -> int:
    path = f"/v1/subscriptions/{segment(args.id)}/explain"
    if args.event is not None:
        explanation = connect(args).call("POST", path, body=args.event)
        rows, columns = explanation["verdicts"], ["target", "fires", "reason", "modes", "parts", "until"]
    else:
        explanation = connect(args).call("GET", path)
        rows, columns = explanation["bindings"], ["oid", "target", "status", "evaluator", "reason"]
    if args.json:
        print_json(explanation)
        return 0
    print_items(rows, columns, as_json=False)
    for missing in explanation.get("missing", ()):
        explain(f"{missing.get('oid') or missing.get('zone')}: {missing['reason']}")
    if explanation.get("next"):
        explain("There are more; --json has the cursor to go on with.")
    return 0


def _state(args: argparse.Namespace) -> int:
    items = connect(args).items(f"/v1/subscriptions/{segment(args.id)}/state")
    print_items(items, ["oid", "target", "since", "visit"], as_json=args.json)
    return 0


def _delete(args: argparse.Namespace) -> int:
    connect(args).call("DELETE", f"/v1/subscriptions/{segment(args.id)}")
    if args.json:
        print_json({"id": args.id, "deleted": True})
    else:
        explain(f"Deleted {args.id}.")
    return 0


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(
            'write a JSON object, for example {"ts": 1795000000000, "loc": [116.37, 39.91]}'
        )
    return value
