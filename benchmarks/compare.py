"""Two results of the same question, figure by figure.

    python -m benchmarks.compare OLD.json NEW.json

A figure has changed if the two spreads do not touch; whether that is better or worse depends on the figure.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["Change", "compare", "main"]


class Change(msgspec.Struct, frozen=True):
    """One figure in both results. `ratio` is new to old; None where one of them is missing or zero."""

    figure: str
    old: float | None
    new: float | None
    ratio: float | None
    differs: bool


class _Spread(msgspec.Struct, frozen=True):
    median: float
    min: float
    max: float


class ResultUnreadable(Exception):
    """The file is not a result of a benchmark."""


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    """Every figure that is in one of the results, in the order of the older one."""
    before, after = dict(_figures(old["figures"])), dict(_figures(new["figures"]))
    return [_change(name, before.get(name), after.get(name)) for name in dict.fromkeys([*before, *after])]


def _change(name: str, old: _Spread | None, new: _Spread | None) -> Change:
    if old is None or new is None:
        known = [None if each is None else each.median for each in (old, new)]
        return Change(name, known[0], known[1], None, differs=True)
    ratio = new.median / old.median if old.median else None
    return Change(name, old.median, new.median, ratio, differs=new.min > old.max or new.max < old.min)


def _figures(node: Any, name: str = "") -> Iterator[tuple[str, _Spread]]:
    if isinstance(node, dict):
        if set(node) == {"median", "min", "max"}:
            yield name, msgspec.convert(node, _Spread)
            return
        for key, value in node.items():
            yield from _figures(value, f"{name}.{key}" if name else key)
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield name, _Spread(node, node, node)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="Compare two results.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--json", action="store_true", help="print JSON, one figure a line")
    args = parser.parse_args(argv)
    try:
        old, new = _read(args.old), _read(args.new)
    except ResultUnreadable as error:
        print(error, file=sys.stderr)
        return 1
    if old["name"] != new["name"]:
        print(f"These answer different questions: {old['name']} and {new['name']}.", file=sys.stderr)
        return 1
    for part in ("machine", "python", "libraries"):
        if old.get(part) != new.get(part):
            print(f"They were taken with another {part}: {old.get(part)} and {new.get(part)}.", file=sys.stderr)
    changes = compare(old, new)
    width = max((len(change.figure) for change in changes), default=0)
    for change in changes:
        if args.json:
            print(msgspec.json.encode(change).decode())
        else:
            ratio = "" if change.ratio is None else f"x {change.ratio:.2f}"
            mark = "changed" if change.differs else ""
            values = f"{_shown(change.old):>12}  {_shown(change.new):>12}  {ratio:>9}"
            print(f"{change.figure:<{width}}  {values}  {mark}".rstrip())
    return 0


def _read(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultUnreadable(f"{path} can't be read: {error}.") from error
    if not isinstance(result, dict) or "name" not in result or not isinstance(result.get("figures"), dict):
        raise ResultUnreadable(f"{path} is not a result of a benchmark.")
    return result


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


if __name__ == "__main__":
    sys.exit(main())
