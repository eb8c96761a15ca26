"""How much faster than a short-circuit loop is one message matched against 100,000 mixed filters?

    python -m benchmarks.mixed_filters --filters 100000 --json

Each filter has three constraints: half of them a region with one of the eight relations, a number and a string or
truth value; the others two numbers and a string or truth value. Messages have all attributes, or all but the region,
which leaves the second half to be matched. A third table has a region in every filter.

The peer is the loop that a good Python programmer writes: each test is a function made beforehand, numbers and
strings before regions, the next filter as soon as one fails, boxes before relations, and relations decided by the same
compiled code. On every message both must find the same, and on some the plain `matcher.constraints.matches` too.
Messages are distinct and each is timed once, each design in its own block, in CPU time of the thread.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import eq, ge, gt, le, lt, ne
from random import Random
from time import perf_counter, thread_time
from typing import Any

import msgspec

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import percentile, spread
from matcher.constraints import (
    BoolTest,
    Constraint,
    Filter,
    NumberTest,
    RegionTest,
    StringOp,
    StringTest,
    matches,
)
from matcher.engine import Engine
from matcher.engines.pairs import NAMES, relate_edges
from matcher.planar import PlanarRegion, from_rings
from matcher.selector.tree import CompareOp, Relation
from matcher.table.regions import edge_region

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "mixed_filters"
_UNIVERSE = 1000.0
_NUMBERS = ("wind", "rain", "level", "priority")
_WORDS = tuple(
    f"{kind}-{grade}" for kind in ("storm", "flood", "fire", "spill", "herd", "flight") for grade in range(8)
)
_SMALL = 10


class Options(msgspec.Struct, frozen=True):
    filters: int = 100_000
    messages: int = 150
    seed: int = 1

    @property
    def small(self) -> "Options":
        return msgspec.structs.replace(self, filters=max(1, self.filters // _SMALL))


def measure(options: Options, *, runs: int = 3, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The figures of the small size and of several seeds at full size."""
    say(f"Warming up with {options.small.filters} filters.")
    small = measure_once(options.small)
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {options.filters} filters.")
        large.append(measure_once(msgspec.structs.replace(options, seed=options.seed + run - 1)))
    return {"options": msgspec.structs.asdict(options), "runs": runs, "small": spread([small]), "large": spread(large)}


def measure_once(options: Options) -> dict[str, Any]:
    """Both tables, with and without a region in the message."""
    return {
        "half_with_a_region": _measure_table(options, 0.5, messages_without=True),
        "all_with_a_region": _measure_table(options, 1.0, messages_without=False),
    }


def _measure_table(options: Options, share: float, *, messages_without: bool) -> dict[str, Any]:
    rng = Random(options.seed)
    filters = [_draw_filter(rng, has_region=rng.random() < share) for _ in range(options.filters)]
    began = perf_counter()
    engine = Engine((number, (each,)) for number, each in enumerate(filters))
    build_s = perf_counter() - began
    loop = _Loop(filters)
    warm = [_draw_message(rng, has_region=bool(number % 2)) for number in range(4)]
    engine.match_many(warm)
    for message in warm:
        loop.match(message)
    found: dict[str, Any] = {"build_s": round(build_s, 2)}
    for has_region in (True, False) if messages_without else (True,):
        messages = [_draw_message(rng, has_region=has_region) for _ in range(options.messages)]
        answers, ours = _timed(engine.match, messages)
        expected, theirs = _timed(loop.match, messages)
        if answers != expected:
            raise BenchmarkFailed("The engine and the loop found different filters.")
        for message, answer in zip(messages[:2], answers, strict=False):
            if answer != {number for number, each in enumerate(filters) if matches((each,), message)}:
                raise BenchmarkFailed("The engine and the plain reference found different filters.")
        found["with_region" if has_region else "without_region"] = {
            "engine_us": round(sum(ours) / len(ours) * 1e6, 1),
            "engine_p99_us": round((percentile(ours, 0.99) or 0.0) * 1e6, 1),
            "loop_us": round(sum(theirs) / len(theirs) * 1e6, 1),
            "loop_to_engine": round(sum(theirs) / sum(ours), 1),
            "matches_per_message": round(sum(map(len, answers)) / len(answers), 1),
        }
    return found


def _timed(
    match: Callable[[dict[str, Any]], set[Any]], messages: Sequence[dict[str, Any]]
) -> tuple[list[Any], list[float]]:
    answers, seconds = [], []
    for message in messages:
        began = thread_time()
        answer = match(message)
        seconds.append(thread_time() - began)
        answers.append(answer)
    return answers, seconds


# --- filters and messages --------------------------------------------------------------------------------


def _draw_filter(rng: Random, *, has_region: bool) -> Filter:
    drawn = [_draw_number(rng, name) for name in rng.sample(_NUMBERS, 1 if has_region else 2)]
    drawn.append(_draw_word_or_flag(rng))
    if has_region:
        region = _blob(rng, rng.randrange(4, 13), _UNIVERSE * 10 ** rng.uniform(-3, -1.5))
        drawn.append(Constraint("area", RegionTest(rng.choice(list(Relation)), region)))
    return tuple(drawn)


def _draw_number(rng: Random, name: str) -> Constraint:
    """Alarms above a level that is seldom reached, and some below or at one."""
    if name == "priority":
        return Constraint(name, NumberTest(rng.choice((CompareOp.EQ, CompareOp.GE, CompareOp.NE)), rng.randrange(10)))
    if rng.random() < 0.8:
        return Constraint(
            name, NumberTest(rng.choice((CompareOp.GT, CompareOp.GE)), round(100 * rng.betavariate(5, 2), 2))
        )
    return Constraint(name, NumberTest(rng.choice((CompareOp.LT, CompareOp.LE)), round(100 * rng.betavariate(2, 5), 2)))


def _draw_word_or_flag(rng: Random) -> Constraint:
    kind = rng.random()
    word = rng.choice(_WORDS)
    if kind < 0.3:
        return Constraint("urgent", BoolTest(rng.random() < 0.5))
    if kind < 0.7:
        return Constraint("warning", StringTest(StringOp.EQ, word))
    if kind < 0.9:
        return Constraint("warning", StringTest(StringOp.PREFIX, word[: rng.randrange(3, len(word))]))
    return Constraint("warning", StringTest(StringOp.NE, word))


def _draw_message(rng: Random, *, has_region: bool) -> dict[str, Any]:
    message: dict[str, Any] = {name: round(100 * rng.betavariate(2, 3), 2) for name in _NUMBERS}
    message |= {"priority": rng.randrange(10), "warning": rng.choice(_WORDS), "urgent": rng.random() < 0.3}
    if has_region:
        size = _UNIVERSE * math.sqrt(rng.uniform(0.01, 0.25)) / 2
        message["area"] = _blob(rng, rng.randrange(10, 40), size)
    return message


def _blob(rng: Random, count: int, radius: float) -> PlanarRegion:
    """A region that is seen whole from its middle, somewhere in the universe."""
    x, y = rng.uniform(0, _UNIVERSE), rng.uniform(0, _UNIVERSE)
    ring = []
    for number in range(count):
        angle = 2 * math.pi * (number + rng.uniform(0, 0.8)) / count
        length = radius * rng.uniform(0.6, 1)
        ring.append((x + length * math.cos(angle), y + length * math.sin(angle)))
    return from_rings([ring])


# --- the peer --------------------------------------------------------------------------------------------

_Check = Callable[[Any], bool]

# `partial(gt, bound)(value)` is bound > value.
_MIRRORED: dict[CompareOp, Callable[[Any, Any], Any]] = {
    CompareOp.EQ: eq,
    CompareOp.NE: ne,
    CompareOp.LT: gt,
    CompareOp.LE: ge,
    CompareOp.GT: lt,
    CompareOp.GE: le,
}


class _Loop:
    """Types are not looked at: here an attribute has one type only, which favours the loop."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._edges: dict[int, Any] = {}
        self._filters = [
            (number, tuple((each.attribute, self._check(each)) for each in constraints))
            for number, constraints in enumerate(filters)
        ]

    def match(self, message: dict[str, Any]) -> set[int]:
        found = set()
        get = message.get
        region = get("area")
        if region is not None:
            message = {**message, "area": (edge_region(region), *region.box)}
            get = message.get
        for number, tests in self._filters:
            for name, check in tests:
                value = get(name)
                if value is None or not check(value):
                    break
            else:
                found.add(number)
        return found

    def _check(self, constraint: Constraint) -> _Check:
        test = constraint.test
        if isinstance(test, NumberTest):
            return partial(_MIRRORED[test.op], test.value)
        if isinstance(test, BoolTest):
            return partial(eq, test.value)
        if isinstance(test, StringTest):
            if test.op is StringOp.PREFIX:
                prefix = test.value
                return lambda value: value.startswith(prefix)
            return partial(eq if test.op is StringOp.EQ else ne, test.value)
        if isinstance(test, RegionTest):
            return _region_check(test)
        raise TypeError(test)


def _region_check(test: RegionTest) -> _Check:
    own, code = edge_region(test.region), NAMES.index(test.relation)
    west, south, east, north = test.region.box
    if_apart = test.relation is Relation.DISJOINT

    def check(value: Any) -> bool:
        region, x0, y0, x1, y1 = value
        if x1 < west or east < x0 or y1 < south or north < y0:
            return if_apart
        found: int = relate_edges(region.edges, region.rings, region.box, own.edges, own.rings, own.box)
        return found == code

    return check


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--filters", type=positive_int, default=100_000, metavar="N")
    parser.add_argument("--messages", type=positive_int, default=150, metavar="M", help="of each kind (default: 150)")
    parser.add_argument("--small", action="store_true", help="a tenth of the filters, 20 messages, one run")
    args = parser.parse_args(argv)
    options, runs = Options(args.filters, args.messages, args.seed), args.runs
    if args.small:
        options, runs = msgspec.structs.replace(options.small, messages=min(20, args.messages)), 1
    return measured(NAME, args, lambda say: measure(options, runs=runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
