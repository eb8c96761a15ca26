"""`fencepost users`: who there is. A new user gets a first key at once, because without one nothing can be done."""

import argparse

from server.cli.database import add_database_argument, now_ms, transaction
from server.cli.output import add_json_argument, explain, format_instant, print_items, print_json, print_secret
from server.store.accounts import add_key, add_user, list_users

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="add a user and show the user's first API key, once")
    add.add_argument("name", metavar="NAME", help="for example mike or foo@acme.com")
    add.add_argument("--admin", action="store_true", help="may define the zones of SYSTEM")
    add.add_argument("--no-key", action="store_true", help="make no key (see `fencepost keys add`)")
    listing = actions.add_parser("list", help="list all users")
    for action in (add, listing):
        add_database_argument(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return _add(args) if args.action == "add" else _list(args)


def _add(args: argparse.Namespace) -> int:
    now = now_ms()
    with transaction(args) as conn:
        user = add_user(conn, args.name, admin=args.admin, now=now)
        key = None if args.no_key else add_key(conn, user.user_id, label="first", now=now)
    item = {"name": user.name, "admin": user.is_admin, "key": key}
    said = f"Added {user.name}{', an administrator' if user.is_admin else ''}."
    if key is not None:
        print_secret(key, item, f"{said} This is the key, shown only now:", as_json=args.json)
    elif args.json:
        print_json(item)
    else:
        explain(said)
    return 0


def _list(args: argparse.Namespace) -> int:
    with transaction(args) as conn:
        users = list_users(conn)
    items = [{"name": user.name, "admin": user.is_admin, "created": format_instant(user.created)} for user in users]
    print_items(items, ["name", "admin", "created"], as_json=args.json)
    return 0
