"""How does the time of a match grow with the number of constraints? The publication's Fig. 4a.

    python -m benchmarks.fig4a --out benchmarks/results

Synthetic regions, large as the publication has them, one constraint of a random relation to a predicate, messages of
the same kind. Five designs: GEOS on each pair in turn (the publication has CGAL's polygon intersection; GEOS also tells
the relation), the same with the message prepared, Algorithm 1 on each pair in turn, Algorithm 1 behind the CR-tree,
and our exact packed tree. Algorithm 1 is compiled; the CR-tree around it is the plain one of `matcher.crtree`.

A design that looks at constraints one after the other is timed for all sizes in one pass, with the clock read at each.
Messages are distinct and each is timed once, each design in its own block, in CPU time of the thread. Answers of exact
designs are held to exact arithmetic on every message; of Algorithm 1 the share of wrong relations is told, at the
publication's two densities, with the halo and without.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import thread_time
from typing import Any

import msgspec
import numpy as np
import shapely

from benchmarks.support.algorithm1 import Walks, scan, walk_of
from benchmarks.support.evaluators import Algorithm1
from benchmarks.support.publication_command import Question, as_table, main_of, shown
from benchmarks.support.publication_regions import UNIVERSE, draw_region
from benchmarks.support.timing import mean_ms, timed
from benchmarks.support.true_relations import AnswerWrong, TrueRelations, codes_of, geometry_of
from benchmarks.support.workloads import Workload, packed_tree
from matcher.approximate import Density
from matcher.crtree import CrTree
from matcher.engines.regions import EdgeRegion
from matcher.planar import PlanarRegion

__all__ = ["QUESTION", "Options", "main", "measure_once", "plot", "table"]


class Options(msgspec.Struct, frozen=True):
    sizes: tuple[int, ...] = (1000, 2500, 5000, 7500, 10_000)
    messages: int = 150
    algorithm1_messages: int = 40  # the first of them; a pass of Algorithm 1 takes long
    density: int = 2000
    error_densities: tuple[int, ...] = (2000, 12_000)
    error_constraints: int = 2000
    error_messages: int = 20
    seed: int = 1


PUBLISHED = {
    "algorithm1_to_polygon_intersection_speed": 6,
    "error_percent": {"2000": 0.089, "12000": 0.015},
    "note": "Algorithm 1 is said to be faster than CGAL up to 12,000 points.",
}

_LINES = {
    "geos": "polygon intersection (GEOS), one by one",
    "geos_prepared": "the same, message prepared",
    "algorithm1": "Algorithm 1, one by one",
    "algorithm1_crtree": "Algorithm 1 with the CR-tree",
    "ours": "ours: packed tree, exact",
}


def measure_once(options: Options) -> dict[str, Any]:
    rng = Random(options.seed)
    workload = Workload([draw_region(rng) for _ in range(max(options.sizes))], rng)
    messages = [draw_region(rng) for _ in range(options.messages)]
    truth = TrueRelations(workload.regions, workload.relations)
    codes = [truth.codes(message) for message in messages]
    # Ours first: its answers, checked, also put right what GEOS gets wrong.
    ours = {str(size): _measure_ours(workload, size, messages, truth, codes) for size in options.sizes}
    few = messages[: options.algorithm1_messages]
    by_algorithm1, algorithm1_ms = _measure_algorithm1(workload, few, options)
    crtree = {str(size): _measure_crtree(workload, size, few, options) for size in options.sizes}
    time_ms = {
        "geos": _measure_geos(truth, messages, codes, options.sizes, prepared=False),
        "geos_prepared": _measure_geos(truth, messages, codes, options.sizes, prepared=True),
        "algorithm1": algorithm1_ms,
        "algorithm1_crtree": crtree,
        "ours": ours,
    }
    largest = str(max(options.sizes))
    wrong = sum(int(np.count_nonzero(found != expected)) for found, expected in zip(by_algorithm1, codes, strict=False))
    return {
        "time_ms": time_ms,
        "to_ours": {name: round(at[largest] / ours[largest], 2) for name, at in time_ms.items() if name != "ours"},
        "geos_to_algorithm1": round(time_ms["geos"][largest] / time_ms["algorithm1"][largest], 3),
        "algorithm1_error_percent": _percent(wrong, len(few) * len(workload)),
        "by_density": _measure_errors(workload, messages[: options.error_messages], codes, truth, options),
        "geos_put_right": truth.settled,
    }


def _measure_ours(
    workload: Workload, size: int, messages: list[PlanarRegion], truth: TrueRelations, codes: list[np.ndarray]
) -> float:
    tree = packed_tree(workload.regions[:size], workload.relations[:size])
    tree.search(EdgeRegion.of(workload.regions[0]))
    answers, seconds = timed(lambda message: tree.search(EdgeRegion.of(message)), messages)
    for message, answer, known in zip(messages, answers, codes, strict=True):
        part = known.copy()
        part[size:] = -1  # no relation: constraints that are not in this tree
        truth.check(message, part, answer.tolist())
        known[:size] = part[:size]
    return mean_ms(seconds)


def _measure_geos(
    truth: TrueRelations,
    messages: list[PlanarRegion],
    codes: list[np.ndarray],
    sizes: Sequence[int],
    *,
    prepared: bool,
) -> dict[str, float]:
    """The answers of GEOS were settled before; here they need only be the same as in the first pass."""

    def relations(message: PlanarRegion) -> Callable[[int, int], np.ndarray]:
        geometry = geometry_of(message)
        if prepared:
            shapely.prepare(geometry)
        return lambda start, stop: codes_of(shapely.relate(geometry, truth.geometries[start:stop]))

    found, times = _timed_in_passing(relations, messages, sizes)
    differ = sum(int(np.count_nonzero(one != other)) for one, other in zip(found, codes, strict=True))
    if differ > truth.settled:
        raise AnswerWrong(f"GEOS found {differ} other relations than before, and {truth.settled} were put right.")
    return times


def _measure_algorithm1(
    workload: Workload, messages: list[PlanarRegion], options: Options
) -> tuple[list[np.ndarray], dict[str, float]]:
    density = Density(options.density, UNIVERSE)
    walks = Walks(workload.regions, density)
    every = np.ones(len(walks), np.bool_)

    def relations(message: PlanarRegion) -> Callable[[int, int], np.ndarray]:
        walk = walk_of(message, density)
        assert walk is not None
        return lambda start, stop: scan(walk, walks, every, True, start, stop)

    relations(messages[0])(0, 1)
    return _timed_in_passing(relations, messages, options.sizes)


def _timed_in_passing(
    relations: Callable[[PlanarRegion], Callable[[int, int], np.ndarray]],
    messages: list[PlanarRegion],
    sizes: Sequence[int],
) -> tuple[list[np.ndarray], dict[str, float]]:
    """One pass over all constraints for each message; the clock is read when a size is reached."""
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    answers = []
    for message in messages:
        parts = []
        began = thread_time()
        decide, start = relations(message), 0
        for size in sorted(sizes):
            parts.append(decide(start, size))
            seconds[size].append(thread_time() - began)
            start = size
        answers.append(np.concatenate(parts))
    return answers, {str(size): mean_ms(each) for size, each in seconds.items()}


def _measure_crtree(workload: Workload, size: int, messages: list[PlanarRegion], options: Options) -> float:
    evaluate = Algorithm1(Density(options.density, UNIVERSE), halo=True)
    tree: CrTree[int] = CrTree(evaluate)
    for place in range(size):
        evaluate.keep(workload.regions[place])
        tree.insert(place, workload.relations[place], workload.regions[place])
    tree.search(workload.regions[0])
    _, seconds = timed(tree.search, messages)
    return mean_ms(seconds)


def _measure_errors(
    workload: Workload, messages: list[PlanarRegion], codes: list[np.ndarray], truth: TrueRelations, options: Options
) -> dict[str, Any]:
    """Wrong relations of all pairs, by density, with the halo and without; and the time of a pair."""
    count = min(options.error_constraints, len(workload))
    pairs = count * len(messages)
    _, geos = timed(lambda message: shapely.relate(geometry_of(message), truth.geometries[:count]), messages)
    found: dict[str, Any] = {"geos_us_per_pair": round(sum(geos) / pairs * 1e6, 3)}
    for points in options.error_densities:
        density = Density(points, UNIVERSE)
        walks = Walks(workload.regions[:count], density)
        every = np.ones(count, np.bool_)
        for halo in (True, False):
            answers, seconds = timed(lambda message: _scanned(message, density, walks, every, halo), messages)  # noqa: B023 - called at once
            wrong = sum(
                int(np.count_nonzero(answer != known[:count])) for answer, known in zip(answers, codes, strict=False)
            )
            found[f"{points}_{'halo' if halo else 'no_halo'}"] = {
                "error_percent": _percent(wrong, pairs),
                "us_per_pair": round(sum(seconds) / pairs * 1e6, 3),
            }
    return found


def _scanned(message: PlanarRegion, density: Density, walks: Walks, every: np.ndarray, halo: bool) -> np.ndarray:
    walk = walk_of(message, density)
    assert walk is not None
    return scan(walk, walks, every, halo)


def _percent(part: int, whole: int) -> float:
    return float(f"{100 * part / whole:.4g}")


# --- for people --------------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    sizes = list(result["time_ms"]["ours"])
    times = as_table(
        ["milliseconds per message, constraints:", *(f"{int(size):,}" for size in sizes), "to ours"],
        [
            [label, *(shown(result["time_ms"][name][size]) for size in sizes),
             shown(result["to_ours"][name]) if name in result["to_ours"] else "1"]
            for name, label in _LINES.items()
        ],
    )  # fmt: skip
    rows = []
    for name, figures in result["by_density"].items():
        if name == "geos_us_per_pair":
            continue
        points, _, halo = name.partition("_")
        published = PUBLISHED["error_percent"].get(points) if halo == "halo" else None  # type: ignore[attr-defined]
        rows.append(
            [f"{int(points):,} points, {halo.replace('_', ' ')}", shown(figures["error_percent"], " %"),
             "-" if published is None else f"{published} %", shown(figures["us_per_pair"])]
        )  # fmt: skip
    rows.append(["GEOS relate", "0 %", "-", shown(result["by_density"]["geos_us_per_pair"])])
    errors = as_table(["Algorithm 1", "wrong relations", "published", "µs per pair"], rows)
    return f"{times}\n{errors}"


def plot(result: dict[str, Any], path: Path) -> None:
    from benchmarks.support.plots import Line, draw_lines

    colours = {
        "geos": "exact",
        "geos_prepared": "exact_2",
        "algorithm1": "approximate",
        "algorithm1_crtree": "index",
        "ours": "ours",
    }
    styles = {"algorithm1": "--", "algorithm1_crtree": ":"}
    lines = [
        Line(label, result["time_ms"][name], colours[name], styles.get(name, "-")) for name, label in _LINES.items()
    ]
    draw_lines(
        {"Fig. 4a: one constraint a predicate": lines},
        path,
        x="constraints",
        y="milliseconds of CPU per message",
    )


QUESTION = Question(
    name="fig4a",
    about=__doc__,
    full=Options(),
    small=Options(
        sizes=(50, 100, 200),
        messages=10,
        algorithm1_messages=5,
        error_densities=(2000,),
        error_constraints=100,
        error_messages=5,
    ),
    measure=measure_once,
    table=table,
    plot=plot,
    published=PUBLISHED,
)


def main(argv: Sequence[str] | None = None) -> int:
    return main_of(QUESTION, argv)


if __name__ == "__main__":
    sys.exit(main())
