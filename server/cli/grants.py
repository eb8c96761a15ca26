"""`fencepost grants`: who may know what about your objects. Without a grant, nobody."""

import argparse

from server.cli.http import add_server_arguments, connect
from server.cli.output import add_json_argument, explain, print_items, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="let somebody know; replaces what you granted to them before")
    add.add_argument("--who", required=True, metavar="NAME", help="the user who may know")
    add.add_argument(
        "--operations",
        required=True,
        type=_words,
        metavar="LIST",
        help="for example enter,leave,position",
    )
    listing = actions.add_parser("list", help="list your grants")
    remove = actions.add_parser("remove", help="take a grant back; nothing more is delivered from then on")
    remove.add_argument("id", metavar="ID", type=int)
    for action in (add, listing, remove):
        add_server_arguments(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return {"add": _add, "list": _list, "remove": _remove}[args.action](args)


def _add(args: argparse.Namespace) -> int:
    grant = connect(args).call("POST", "/v1/privacy/grants", body={"who": args.who, "operations": args.operations})
    if args.json:
        print_json(grant)
    else:
        explain(f"Grant {grant['id']}: {grant['who']} may know {', '.join(grant['operations'])}.")
    return 0


def _list(args: argparse.Namespace) -> int:
    grants = connect(args).items("/v1/privacy/grants")
    print_items(grants, ["id", "who", "operations", "created"], as_json=args.json)
    return 0


def _remove(args: argparse.Namespace) -> int:
    connect(args).call("DELETE", f"/v1/privacy/grants/{args.id}")
    if args.json:
        print_json({"id": args.id, "removed": True})
    else:
        explain(f"Grant {args.id} is gone.")
    return 0


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
