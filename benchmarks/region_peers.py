"""How much faster than GEOS and PostGIS is a region matched against 85,550 constraints on real polygons?

    python -m benchmarks.region_peers --json

Each polygon has one random relation of the eight. Messages are of the publication's types A, B and C, with a box of 1
to 25 % of the universe, and of a fourth kind, `contact`: drawn from the borders of the polygons themselves, so that
edges and corners are shared with many. The peers are an STRtree with `relate` for what it finds, the same with the
message prepared, an STRtree with one prepared predicate for each relation (the best design that GEOS alone allows), and
PostGIS, one statement a message.

Every design has a block of its own with the same messages, all different and each asked once; PostGIS has the first
of them, and its time is that of the wall, as it works in another process. All others are in CPU time of the thread.
All answers must be the same on every message; where one differs, exact arithmetic decides, and if ours is wrong
there are no figures.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from time import perf_counter, thread_time
from typing import Any

import msgspec
import numpy as np
import shapely
from numpy.typing import NDArray

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.publication_regions import RegionType, draw_message
from benchmarks.support.region_data import contact_regions, load_geometries
from benchmarks.support.region_designs import Found, Postgis, PreparedPredicates, Relate, running_design
from benchmarks.support.spread import spread
from benchmarks.support.workloads import DATA, DATA_SETS
from matcher.constraints import Constraint, RegionTest
from matcher.engine import Engine
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import PlanarRegion, from_geometry
from matcher.relations import relate
from matcher.selector.tree import Relation
from matcher.table.regions import edge_region

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "region_peers"
_SMALL = 20
_WARM = 5


class Options(msgspec.Struct, frozen=True):
    messages: int = 150
    postgis_messages: int = 30  # 0: without PostGIS
    seed: int = 1


def measure(
    polygons: NDArray[Any], options: Options, *, runs: int = 2, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of a twentieth of the polygons and of several seeds with all of them."""
    few = polygons[: max(100, len(polygons) // _SMALL)]
    say(f"Warming up with {len(few)} polygons.")
    small = measure_once(few, msgspec.structs.replace(options, messages=min(20, options.messages), postgis_messages=0))
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {len(polygons)} polygons.")
        large.append(measure_once(polygons, msgspec.structs.replace(options, seed=options.seed + run - 1)))
    return {
        "options": msgspec.structs.asdict(options),
        "polygons": len(polygons),
        "runs": runs,
        "small": spread([small]),
        "large": spread(large),
    }


def measure_once(polygons: NDArray[Any], options: Options) -> dict[str, Any]:
    workload = _Workload(polygons, options)
    found: dict[str, Any] = {"build_s": workload.build_s}
    if not options.postgis_messages:
        return found | {kind: workload.measure(kind) for kind in workload.messages}
    with running_design(polygons, workload.codes) as postgis:
        return found | {kind: workload.measure(kind, postgis) for kind in workload.messages}


class _Workload:
    def __init__(self, polygons: NDArray[Any], options: Options) -> None:
        self._options = options
        rng = Random(options.seed)
        self._regions = [from_geometry(polygon) for polygon in polygons]
        self.codes = np.array([rng.randrange(8) for _ in polygons], np.int8)
        began = perf_counter()
        edges = EdgeRegions.of([EdgeRegion.of(region) for region in self._regions])
        self._tree = PackedTree(np.arange(len(polygons)), self.codes, edges)
        self.build_s = round(perf_counter() - began, 2)
        self._engine = Engine(
            (number, [[Constraint("area", RegionTest(Relation(NAMES[code]), region))]])
            for number, (code, region) in enumerate(zip(self.codes, self._regions, strict=True))
        )
        self._designs: dict[str, Relate | PreparedPredicates] = {
            "strtree_relate": Relate(polygons, self.codes, prepares=False),
            "strtree_prepared_relate": Relate(polygons, self.codes, prepares=True),
            "strtree_prepared_predicates": PreparedPredicates(polygons, self.codes),
        }
        universe = tuple(shapely.total_bounds(polygons).tolist())
        count = _WARM + options.messages
        self.messages: dict[str, list[PlanarRegion]] = {
            kind.value: [draw_message(rng, kind, universe) for _ in range(count)] for kind in RegionType
        }
        self.messages["contact"] = [from_geometry(each) for each in islice(contact_regions(rng, polygons), count)]

    def measure(self, kind: str, postgis: Postgis | None = None) -> dict[str, Any]:
        messages = self.messages[kind]
        answers, seconds = _timed(self._search, messages, thread_time)
        ours = sum(seconds)
        figures: dict[str, Any] = {
            "matches_per_message": round(sum(map(len, answers)) / len(answers), 1),
            "corners_per_message": round(sum(region.vertex_count for region in messages) / len(messages), 1),
            "ours_us": _microseconds(ours, answers),
            "engine_us": self._measure_engine(messages, answers),
        }
        differing: Counter[str] = Counter()
        for name, design in self._designs.items():
            geometries = [_geometry(message) for message in messages]  # new ones: preparing is part of the work
            said, theirs = _timed(design.match, geometries, thread_time)
            differing[name] = self._settle(messages[_WARM:], answers, said)
            figures |= {f"{name}_us": _microseconds(sum(theirs), said), f"{name}_to_ours": round(sum(theirs) / ours, 1)}
        if postgis is not None:
            some = messages[: _WARM + self._options.postgis_messages]
            cpu = postgis.cpu_seconds
            said, theirs = _timed(postgis.match, [shapely.to_wkb(_geometry(message)) for message in some], perf_counter)
            cpu = (postgis.cpu_seconds - cpu) * len(said) / len(some)
            differing["postgis"] = self._settle(some[_WARM:], answers, said)
            ours = sum(seconds[: len(said)])
            figures |= {
                "postgis_us": _microseconds(sum(theirs), said),
                "postgis_cpu_us": _microseconds(cpu, said),
                "postgis_to_ours": round(sum(theirs) / ours, 1),
                "postgis_cpu_to_ours": round(cpu / ours, 1),
            }
        figures["differences_settled_for_ours"] = dict(differing)
        return figures

    def _search(self, region: PlanarRegion) -> Found:
        return self._tree.search(edge_region(region))

    def _measure_engine(self, messages: Sequence[PlanarRegion], answers: Sequence[Found]) -> float:
        """The same through `Engine`, which answers with a set of ids: of thousands, making that is most of it."""
        said, seconds = _timed(self._engine.match, [{"area": message} for message in messages], thread_time)
        if not all(map(np.array_equal, said, answers)):
            raise BenchmarkFailed("The engine and its tree found different constraints.")
        return _microseconds(sum(seconds), said)

    def _settle(self, messages: Sequence[PlanarRegion], ours: Sequence[Found], theirs: Sequence[Found]) -> int:
        """How many constraints a peer sees differently; exact arithmetic must be with us on each."""
        count = 0
        for message, mine, other in zip(messages, ours, theirs, strict=False):
            for number in np.setxor1d(mine, other).tolist():
                holds = relate(message, self._regions[number]) == NAMES[self.codes[number]]
                if holds != (number in mine):
                    raise BenchmarkFailed(f"Constraint {number} was decided wrongly for {message.rings}.")
                count += 1
        return count


def _timed(
    match: Callable[[Any], Any], messages: Sequence[Any], clock: Callable[[], float]
) -> tuple[list[Found], list[float]]:
    """The answers to all messages but the first ones, which warm up, and the seconds that each took.

    An answer is copied and let go before the next message comes, as one that is used would be: else every design paid
    for fresh pages of memory, of which the fastest would have most.
    """
    for message in messages[:_WARM]:
        match(message)
    answers, seconds = [], []
    for message in messages[_WARM:]:
        began = clock()
        answer = match(message)
        seconds.append(clock() - began)
        answers.append(np.sort(np.fromiter(answer, np.int64, len(answer))))
    return answers, seconds


def _microseconds(seconds: float, answers: Sequence[Found]) -> float:
    return round(seconds / len(answers) * 1e6, 1)


def _geometry(region: PlanarRegion) -> Any:
    """The region as shapely has it: the first ring is the outer one, others are its holes."""
    return shapely.Polygon(region.rings[0], region.rings[1:])


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__, runs=2)
    parser.add_argument(
        "--data",
        type=Path,
        default=DATA / DATA_SETS["output_areas"].file,
        metavar="FILE",
        help="gzipped GeoJSON of polygons",
    )
    parser.add_argument("--messages", type=positive_int, default=150, metavar="M", help="a kind (default: 150)")
    parser.add_argument("--postgis-messages", type=positive_int, default=30, metavar="M", help="of them (default: 30)")
    parser.add_argument("--without-postgis", action="store_true")
    parser.add_argument("--small", action="store_true", help="a twentieth of the polygons, 20 messages, one run")
    args = parser.parse_args(argv)
    if not args.data.is_file():
        print(f"There is no file {args.data}. Give one with --data.", file=sys.stderr)
        return 1
    polygons = load_geometries(args.data)
    asked_of_postgis = 0 if args.without_postgis else args.postgis_messages
    options, runs = Options(args.messages, asked_of_postgis, args.seed), args.runs
    if args.small:
        polygons = polygons[: len(polygons) // _SMALL]
        options, runs = Options(min(20, args.messages), min(5, asked_of_postgis), args.seed), 1
    return measured(NAME, args, lambda say: measure(polygons, options, runs=runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
