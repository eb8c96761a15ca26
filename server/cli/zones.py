"""`fencepost zones`: places, in and out as GeoJSON."""

import argparse
import json
from typing import Any

from server.cli.files import FileUnreadable, read_file
from server.cli.http import add_server_arguments, connect, segment
from server.cli.output import add_json_argument, explain, print_items, print_json
from zones.geojson import feature_to_geojson, shape_from_geojson

__all__ = ["add_arguments", "run"]

_IMPORT_TIMEOUT_S = 900.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    importing = actions.add_parser("import", help="make zones of a GeoJSON file, all of them or none")
    importing.add_argument("file", metavar="FILE", help="a FeatureCollection, .gz too; - reads standard input")
    importing.add_argument("--owner", required=True, help="whose zones they are: your name, or SYSTEM")
    importing.add_argument("--name-from", metavar="FIELD", help="the property with their names (default: the id)")
    exporting = actions.add_parser("export", help="print zones as a GeoJSON FeatureCollection")
    listing = actions.add_parser("list", help="list the zones you may see")
    deleting = actions.add_parser("delete", help="delete a zone; its name may be given again, to a new one")
    deleting.add_argument("name", metavar="OWNER.NAME")
    for action in (exporting, listing):
        action.add_argument("--owner", help="only the zones of this owner")
    for action in (importing, exporting, listing, deleting):
        add_server_arguments(action)
        add_json_argument(action)


def run(args: argparse.Namespace) -> int:
    return {"import": _import, "export": _export, "list": _list, "delete": _delete}[args.action](args)


def _import(args: argparse.Namespace) -> int:
    client = connect(args)
    answer = client.call(
        "POST",
        "/v1/zones:import",
        query={"owner": args.owner, "name_from": args.name_from},
        content=_read(args.file),
        content_type="application/geo+json",
        timeout_s=_IMPORT_TIMEOUT_S,
    )
    if args.json:
        print_json(answer)
    else:
        explain(f"Imported {answer['imported']} zones of {args.owner}.")
        for old, new in answer.get("renamed", {}).items():
            explain(f"'{old}' is called {new}, because a zone's own name has no dot.")
    return 0


def _export(args: argparse.Namespace) -> int:
    features = [_feature(zone, args.owner) for zone in connect(args).items("/v1/zones", query={"owner": args.owner})]
    print_json({"type": "FeatureCollection", "features": features})
    return 0


def _list(args: argparse.Namespace) -> int:
    zones = connect(args).items("/v1/zones", query={"owner": args.owner})
    print_items(
        (zone if args.json else {**zone, "shape": zone["shape"]["type"]} for zone in zones),
        ["name", "shape", "version", "tags", "on_devices"],
        as_json=args.json,
    )
    return 0


def _delete(args: argparse.Namespace) -> int:
    connect(args).call("DELETE", f"/v1/zones/{segment(args.name)}")
    if args.json:
        print_json({"name": args.name, "deleted": True})
    else:
        explain(f"Deleted {args.name}.")
    return 0


def _feature(zone: dict[str, Any], owner: str | None) -> dict[str, Any]:
    # The zones of one owner can be imported again as they are; of several, the owner has to stay in the name.
    name = zone["name"] if owner is None else zone["name"].rpartition(".")[2]
    return feature_to_geojson(name, shape_from_geojson(zone["shape"]), zone.get("properties") or {})


def _read(file: str) -> bytes:
    text = read_file(file)
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        raise FileUnreadable(f"{file} is not JSON.", hint="Give a GeoJSON FeatureCollection in UTF-8.") from None
    return text
