"""`fencepost db`: the tables."""

import argparse

from server.cli.database import add_database_argument, database_errors, database_of
from server.cli.output import add_json_argument, print_json
from server.store.engine import REVISION, parse_database_url
from server.store.migrate import upgrade

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    to_head = actions.add_parser("upgrade", help="create the tables, or bring them to this version")
    add_database_argument(to_head)
    add_json_argument(to_head)


def run(args: argparse.Namespace) -> int:
    url = database_of(args)
    with database_errors():
        upgrade(url)
    where = parse_database_url(url).render_as_string(hide_password=True)
    if args.json:
        print_json({"database": where, "revision": REVISION})
    else:
        print(f"{where} has the tables of revision {REVISION}.")
    return 0
