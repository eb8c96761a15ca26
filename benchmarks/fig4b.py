"""What do simplification and early stop save where few predicates have many filters? The publication's Fig. 4b.

    python -m benchmarks.fig4b --out benchmarks/results

The constraints of Fig. 4a in filters of two, shared out among 5, 15 and 25 predicates, with the simplifier off and on.
The published design is Algorithm 1 behind the CR-tree with counting and early stop: a predicate that has matched is
passed over, and when all have matched the search ends. Ours is `matcher.engine.Engine`. Simplification takes place
once, before; its time is told too.

The scenario of 25 predicates is also measured without early stop. Our engine answers all regions by one search and
stops early between attributes: predicates that cheap attributes have decided need no look at regions. So for ours
there is a mixed scenario too, the same with one filter in ten about two numbers.

Every answer of ours is held to the exact relations, simplified or not. Of the published design the share of wrong
answers, over all messages and predicates, is told.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from time import thread_time
from typing import Any

import msgspec
import numpy as np

from benchmarks.support.evaluators import Algorithm1, Exact
from benchmarks.support.publication_command import Question, as_table, main_of, shown
from benchmarks.support.publication_regions import UNIVERSE, draw_region
from benchmarks.support.published_table import PublishedTable
from benchmarks.support.timing import mean_ms, timed
from benchmarks.support.true_relations import AnswerWrong, TrueRelations, matched_predicates
from benchmarks.support.workloads import ATTRIBUTE, Workload, packed_tree
from matcher.approximate import Density
from matcher.constraints import Constraint, Filter, NumberTest, Predicate, matches
from matcher.engine import Engine
from matcher.engines.regions import EdgeRegion
from matcher.planar import PlanarRegion
from matcher.selector.tree import CompareOp
from matcher.simplification import simplify

__all__ = ["QUESTION", "Options", "main", "measure_once", "plot", "table"]


class Options(msgspec.Struct, frozen=True):
    sizes: tuple[int, ...] = (1000, 2500, 5000, 7500, 10_000)
    predicates: tuple[int, ...] = (5, 15, 25)
    messages: int = 150
    published_messages: int = 40  # the first of them
    density: int = 2000
    seed: int = 1


PUBLISHED = {
    "note": "The text gives no readings of Fig. 4b. Times flatten as predicates grow, with the simplifier sooner.",
}
_NUMBERS = ("wind", "rain")
_NUMBERS_IN = 10  # one filter in so many


class _Setting(msgspec.Struct, frozen=True):
    """What all parts of one run have in common."""

    workload: Workload
    messages: list[PlanarRegion]
    few: list[PlanarRegion]
    holds: list[np.ndarray]  # of each message, which constraints hold
    exact: Exact
    algorithm1: Algorithm1


def measure_once(options: Options) -> dict[str, Any]:
    setting = _set_up(options)
    scenarios = {
        f"{predicates}_predicates": {
            str(size): _measure_scenario(setting, predicates, size) for size in options.sizes
        }
        for predicates in options.predicates
    }  # fmt: skip
    return {
        "scenarios": scenarios,
        "early_stop": _measure_early_stop(setting, max(options.predicates), max(options.sizes)),
        "mixed": _measure_mixed(setting, max(options.predicates), max(options.sizes), options.seed),
    }


def _set_up(options: Options) -> _Setting:
    rng = Random(options.seed)
    workload = Workload([draw_region(rng) for _ in range(max(options.sizes))], rng)
    messages = [draw_region(rng) for _ in range(options.messages)]
    truth = TrueRelations(workload.regions, workload.relations)
    tree = packed_tree(workload.regions, workload.relations)
    holds = []
    for message in messages:
        codes = truth.codes(message)
        truth.check(message, codes, tree.search(EdgeRegion.of(message)).tolist())
        holds.append(codes == truth.wanted)
    exact, algorithm1 = Exact(), Algorithm1(Density(options.density, UNIVERSE), halo=True)
    for region in workload.regions:
        exact.keep(region)
        algorithm1.keep(region)
    return _Setting(workload, messages, messages[: options.published_messages], holds, exact, algorithm1)


def _measure_scenario(setting: _Setting, count: int, size: int) -> dict[str, Any]:
    predicates = setting.workload.shared_out(count, size)
    expected = _expected(setting, predicates)
    simplified, simplify_s = _simplified(setting, predicates)
    found: dict[str, Any] = {
        "simplify_s": round(simplify_s, 3),
        "filters": sum(map(len, predicates)),
        "filters_left": sum(map(len, simplified)),
        "matched_percent": _percent(sum(map(len, expected)), len(expected) * count),
    }
    for name, each in (("off", predicates), ("on", simplified)):
        published_ms, wrong = _measure_published(setting, each, expected)
        found[f"simplifier_{name}"] = {
            "published_ms": published_ms,
            "published_error_percent": wrong,
            "ours_ms": _measure_ours(setting, each, expected),
        }
    return found


def _measure_early_stop(setting: _Setting, count: int, size: int) -> dict[str, Any]:
    predicates = setting.workload.shared_out(count, size)
    expected = _expected(setting, predicates)
    simplified, _ = _simplified(setting, predicates)
    found: dict[str, Any] = {}
    for name, each in (("off", predicates), ("on", simplified)):
        for stops in (False, True):
            published_ms, _ = _measure_published(setting, each, expected, early_stop=stops)
            found[f"simplifier_{name}_early_stop_{'on' if stops else 'off'}"] = {
                "published_ms": published_ms,
                "ours_ms": _measure_ours(setting, each, expected, early_stop=stops),
            }
    return found


def _measure_mixed(setting: _Setting, count: int, size: int, seed: int) -> dict[str, Any]:
    """Ours where some filters need no region: with and without early stop."""
    rng = Random(seed)
    predicates = [
        tuple(_about_numbers(rng) if not place % _NUMBERS_IN else each for place, each in enumerate(predicate))
        for predicate in setting.workload.shared_out(count, size)
    ]
    numbers = [{name: rng.uniform(0, 100) for name in _NUMBERS} for _ in setting.messages]
    places, expected = setting.workload.places, []
    for holds, values in zip(setting.holds, numbers, strict=True):
        cheap = [tuple(each for each in predicate if each[0].attribute != ATTRIBUTE) for predicate in predicates]
        dear = [tuple(each for each in predicate if each[0].attribute == ATTRIBUTE) for predicate in predicates]
        decided = {number for number, predicate in enumerate(cheap) if matches(predicate, values)}
        expected.append(decided | matched_predicates(dear, places, holds))
    values_by_message = dict(zip(map(id, setting.messages), numbers, strict=True))
    return {
        f"early_stop_{'on' if stops else 'off'}": {
            "ours_ms": _measure_ours(setting, predicates, expected, early_stop=stops, more=values_by_message)
        }
        for stops in (False, True)
    }


def _about_numbers(rng: Random) -> Filter:
    one, other = (Constraint(name, NumberTest(CompareOp.GT, rng.uniform(0, 100))) for name in _NUMBERS)
    return one, other


def _expected(setting: _Setting, predicates: Sequence[Predicate]) -> list[set[int]]:
    return [matched_predicates(predicates, setting.workload.places, holds) for holds in setting.holds]


def _simplified(setting: _Setting, predicates: Sequence[Predicate]) -> tuple[list[Predicate], float]:
    began = thread_time()
    simplified = [simplify(predicate, setting.exact).filters for predicate in predicates]
    return simplified, thread_time() - began


def _measure_published(
    setting: _Setting, predicates: Sequence[Predicate], expected: list[set[int]], *, early_stop: bool = True
) -> tuple[float, float]:
    """The time, and the share of wrong answers in percent."""
    published = PublishedTable(predicates, setting.algorithm1, early_stop=early_stop)
    published.match(setting.workload.regions[0])
    answers, seconds = timed(published.match, setting.few)
    wrong = sum(len(answer ^ known) for answer, known in zip(answers, expected, strict=False))
    return mean_ms(seconds), _percent(wrong, len(answers) * len(predicates))


def _measure_ours(
    setting: _Setting,
    predicates: Sequence[Predicate],
    expected: list[set[int]],
    *,
    early_stop: bool = True,
    more: Mapping[int, Mapping[str, float]] | None = None,
) -> float:
    engine = Engine(enumerate(predicates), early_stop=early_stop)
    events = [{ATTRIBUTE: message, **(more or {}).get(id(message), {})} for message in setting.messages]
    engine.match({**events[0], ATTRIBUTE: setting.workload.regions[0]})
    answers, seconds = timed(engine.match, events)
    if answers != expected:
        raise AnswerWrong("The engine matched other predicates than the exact relations do.")
    return mean_ms(seconds)


def _percent(part: int, whole: int) -> float:
    return float(f"{100 * part / whole:.4g}")


# --- for people --------------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    rows = []
    for scenario, by_size in result["scenarios"].items():
        for size, figures in by_size.items():
            off, on = figures["simplifier_off"], figures["simplifier_on"]
            rows.append(
                [f"{scenario.replace('_', ' ')}, {int(size):,} constraints",
                 shown(off["published_ms"]), shown(on["published_ms"]), shown(off["ours_ms"]), shown(on["ours_ms"]),
                 f"{figures['filters']['median']:g} to {figures['filters_left']['median']:g}",
                 shown(figures["simplify_s"]), shown(off["published_error_percent"], " %")]
            )  # fmt: skip
    times = as_table(
        ["milliseconds per message", "published design", "simplified", "ours", "simplified", "filters",
         "simplify, s", "wrong answers of the published design"],
        rows,
    )  # fmt: skip
    names = {
        "simplifier_off_early_stop_off": "neither",
        "simplifier_off_early_stop_on": "early stop",
        "simplifier_on_early_stop_off": "simplified",
        "simplifier_on_early_stop_on": "both",
    }
    stops = [
        [names[name], shown(figures["published_ms"]), shown(figures["ours_ms"])]
        for name, figures in result["early_stop"].items()
    ]
    mixed = result["mixed"]
    stops += [
        ["one filter in ten about numbers, no early stop", "-", shown(mixed["early_stop_off"]["ours_ms"])],
        ["one filter in ten about numbers, early stop", "-", shown(mixed["early_stop_on"]["ours_ms"])],
    ]
    head = ["most predicates and constraints, ms per message", "published design", "ours"]
    return f"{times}\n{as_table(head, stops)}"


def plot(result: dict[str, Any], path: Path) -> None:
    from benchmarks.support.plots import Line, draw_lines

    designs = (("published design", "published_ms", "index"), ("ours", "ours_ms", "ours"))
    panels = {
        f"Fig. 4b: {scenario.replace('_', ' ')}": [
            Line(
                f"{label}, simplifier {switch}",
                {size: figures[f"simplifier_{switch}"][key] for size, figures in by_size.items()},
                colour,
                "-" if switch == "off" else "--",
            )
            for label, key, colour in designs
            for switch in ("off", "on")
        ]
        for scenario, by_size in result["scenarios"].items()
    }
    draw_lines(panels, path, x="constraints", y="milliseconds of CPU per message")


QUESTION = Question(
    name="fig4b",
    about=__doc__,
    full=Options(),
    small=Options(sizes=(60, 120), predicates=(2, 5), messages=10, published_messages=5),
    measure=measure_once,
    table=table,
    plot=plot,
    published=PUBLISHED,
)


def main(argv: Sequence[str] | None = None) -> int:
    return main_of(QUESTION, argv)


if __name__ == "__main__":
    sys.exit(main())
