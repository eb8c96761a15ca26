"""`fencepost agents`: which device evaluates for which of your objects."""

import argparse

from server.cli.http import add_server_arguments, connect
from server.cli.output import add_json_argument, explain, print_items, print_json, print_secret

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    enrol = actions.add_parser("enrol", help="print a one-use token with which a device becomes the object's agent")
    enrol.add_argument("oid", metavar="OID", help="your user name, or yours/name: acme/van7")
    listing = actions.add_parser("list", help="list the agents of your objects")
    revoke = actions.add_parser("revoke", help="end an agent; the server evaluates from then on")
    revoke.add_argument("id", metavar="ID", type=int)
    for action in (enrol, listing, revoke):
        add_server_arguments(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return {"enrol": _enrol, "list": _list, "revoke": _revoke}[args.action](args)


def _enrol(args: argparse.Namespace) -> int:
    invitation = connect(args).call("POST", "/v1/agents", body={"oid": args.oid})
    explanation = f"The device that redeems this token first becomes the agent of {args.oid}:"
    print_secret(invitation["token"], invitation, explanation, as_json=args.json)
    return 0


def _list(args: argparse.Namespace) -> int:
    agents = connect(args).items("/v1/agents")
    print_items(agents, ["id", "oid", "status", "lease_until", "last_seen"], as_json=args.json)
    return 0


def _revoke(args: argparse.Namespace) -> int:
    connect(args).call("DELETE", f"/v1/agents/{args.id}")
    if args.json:
        print_json({"id": args.id, "revoked": True})
    else:
        explain(f"Agent {args.id} is revoked.")
    return 0
