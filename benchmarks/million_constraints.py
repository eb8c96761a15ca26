"""Do a million constraints fit in 4 GB, and does the time of a match grow with what the message touches, not with them?

    python -m benchmarks.million_constraints --json

Regions of 20 corners on average lie in a universe that grows with their number, so a message of some size touches as
many constraints in a small table as in a large one. First the table grows and the message stays, then the other way
round with the largest table. All relations but `disjoint` occur: an eighth of the table would be the answer otherwise,
and writing it down most of the time.

Each table is made in a process of its own, whose peak of resident memory counts, the making and the interpreter
included. `engine` is `Engine.match`, which has sets with a bit for each filter besides, so that a part of it does grow
with the table. `tree` is the constraint index alone. Both must find the same for every message, and
for some what the plain relation finds of all constraints whose boxes meet the message's. Times are CPU time of the
thread for distinct messages, each once.
"""

import json
import math
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from time import perf_counter, thread_time
from typing import Any

import msgspec
import numpy as np

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import spread
from matcher.constraints import Constraint, RegionTest
from matcher.engine import Engine
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import DISJOINT, NAMES
from matcher.engines.regions import EdgeRegions
from matcher.planar import PlanarRegion, from_rings
from matcher.relations import relate
from matcher.selector.tree import Relation
from matcher.table.regions import edge_region

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_table"]

NAME = "million_constraints"
_RADIUS = 0.6  # of a region; there is one for each unit of the universe
_MESSAGE_RADIUS = 4.0
_RADII = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_CODES = tuple(code for code in range(8) if code != DISJOINT)
_WARM = 5
_SMALL = 100


class Options(msgspec.Struct, frozen=True):
    largest: int = 1_000_000
    messages: int = 150  # of each size
    checked: int = 10  # of them, against the plain relation
    seed: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(max(1, self.largest // share) for share in (100, 32, 10, 3, 1))


def measure(options: Options, *, runs: int = 2, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The figures of all sizes of several seeds, each table in a process of its own."""
    found = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with up to {options.largest} constraints.")
        seeded = msgspec.structs.replace(options, seed=options.seed + run - 1)
        tables = {str(size): _in_a_process(seeded, size) for size in options.sizes}
        found.append(
            {
                "peak_gib": tables[str(options.largest)]["peak_gib"],
                "by_constraints": {
                    size: {"build_s": table["build_s"], "peak_gib": table["peak_gib"], **table["by_radius"]["4"]}
                    for size, table in tables.items()
                },
                "by_radius": tables[str(options.largest)]["by_radius"],
            }
        )
    return {"options": msgspec.structs.asdict(options), "runs": runs, **spread(found)}


def _in_a_process(options: Options, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.million_constraints", "--table", str(size)]
    command += ["--messages", str(options.messages), "--checked", str(options.checked), "--seed", str(options.seed)]
    command += ["--largest", str(options.largest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkFailed(done.stderr.strip())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# --- one table -------------------------------------------------------------------------------------------


def measure_table(options: Options, size: int) -> dict[str, Any]:
    """The figures of one table, in this process. The tree is made after the memory was looked at."""
    began = perf_counter()
    engine = Engine(
        (number, [[Constraint("area", RegionTest(Relation(NAMES[_code(options.seed, number)]), region))]])
        for number, region in enumerate(_regions(options.seed, size))
    )
    build_s = perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    regions = EdgeRegions.of([edge_region(region) for region in _regions(options.seed, size)])
    codes = np.array([_code(options.seed, number) for number in range(size)], np.int8)
    tree = PackedTree(np.arange(size), codes, regions)
    rng = Random(-options.seed)
    by_radius = {}
    for radius in _RADII:
        messages = [_blob(rng, math.sqrt(size), radius) for _ in range(_WARM + options.messages)]
        answers, engine_s = _timed(lambda message: engine.match({"area": message}), messages)
        found, tree_s = _timed(lambda message: set(tree.search(edge_region(message)).tolist()), messages)
        if answers != found:
            raise BenchmarkFailed("The engine and the tree found different constraints.")
        touched = [_touched(regions.boxes, message) for message in messages[_WARM:]]
        for message, near, answer in list(zip(messages[_WARM:], touched, answers, strict=True))[: options.checked]:
            expected = {
                number
                for number in near.tolist()
                if relate(message, _region(options.seed, size, number)) == NAMES[codes[number]]
            }
            if answer != expected:
                raise BenchmarkFailed("The engine and the plain relation found different constraints.")
        by_radius[f"{radius:g}"] = {
            "touched": round(sum(map(len, touched)) / len(touched), 1),
            "matches": round(sum(map(len, answers)) / len(answers), 1),
            "engine_us": round(sum(engine_s) / len(engine_s) * 1e6, 1),
            "tree_us": round(sum(tree_s) / len(tree_s) * 1e6, 1),
        }
    return {"build_s": round(build_s, 1), "peak_gib": round(peak / 2**30, 2), "by_radius": by_radius}


def _timed(match: Callable[[PlanarRegion], Any], messages: Sequence[PlanarRegion]) -> tuple[list[Any], list[float]]:
    for message in messages[:_WARM]:
        match(message)
    answers, seconds = [], []
    for message in messages[_WARM:]:
        edge_region(message)  # it stays with the region, so both are given it
        began = thread_time()
        answer = match(message)
        seconds.append(thread_time() - began)
        answers.append(answer)
    return answers, seconds


def _touched(boxes: np.ndarray, message: PlanarRegion) -> np.ndarray:
    """The constraints whose boxes meet the message's."""
    west, south, east, north = message.box
    return np.flatnonzero(
        (boxes[:, 0] <= east) & (boxes[:, 2] >= west) & (boxes[:, 1] <= north) & (boxes[:, 3] >= south)
    )


def _regions(seed: int, size: int) -> Iterator[PlanarRegion]:
    return (_region(seed, size, number) for number in range(size))


def _region(seed: int, size: int, number: int) -> PlanarRegion:
    """Any of them can be drawn again by itself, so that nobody has to keep them."""
    return _blob(Random(seed << 32 | number), math.sqrt(size), _RADIUS)


def _code(seed: int, number: int) -> int:
    return _CODES[(number * 2_654_435_761 + seed) % 2**32 % len(_CODES)]


def _blob(rng: Random, universe: float, radius: float) -> PlanarRegion:
    """A region that is seen whole from its middle, somewhere in the universe, of 10 to 30 corners."""
    count = rng.randrange(10, 31)
    x, y = rng.uniform(0, universe), rng.uniform(0, universe)
    turn = rng.random()
    return from_rings(
        [
            [
                (x + radius * share * cos, y + radius * share * sin)
                for (cos, sin), share in zip(
                    _directions(count, int(turn * 64)), (0.6 + 0.4 * rng.random() for _ in range(count)), strict=True
                )
            ]
        ]
    )


@cache
def _directions(count: int, turn: int) -> list[tuple[float, float]]:
    angles = (2 * math.pi * (number / count + turn / 64) for number in range(count))
    return [(math.cos(angle), math.sin(angle)) for angle in angles]


# --- the plot --------------------------------------------------------------------------------------------


def draw(figures: dict[str, Any], path: Path) -> None:
    """Microseconds by constraints with one size of message, and by what the message touches with all constraints."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    by_size = figures["by_constraints"]
    largest = figures["options"]["largest"]
    for axes, xs, rows in (
        (left, [int(size) for size in by_size], list(by_size.values())),
        (
            right,
            [row["touched"]["median"] for row in figures["by_radius"].values()],
            list(figures["by_radius"].values()),
        ),
    ):
        for name, label, colour in (
            ("engine_us", "Engine.match", "#000000"),
            ("tree_us", "constraint index alone", "#0072B2"),
        ):
            axes.plot(xs, [row[name]["median"] for row in rows], marker="o", markersize=3.5, label=label, color=colour)
            axes.fill_between(
                xs, [row[name]["min"] for row in rows], [row[name]["max"] for row in rows], color=colour, alpha=0.15
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    touched = next(reversed(by_size.values()))["touched"]["median"]
    left.set_title(f"The table grows; a message touches {touched:.0f} of it", fontsize=10)
    left.set_xlabel("constraints")
    left.set_ylabel("CPU time of a match, µs")
    right.set_title(f"The message grows; {largest:,} constraints", fontsize=10)
    right.set_xlabel("constraints whose boxes meet the message's")
    left.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__, runs=2)
    parser.add_argument("--largest", type=positive_int, default=1_000_000, metavar="N", help="default: 1,000,000")
    parser.add_argument("--messages", type=positive_int, default=150, metavar="M", help="of each size (default: 150)")
    parser.add_argument("--checked", type=int, default=10, metavar="C", help="of them by the plain relation too")
    parser.add_argument("--small", action="store_true", help="a hundredth of the constraints, 20 messages, one run")
    parser.add_argument("--table", type=positive_int, metavar="N", help="one table only, in this process, as JSON")
    args = parser.parse_args(argv)
    options, runs = Options(args.largest, args.messages, args.checked, args.seed), args.runs
    if args.small:
        options, runs = Options(max(100, args.largest // _SMALL), min(20, args.messages), args.checked, args.seed), 1
    if args.table is not None:
        print(json.dumps(measure_table(options, args.table)))
        return 0
    return measured(NAME, args, lambda say: measure(options, runs=runs, say=say), draw=draw)


if __name__ == "__main__":
    sys.exit(main())
