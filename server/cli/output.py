"""How commands print results: lines for people, or with `--json` one JSON object a line and nothing else.

What a script wants to catch (a key, a token) is alone on stdout; explanations go to stderr.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

__all__ = ["add_json_argument", "explain", "format_instant", "print_items", "print_json", "print_secret"]


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")


def print_items(items: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """All items, whole as JSON, or these columns of them in line."""
    if as_json:
        for item in items:
            print_json(item)
        return
    rows = [[_shown(item.get(column)) for column in columns] for item in items]
    if not rows:
        explain("There are none.")
        return
    table = [[column.replace("_", " ") for column in columns], *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(columns))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_json(item: Any) -> None:
    # Flushed, because somebody may be following line by line.
    print(json.dumps(item, ensure_ascii=False, separators=(",", ":")), flush=True)


def print_secret(secret: str, item: Mapping[str, Any], explanation: str, *, as_json: bool) -> None:
    """Something that is shown once."""
    if as_json:
        print_json(item)
    else:
        explain(explanation)
        print(secret)


def explain(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def format_instant(instant: int | None) -> str | None:
    """RFC 3339 with milliseconds in UTC."""
    if instant is None:
        return None
    moment = datetime.fromtimestamp(instant // 1000, UTC).replace(microsecond=instant % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(_shown, value)) or "-"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
