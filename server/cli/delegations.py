"""`fencepost delegations`: who may say where your objects are. Without one, only you."""

import argparse

from server.cli.http import add_server_arguments, connect, segment
from server.cli.output import add_json_argument, explain, print_items, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    put = actions.add_parser("put", help="let a location provider publish; replaces what you delegated to it before")
    put.add_argument("provider", metavar="NAME", help="the user who may publish")
    which = put.add_mutually_exclusive_group(required=True)
    which.add_argument("--oid", action="append", dest="oids", metavar="OID", help="this object; may be repeated")
    which.add_argument("--all", action="store_true", help="all of your objects, those to come included")
    listing = actions.add_parser("list", help="list your delegations")
    remove = actions.add_parser(
        "remove", help="take a delegation back; what the provider sends is refused from then on"
    )
    remove.add_argument("provider", metavar="NAME")
    for action in (put, listing, remove):
        add_server_arguments(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return {"put": _put, "list": _list, "remove": _remove}[args.action](args)


def _put(args: argparse.Namespace) -> int:
    body = {} if args.all else {"oids": args.oids}
    made = connect(args).call("PUT", f"/v1/privacy/delegations/{segment(args.provider)}", body=body)
    if args.json:
        print_json(made)
    else:
        which = "all of your objects" if made["oids"] is None else ", ".join(made["oids"])
        explain(f"{made['provider']} may publish for {which}.")
    return 0


def _list(args: argparse.Namespace) -> int:
    items = connect(args).items("/v1/privacy/delegations")
    if not args.json:
        items = ({**item, "oids": item["oids"] or "all"} for item in items)
    print_items(items, ["provider", "oids", "created"], as_json=args.json)
    return 0


def _remove(args: argparse.Namespace) -> int:
    connect(args).call("DELETE", f"/v1/privacy/delegations/{segment(args.provider)}")
    if args.json:
        print_json({"provider": args.provider, "removed": True})
    else:
        explain(f"{args.provider} may no longer publish for you.")
    return 0
