"""`fencepost keys`: API keys, each shown once."""

import argparse

from server.cli.database import add_database_argument, now_ms, transaction
from server.cli.output import add_json_argument, explain, format_instant, print_items, print_json, print_secret
from server.store.accounts import add_key, find_user, list_keys, revoke_key

__all__ = ["add_arguments", "run"]

_DAY_MS = 86_400_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a key and show it, once")
    add.add_argument("user", metavar="USER")
    add.add_argument("--label", default="", help="what it is for, to know it again in the list")
    add.add_argument("--expires-days", type=float, metavar="DAYS", help="how long it is good for (default: for ever)")
    listing = actions.add_parser("list", help="list a user's keys, without their secrets")
    listing.add_argument("user", metavar="USER")
    revoke = actions.add_parser("revoke", help="end a key at once")
    revoke.add_argument("id", metavar="ID", help="what stands between the underscores of the key")
    for action in (add, listing, revoke):
        add_database_argument(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return {"add": _add, "list": _list, "revoke": _revoke}[args.action](args)


def _add(args: argparse.Namespace) -> int:
    now = now_ms()
    expires = None if args.expires_days is None else _expiry(args.expires_days, now)
    with transaction(args) as conn:
        user = find_user(conn, args.user)
        key = add_key(conn, user.user_id, label=args.label, expires=expires, now=now)
    item = {"user": user.name, "key": key, "label": args.label, "expires": format_instant(expires)}
    print_secret(key, item, f"A key of {user.name}, shown only now:", as_json=args.json)
    return 0


def _list(args: argparse.Namespace) -> int:
    with transaction(args) as conn:
        keys = list_keys(conn, find_user(conn, args.user).user_id)
    items = [
        {
            "id": key.key_id,
            "user": key.user,
            "label": key.label,
            "created": format_instant(key.created),
            "expires": format_instant(key.expires),
            "revoked": format_instant(key.revoked),
        }
        for key in keys
    ]
    print_items(items, ["id", "label", "created", "expires", "revoked"], as_json=args.json)
    return 0


def _revoke(args: argparse.Namespace) -> int:
    with transaction(args) as conn:
        revoke_key(conn, args.id, now=now_ms())
    if args.json:
        print_json({"id": args.id, "revoked": True})
    else:
        explain(f"The key {args.id} is revoked.")
    return 0


def _expiry(days: float, now: int) -> int:
    # What is no number of days, or more than can be written as a date, comes out as "expired" or "in 100 years".
    return now + round(min(days, 36_525.0) * _DAY_MS) if days > 0 else now
