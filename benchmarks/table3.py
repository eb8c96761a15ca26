"""How long does a match take on real regions? The publication's Table 3.

    python -m benchmarks.table3 --out benchmarks/results

Three sets of real regions (those of the publication are not to be had; ours have as many, or about as many), messages
of the types A, B and C, a density of 10,000. Scenario 1: a constraint of a random relation on each region, each a
predicate of its own; Algorithm 1 on each in turn (CR-tree disabled), Algorithm 1 behind the CR-tree, and our packed
tree. Scenario 2: the same constraints in filters of two, shared out among 25 predicates, with the simplifier off and
on; the published design counts behind the CR-tree and stops early, ours is `matcher.engine.Engine`.

Algorithm 1 is compiled and has its halo; the CR-tree and the counting around it are plain Python. Regions with holes or
several parts, which Algorithm 1 can't decide, are decided exactly. Messages are distinct and each is timed once, each
design in its own block, in CPU time of the thread; a pass over all constraints is timed for the first few only, as the
options say. Answers of ours are held to exact arithmetic on every message; of the published design the share of wrong
answers is told.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import thread_time
from typing import Any

import msgspec
import numpy as np

from benchmarks.support.algorithm1 import Walks, scan, walk_of
from benchmarks.support.evaluators import RELATIONS, Algorithm1, Exact
from benchmarks.support.publication_command import Question, as_table, main_of, shown
from benchmarks.support.publication_regions import RegionType, draw_message
from benchmarks.support.published_table import PublishedTable
from benchmarks.support.timing import mean_ms, timed
from benchmarks.support.true_relations import AnswerWrong, TrueRelations, matched_predicates
from benchmarks.support.workloads import ATTRIBUTE, DATA, DATA_SETS, Workload, box_around, load_regions, packed_tree
from matcher.approximate import Density
from matcher.crtree import CrTree
from matcher.engine import Engine
from matcher.engines.regions import EdgeRegion
from matcher.planar import PlanarRegion
from matcher.simplification import simplify

__all__ = ["PUBLISHED", "QUESTION", "Options", "main", "measure_once", "plot", "table"]


class Options(msgspec.Struct, frozen=True):
    messages: int = 150  # of each type, on each set
    published_messages: int = 40  # the first of them, for what is behind the CR-tree
    one_by_one_messages: int = 10  # and for Algorithm 1 on each constraint in turn
    density: int = 10_000
    predicates: int = 25
    constraints: int | None = None  # of each set; None: all
    seed: int = 1
    data: str = str(DATA)


_WARM = 3  # of each type

_COLUMNS = ("one_by_one", "crtree", "simplifier_off", "simplifier_on")
PUBLISHED: dict[str, dict[str, dict[str, float]]] = {
    name: {kind: dict(zip(_COLUMNS, times, strict=True)) for kind, times in zip("ABC", rows, strict=True)}
    for name, rows in {
        "output_areas": ((1841, 73, 67, 0.18), (4000, 89, 78, 0.54), (1512, 7, 4.4, 0.12)),
        "communes": ((951, 108, 59, 1.4), (1323, 93, 169, 6.4), (851, 7, 72, 0.53)),
        "buildings": ((59, 1.4, 0.95, 0.75), (169, 6.4, 5, 1.24), (72, 0.53, 0.32, 0.05)),
    }.items()
}
"""Milliseconds. Six numbers stand there twice: scenario 2 of the second set is scenario 1 of the third."""


def measure_once(options: Options) -> dict[str, Any]:
    return {name: _Set(name, options).measure() for name in DATA_SETS}


class _Set:
    """One set of regions with everything that is built of it before messages come."""

    def __init__(self, name: str, options: Options) -> None:
        self._options = options
        self._rng = Random(options.seed)
        regions = load_regions(Path(options.data), name)
        self._universe = box_around(regions)
        workload = Workload(regions, self._rng)
        if options.constraints is not None:
            workload = Workload(workload.regions[: options.constraints], self._rng)
        self._workload = workload
        self._truth = TrueRelations(workload.regions, workload.relations)
        self._density = Density(options.density, self._universe)
        exact, self._algorithm1 = Exact(), Algorithm1(self._density, halo=True)
        for region in workload.regions:
            exact.keep(region)
            self._algorithm1.keep(region)
        self._walks = Walks(workload.regions, self._density)
        self._crtree: CrTree[int] = CrTree(self._algorithm1)
        for place, (relation, region) in enumerate(zip(workload.relations, workload.regions, strict=True)):
            self._crtree.insert(place, relation, region)
        self._packed = packed_tree(workload.regions, workload.relations)
        self._predicates = workload.shared_out(options.predicates)
        began = thread_time()
        simplified = [simplify(predicate, exact).filters for predicate in self._predicates]
        self._simplify_s = thread_time() - began
        self._filters_left = sum(map(len, simplified))
        self._tables = {
            name: (PublishedTable(each, self._algorithm1), Engine(enumerate(each)))
            for name, each in (("simplifier_off", self._predicates), ("simplifier_on", simplified))
        }
        self._warm_up()

    def measure(self) -> dict[str, Any]:
        types = {str(kind): self._measure_type(kind) for kind in RegionType}
        return {
            "constraints": len(self._workload),
            "with_holes_or_parts": int(np.count_nonzero(self._walks.refused)),
            "filters": sum(map(len, self._predicates)),
            "filters_left": self._filters_left,
            "simplify_s": round(self._simplify_s, 2),
            "geos_put_right": self._truth.settled,
            "types": types,
        }

    def _measure_type(self, kind: RegionType) -> dict[str, Any]:
        options, truth = self._options, self._truth
        messages = [draw_message(self._rng, kind, self._universe) for _ in range(options.messages)]
        few = messages[: options.published_messages]
        found: dict[str, Any] = {}

        answers, seconds = timed(lambda message: self._packed.search(EdgeRegion.of(message)), messages)
        holds, expected = [], []
        for message, answer in zip(messages, answers, strict=True):
            codes = truth.codes(message)
            truth.check(message, codes, answer.tolist())
            holds.append(codes == truth.wanted)
            expected.append(matched_predicates(self._predicates, self._workload.places, holds[-1]))
        found["ours_ms"] = mean_ms(seconds)

        passes, seconds = timed(self._one_by_one, messages[: options.one_by_one_messages])
        found["one_by_one_ms"] = mean_ms(seconds)
        wrong = sum(int(np.count_nonzero(one != other)) for one, other in zip(passes, holds, strict=False))
        found["one_by_one_error_percent"] = _percent(wrong, len(passes) * len(truth.wanted))

        behind, seconds = timed(self._crtree.search, few)
        found["crtree_ms"] = mean_ms(seconds)
        wrong = sum(
            len(one.symmetric_difference(np.flatnonzero(other).tolist()))
            for one, other in zip(behind, holds, strict=False)
        )
        found["crtree_error_percent"] = _percent(wrong, len(few) * len(truth.wanted))

        walked, seconds = timed(self._only_algorithm1, [(each, self._workload.candidates(each)) for each in few])
        found["crtree_algorithm1_ms"] = mean_ms(seconds)
        found["evaluated_percent"] = _percent(sum(walked), len(few) * len(truth.wanted))

        for name, (published, engine) in self._tables.items():
            found[name] = self._measure_tables(published.match, engine, messages, few, expected)
        found["crtree_to_ours"] = round(found["crtree_ms"] / found["ours_ms"], 1)
        found["crtree_algorithm1_to_ours"] = round(found["crtree_algorithm1_ms"] / found["ours_ms"], 1)
        return found

    def _measure_tables(
        self,
        published: Callable[[PlanarRegion], set[int]],
        engine: Engine,
        messages: list[PlanarRegion],
        few: list[PlanarRegion],
        expected: list[set[int]],
    ) -> dict[str, float]:
        matched, seconds = timed(published, few)
        wrong = sum(len(one ^ other) for one, other in zip(matched, expected, strict=False))
        answers, ours = timed(engine.match, [{ATTRIBUTE: message} for message in messages])
        if answers != expected:
            raise AnswerWrong("The engine matched other predicates than the exact relations do.")
        return {
            "published_ms": mean_ms(seconds),
            "published_error_percent": _percent(wrong, len(few) * len(self._predicates)),
            "ours_ms": mean_ms(ours),
            "matched_percent": _percent(sum(map(len, expected)), len(expected) * len(self._predicates)),
        }

    def _one_by_one(self, message: PlanarRegion) -> np.ndarray:
        """Which constraints hold by Algorithm 1, each looked at."""
        walk = walk_of(message, self._density)
        assert walk is not None
        codes = scan(walk, self._walks, np.ones(len(self._walks), np.bool_), True)
        for place in np.flatnonzero(self._walks.refused).tolist():
            codes[place] = RELATIONS.index(self._algorithm1(message, self._workload.regions[place]))
        holds: np.ndarray = codes == self._truth.wanted
        return holds

    def _only_algorithm1(self, question: tuple[PlanarRegion, np.ndarray]) -> int:
        """Evaluate what the boxes leave, and nothing else: a CR-tree can't be faster than that in any language."""
        message, candidates = question
        walk = walk_of(message, self._density)
        assert walk is not None
        return int(np.count_nonzero(scan(walk, self._walks, candidates, True) >= 0))

    def _warm_up(self) -> None:
        """Messages of their own, for the caches: what was just built is not in them."""
        for message in [draw_message(self._rng, kind, self._universe) for _ in range(_WARM) for kind in RegionType]:
            self._crtree.search(message)
            self._packed.search(EdgeRegion.of(message))
            for published, engine in self._tables.values():
                published.match(message)
                engine.match({ATTRIBUTE: message})
        self._one_by_one(message)


def _percent(part: int, whole: int) -> float:
    return float(f"{100 * part / whole:.4g}")


# --- for people --------------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    first, second, third = [], [], []
    for name, of_set in result.items():
        title = f"{DATA_SETS[name].title} ({of_set['constraints']['median']:,.0f})"
        for kind, figures in of_set["types"].items():
            published = PUBLISHED[name][kind]
            first.append(
                [f"{title}, {kind}", f"{published['one_by_one']:g}", shown(figures["one_by_one_ms"]),
                 f"{published['crtree']:g}", shown(figures["crtree_ms"]), shown(figures["crtree_algorithm1_ms"]),
                 shown(figures["ours_ms"]), shown(figures["crtree_to_ours"]),
                 shown(figures["crtree_error_percent"], " %")]
            )  # fmt: skip
            off, on = figures["simplifier_off"], figures["simplifier_on"]
            second.append(
                [f"{title}, {kind}", f"{published['simplifier_off']:g}", shown(off["published_ms"]),
                 shown(off["ours_ms"]), f"{published['simplifier_on']:g}", shown(on["published_ms"]),
                 shown(on["ours_ms"]), shown(off["matched_percent"], " %")]
            )  # fmt: skip
        third.append(
            [title, f"{of_set['filters']['median']:,.0f}", shown(of_set["filters_left"]), shown(of_set["simplify_s"])]
        )
    heads = (
        ["scenario 1, ms per message", "one by one: published", "measured", "CR-tree: published", "measured",
         "of that Algorithm 1", "ours, exact", "CR-tree to ours", "wrong answers of Algorithm 1"],
        ["scenario 2, ms per message", "simplifier off: published", "measured", "ours, exact",
         "simplifier on: published", "measured", "ours, exact", "predicates that match"],
        ["simplification", "filters", "left", "seconds"],
    )  # fmt: skip
    return "\n".join(as_table(head, rows) for head, rows in zip(heads, (first, second, third), strict=True))


def plot(result: dict[str, Any], path: Path) -> None:
    from benchmarks.support.plots import draw_bars, middle

    panels: dict[str, dict[str, list[float | None]]] = {}
    for name, of_set in result.items():
        bars: dict[str, list[float | None]] = {
            "one by one, published": [],
            "one by one": [],
            "CR-tree, published": [],
            "CR-tree": [],
            "ours, exact": [],
        }
        for kind, figures in of_set["types"].items():
            published = PUBLISHED[name][kind]
            bars["one by one, published"].append(published["one_by_one"])
            bars["one by one"].append(middle(figures["one_by_one_ms"]))
            bars["CR-tree, published"].append(published["crtree"])
            bars["CR-tree"].append(middle(figures["crtree_ms"]))
            bars["ours, exact"].append(middle(figures["ours_ms"]))
        panels[f"{DATA_SETS[name].title}\n(published: {DATA_SETS[name].published})"] = bars
    colours = {
        "one by one, published": "approximate",
        "one by one": "approximate",
        "CR-tree, published": "index",
        "CR-tree": "index",
        "ours, exact": "ours",
    }
    draw_bars(
        panels,
        [str(kind) for kind in RegionType],
        colours,
        path,
        y="milliseconds per message",
        title="Table 3, scenario 1",
    )


QUESTION = Question(
    name="table3",
    about=__doc__,
    full=Options(),
    small=Options(messages=10, published_messages=5, one_by_one_messages=3, constraints=400),
    measure=measure_once,
    table=table,
    plot=plot,
    published={
        "milliseconds": PUBLISHED,
        "constraints": {name: each.published_size for name, each in DATA_SETS.items()},
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    return main_of(QUESTION, argv)


if __name__ == "__main__":
    sys.exit(main())
