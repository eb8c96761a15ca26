"""`fencepost match`: which constraints on regions hold for which messages, from files.

Everything is read and checked before the first line of output, so a run prints all of its results or none.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, TypeVar

from matcher.approximate import MAX_POINTS, Density
from matcher.planar import from_rings
from matcher.region_features import (
    FeatureId,
    RegionConstraint,
    RegionMessage,
    constraints_from_geojson,
    messages_from_geojson,
    named,
)
from matcher.region_matcher import Approximate, Index, RegionMatcher, box_around, require_simple
from matcher.selector.tree import Relation
from server.cli.files import read_file
from server.cli.output import add_json_argument, explain, print_json
from server.cli.progress import Progress
from zones.errors import CallerError

__all__ = ["DEFAULT_DENSITY", "add_arguments", "run"]

DEFAULT_DENSITY = 1000.0

_SHOWN = 8  # matches of a message on a line for people
_SAY_AFTER_S = 1.5
T = TypeVar("T")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'Print, for each message, the constraints that hold for it, read "message RELATION constraint". Regions are '
        "Polygons and MultiPolygons in a plane, their coordinates as given; a constraint has its relation in the "
        f"property `relation`: {', '.join(Relation)}."
    )
    for name, what in (
        ("--constraints", "a GeoJSON FeatureCollection, .gz too; - is stdin"),
        ("--messages", "the same; the ids of features, else their places from 0, name both"),
    ):
        parser.add_argument(name, required=True, metavar="FILE", help=what)
    parser.add_argument("--stats", action="store_true", help="also print the time of each match in microseconds")
    parser.add_argument(
        "--index",
        choices=[str(index) for index in Index],
        default=Index.TREE,
        help="tree: compiled (default); crtree: as published; linear: every constraint is evaluated",
    )
    parser.add_argument(
        "--evaluator",
        choices=("exact", "approximate"),
        default="exact",
        help="approximate is Algorithm 1 of the publication, for regions without holes and parts (default: exact)",
    )
    parser.add_argument(
        "--density",
        type=_density,
        metavar="N",
        help="of the approximate evaluator: points, besides corners, on so much boundary as the box around all regions "
        f"is wide and high together (default: {DEFAULT_DENSITY:.0f})",
    )
    parser.add_argument(
        "--halo",
        action=argparse.BooleanOptionalAction,
        help="of the approximate evaluator: take for touching what is nearer than half of the distance between points "
        "(default: yes)",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    if problem := _contradiction(args):
        explain(f"fencepost: {problem}")
        return 2
    constraints = _read(args.constraints, constraints_from_geojson)
    messages = _read(args.messages, messages_from_geojson)
    approximate = _approximate(args, constraints, messages)
    index = Index(args.index)
    with _said_if_long("Compiling the code that matches; once compiled it is kept for the next time."):
        _warm_up(index, approximate)
    with Progress("Preparing", len(constraints)) as progress:
        matcher = RegionMatcher(constraints, index, approximate, step=progress.at)
    _print_all(matcher, messages, as_json=args.json, with_times=args.stats)
    return 0


def _contradiction(args: argparse.Namespace) -> str | None:
    if args.evaluator == "exact":
        if args.density is not None:
            return "--density is for --evaluator approximate; the exact evaluator lays no points."
        if args.halo is not None:
            name = "--halo" if args.halo else "--no-halo"
            return f"{name} is for --evaluator approximate; the exact evaluator has no halo."
    if args.constraints == args.messages == "-":
        return "Only one of --constraints and --messages can be read from standard input."
    return None


def _read(file: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(read_file(file))
    except CallerError as error:
        raise error if error.sentence.startswith(file) else named(error, file) from None


def _approximate(
    args: argparse.Namespace, constraints: Sequence[RegionConstraint], messages: Sequence[RegionMessage]
) -> Approximate | None:
    if args.evaluator == "exact":
        return None
    for file, features in ((args.constraints, constraints), (args.messages, messages)):
        try:
            require_simple(features)
        except CallerError as error:
            raise named(error, file) from None
    # Without any region there is nothing to evaluate, and any universe will do.
    universe = box_around(constraints, messages) or (0.0, 0.0, 1.0, 1.0)
    points = DEFAULT_DENSITY if args.density is None else args.density
    return Approximate(Density(points, universe), halo=args.halo is not False)


def _warm_up(index: Index, approximate: Approximate | None) -> None:
    """Match once, so that the first message's time is the time of a match and not that of a compiler."""
    small, large = (from_rings([[(0.0, 0.0), (size, 0.0), (size, size), (0.0, size)]]) for size in (1.0, 2.0))
    every = [RegionConstraint(place, relation, large) for place, relation in enumerate(Relation)]
    RegionMatcher(every, index, approximate).match(small)


@contextmanager
def _said_if_long(sentence: str) -> Iterator[None]:
    timer = threading.Timer(_SAY_AFTER_S, explain, [sentence])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# --- output ----------------------------------------------------------------------------------------


def _print_all(matcher: RegionMatcher, messages: Sequence[RegionMessage], *, as_json: bool, with_times: bool) -> None:
    times, total = [], 0
    shares_terminal = sys.stdout is not None and sys.stdout.isatty()
    with Progress("Matching", len(messages)) as progress:
        for count, message in enumerate(messages):
            progress.at(count)
            start = time.perf_counter_ns()
            places = matcher.search(message.region)
            us = round((time.perf_counter_ns() - start) / 1000, 1)
            matches = matcher.ids(places)
            times.append(us)
            total += len(matches)
            if shares_terminal:
                progress.clear()
            if as_json:
                item: dict[str, Any] = {"message": message.id, "matches": matches}
                print_json(item | {"us": us} if with_times else item)
            else:
                print(_line(message.id, matches, us if with_times else None))
    if not as_json:
        explain(_summary(len(messages), len(matcher), total))
        if with_times and times:
            explain(f"Time of a match: median {median(times):,.1f} µs, longest {max(times):,.1f} µs.")


def _line(message: FeatureId, matches: Sequence[FeatureId], us: float | None) -> str:
    ids = ", ".join(map(_name, matches[:_SHOWN])) or "none"
    more = f" and {len(matches) - _SHOWN:,} more" if len(matches) > _SHOWN else ""
    timed = "" if us is None else f"  ({us:,.1f} µs)"
    return f"{_name(message)}: {ids}{more}{timed}"


def _name(id: FeatureId) -> str:
    """As it is, unless it would break the line."""
    return id if isinstance(id, str) and id.isprintable() and id else json.dumps(id)


def _summary(messages: int, constraints: int, matches: int) -> str:
    return (
        f"{_counted(messages, 'message')} against {_counted(constraints, 'constraint')}: "
        f"{matches:,} {'match' if matches == 1 else 'matches'}."
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _density(text: str) -> float:
    try:
        points = float(text)
    except ValueError:
        points = -1.0
    if not 0 <= points <= MAX_POINTS:
        raise argparse.ArgumentTypeError(f"{text} is not a number of points from 0 to {MAX_POINTS:,}")
    return points
