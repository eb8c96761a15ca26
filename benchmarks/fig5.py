"""What does a higher density of points still gain, and how far from exact is it? The publication's Fig. 5.

    python -m benchmarks.fig5 --out benchmarks/results

Messages of the types A, B and C on the three sets of real regions, a constraint of a random relation on each region.
For each density D from 0 to 40,000 the constraints that match are compared with those that match with D + 10,000, which
is what the publication plots; and with those that match in truth, which is what it does not tell. Both with the halo
and without. A figure is the share, in percent, of all pairs of a message and a constraint whose answer differs.

Boxes go before Algorithm 1, as in the CR-tree: where they exclude a relation, or decide `disjoint`, it is not asked.
Regions with holes or several parts, 1 in 90 of the output areas, are decided exactly, because it can't. Nothing is
timed here.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from benchmarks.support.algorithm1 import Walks, scan, walk_of
from benchmarks.support.publication_command import Question, as_table, main_of, shown
from benchmarks.support.publication_regions import RegionType, draw_message
from benchmarks.support.true_relations import TrueRelations
from benchmarks.support.workloads import DATA, DATA_SETS, Workload, box_around, load_regions, packed_tree
from matcher.approximate import Density
from matcher.engines.regions import EdgeRegion
from matcher.planar import PlanarRegion

__all__ = ["QUESTION", "Options", "main", "measure_once", "plot", "table"]


class Options(msgspec.Struct, frozen=True):
    densities: tuple[int, ...] = (0, 10_000, 20_000, 30_000, 40_000)
    step: int = 10_000
    messages: int = 25  # of each type, on each set
    constraints: int | None = None  # of each set; None: all
    seed: int = 1
    data: str = str(DATA)


PUBLISHED = {
    "note": "The text gives no readings of Fig. 5: differences are very low and go towards none. Its example of one is "
    "0.02 % at 10,000.",
}


def measure_once(options: Options) -> dict[str, Any]:
    return {name: _measure_set(name, options) for name in DATA_SETS}


def _measure_set(name: str, options: Options) -> dict[str, Any]:
    rng = Random(options.seed)
    regions = load_regions(Path(options.data), name)
    universe = box_around(regions)
    workload = Workload(regions, rng)
    if options.constraints is not None:
        workload = Workload(workload.regions[: options.constraints], rng)
    truth = TrueRelations(workload.regions, workload.relations)
    tree = packed_tree(workload.regions, workload.relations)
    every = sorted({*options.densities, *(density + options.step for density in options.densities)})
    boundaries = Walks(workload.regions, Density(0, universe))
    walks = {points: boundaries.at(Density(points, universe)) for points in every}
    found = {}
    for kind in RegionType:
        messages = [draw_message(rng, kind, universe) for _ in range(options.messages)]
        gains = np.zeros((2, len(options.densities)), np.int64)
        errors = np.zeros((2, len(options.densities)), np.int64)
        for message in messages:
            codes = truth.codes(message)
            truth.check(message, codes, tree.search(EdgeRegion.of(message)).tolist())
            exact = codes == truth.wanted
            candidates = workload.candidates(message)
            for row, halo in enumerate((True, False)):
                holds = {
                    points: _holding(message, walks[points], candidates, truth.wanted, exact, halo) for points in every
                }
                for column, points in enumerate(options.densities):
                    gains[row, column] += np.count_nonzero(holds[points] != holds[points + options.step])
                    errors[row, column] += np.count_nonzero(holds[points] != exact)
        pairs = len(messages) * len(workload)
        found[str(kind)] = {
            f"{halo}_{what}_percent": {
                str(points): float(f"{100 * counts[row, column] / pairs:.4g}")
                for column, points in enumerate(options.densities)
            }
            for row, halo in enumerate(("halo", "no_halo"))
            for what, counts in (("gain", gains), ("error", errors))
        }
    return {"constraints": len(workload), "geos_put_right": truth.settled, "types": found}


def _holding(
    message: PlanarRegion, walks: Walks, candidates: np.ndarray, wanted: np.ndarray, exact: np.ndarray, halo: bool
) -> np.ndarray:
    """Which constraints hold by Algorithm 1; where it is not asked, or can't be, those that do in truth."""
    walk = walk_of(message, walks.density)
    assert walk is not None
    codes = scan(walk, walks, candidates, halo)
    holds: np.ndarray = np.where(codes >= 0, codes == wanted, exact)
    return holds


# --- for people --------------------------------------------------------------------------------------------

_WHAT = {
    "halo_gain_percent": "gain of 10,000 more, halo",
    "no_halo_gain_percent": "gain of 10,000 more, no halo",
    "halo_error_percent": "error against exact, halo",
    "no_halo_error_percent": "error against exact, no halo",
}


def table(result: dict[str, Any]) -> str:
    rows: list[list[str]] = []
    densities: list[str] = []
    for name, of_set in result.items():
        for kind, figures in of_set["types"].items():
            for key, label in _WHAT.items():
                densities = list(figures[key])
                rows.append(
                    [f"{DATA_SETS[name].title}, {kind}: {label}", *(shown(figures[key][at]) for at in densities)]
                )
    return as_table(["percent of answers that differ, D:", *(f"{int(density):,}" for density in densities)], rows)


def plot(result: dict[str, Any], path: Path) -> None:
    from benchmarks.support.plots import Line, draw_lines

    colours = {"A": "exact", "B": "index", "C": "exact_2"}
    panels = {}
    for what, title in (("gain", "gain of 10,000 more points"), ("error", "error against exact")):
        for halo in ("halo", "no_halo"):
            panels[f"Fig. 5: {title}, {halo.replace('_', ' ')}"] = [
                Line(
                    f"{DATA_SETS[name].title}, {kind}",
                    figures[f"{halo}_{what}_percent"],
                    colours[kind],
                    style,
                    shows_spread=False,  # nine lines are enough to look at
                )
                for (name, of_set), style in zip(result.items(), ("-", "--", ":"), strict=True)
                for kind, figures in of_set["types"].items()
            ]
    draw_lines(
        panels, path, x="points per half of the universe's extent", y="percent of answers", is_log=False, columns=2
    )


QUESTION = Question(
    name="fig5",
    about=__doc__,
    full=Options(),
    small=Options(densities=(0, 10_000), messages=4, constraints=400),
    measure=measure_once,
    table=table,
    plot=plot,
    published=PUBLISHED,
)


def main(argv: Sequence[str] | None = None) -> int:
    return main_of(QUESTION, argv)


if __name__ == "__main__":
    sys.exit(main())
