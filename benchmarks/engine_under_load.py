"""What do 10,000 inserts and 10,000 deletes a second do to the time that matching takes?

    python -m benchmarks.engine_under_load --data ../shared/data --json

Two tables: 85,550 real regions with one random relation each, and 100,000 mixed filters of three constraints. First
messages are matched one after the other while nothing else happens. Then predicates are inserted and deleted at random
at that rate, merges are built in a thread as they become due, and messages like the first are matched as before. Who
changes the table is tried in both ways:

- in turn: the thread that matches makes the changes that are due, then matches the next message, as the server does.
  What a message waits for changes is given too (`waited`).
- beside: another thread makes the changes, ten at a time, while this one matches: two threads that want the
  interpreter's lock, and a third that merges.

Times are wall time, because waiting for another thread is what may go wrong; messages are distinct and each is timed
once. It is a failure if the rate was not held. Where the system tells how long a thread that could run had no core, the
times without that are given too: whatever else a machine does takes its cores as well.

Before any figure is given, answers are compared with a linear look at every predicate by the plain reference: a sample
of those given under load, where a predicate that came or went during the match may be in the answer or not, and
another sample when all is still.

The alternative for the dynamic part, the rtree package, is measured beside ours on the same regions: an insert, a
delete, and a search of the boxes alone against a match that decides the relations too.
"""

import gzip
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import perf_counter, sleep
from typing import Any

import msgspec
from rtree import index as rtree_index

from benchmarks.mixed_filters import _draw_filter, _draw_message
from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.spread import percentile, spread
from matcher.constraints import Constraint, Filter, RegionTest, matches
from matcher.engine import Engine
from matcher.planar import PlanarRegion, from_parts, from_rings
from matcher.selector.tree import Relation
from matcher.table.forwarding import Table

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "engine_under_load"
_DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
_FILE = "zones_oa_london_se.geojson.gz"
_TICK_S = 0.001
_HELD = 0.98  # of the rate that was asked for
_SMALL = 10
_RELATIONS = tuple(Relation)

Message = dict[str, Any]


class Options(msgspec.Struct, frozen=True):
    regions: int = 85_550
    filters: int = 100_000
    per_second: int = 10_000  # inserts, and as many deletes
    seconds: float = 10.0
    checked: int = 6  # answers under load, and as many after it
    switch_interval_s: float = 0.00005
    seed: int = 1

    @property
    def small(self) -> "Options":
        return msgspec.structs.replace(
            self, regions=self.regions // _SMALL, filters=self.filters // _SMALL, seconds=self.seconds / 4, checked=2
        )


def measure(
    options: Options, data: Path, *, runs: int = 3, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of the small size and of several seeds at full size."""
    regions = _load(data / _FILE)
    say(f"Warming up with {options.small.regions} regions.")
    small = measure_once(options.small, regions)
    large = []
    for run in range(1, runs + 1):
        say(f"Run {run} of {runs} with {options.regions} regions and {options.filters} mixed filters.")
        large.append(measure_once(msgspec.structs.replace(options, seed=options.seed + run - 1), regions))
    return {"options": msgspec.structs.asdict(options), "runs": runs, "small": spread([small]), "large": spread(large)}


def measure_once(options: Options, regions: Sequence[PlanarRegion]) -> dict[str, Any]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(options.switch_interval_s)
    try:
        return {
            "regions": _both_ways(options, lambda: _region_workload(options, regions)),
            "mixed": _both_ways(options, lambda: _mixed_workload(options)),
            "dynamic_part": {f"of_{size}": _dynamic_part(options, regions, size) for size in (4_000, 16_000)},
        }
    finally:
        sys.setswitchinterval(interval)


# --- what is matched -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Workload:
    filters: list[Filter]  # the first are there from the beginning, the others are inserted in their order
    at_first: int
    message: Callable[[], Message]


def _region_workload(options: Options, regions: Sequence[PlanarRegion]) -> _Workload:
    rng = Random(options.seed)
    chosen = list(regions) if options.regions >= len(regions) else rng.sample(regions, options.regions)
    later = [rng.choice(chosen) for _ in range(_inserts(options))]
    filters: list[Filter] = [
        (Constraint("area", RegionTest(rng.choice(_RELATIONS), region)),) for region in (*chosen, *later)
    ]
    universe = _box(chosen)
    drawn = Random(options.seed + 1000)
    return _Workload(filters, len(chosen), lambda: {"area": _draw_region(drawn, universe)})


def _mixed_workload(options: Options) -> _Workload:
    rng = Random(options.seed)
    filters = [_draw_filter(rng, has_region=rng.random() < 0.5) for _ in range(options.filters + _inserts(options))]
    drawn = Random(options.seed + 1000)
    return _Workload(filters, options.filters, lambda: _draw_message(drawn, has_region=True))


def _inserts(options: Options) -> int:
    return math.ceil(options.per_second * options.seconds)


def _draw_region(rng: Random, universe: tuple[float, float, float, float]) -> PlanarRegion:
    """Round, irregular or narrow (types A, B and C), with an MBR of 1 to 25 % of the universe."""
    west, south, east, north = universe
    share = math.sqrt(rng.uniform(0.01, 0.25))
    width, height = (east - west) * share, (north - south) * share
    x, y = rng.uniform(west, east - width), rng.uniform(south, north - height)
    kind = rng.randrange(3)
    if kind == 2:
        thin = rng.uniform(0.02, 0.1)
        ring = [(0.0, 0.0), (thin, 0.0), (1.0, 1 - thin), (1.0, 1.0), (0.0, thin)]
        if rng.random() < 0.5:
            ring = [(1 - across, up) for across, up in ring]
    else:
        count, least = (10, 0.8) if kind == 0 else (rng.randrange(30, 51), 0.3)
        ring = []
        for corner in range(count):
            angle = 2 * math.pi * (corner + rng.uniform(0, 0.8)) / count
            radius = rng.uniform(least, 1) / 2
            ring.append((0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)))
    return from_rings([[(x + across * width, y + up * height) for across, up in ring]])


def _box(regions: Sequence[PlanarRegion]) -> tuple[float, float, float, float]:
    west, south, east, north = zip(*(region.box for region in regions), strict=True)
    return min(west), min(south), max(east), max(north)


def _load(path: Path) -> list[PlanarRegion]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        features = json.load(file)["features"]
    found = []
    for feature in features:
        coordinates = feature["geometry"]["coordinates"]
        found.append(from_parts([coordinates] if feature["geometry"]["type"] == "Polygon" else coordinates))
    return found


# --- quiet, and under load -------------------------------------------------------------------------------


@dataclass
class _Load:
    """Inserts and deletes at a rate, and begins and finishes merges. Its ticks date every change."""

    engine: Engine
    workload: _Workload
    options: Options
    pool: ThreadPoolExecutor
    ticks: int = 0
    born: dict[int, int] = field(default_factory=dict)
    died: dict[int, int] = field(default_factory=dict)
    inserts: int = 0
    merges: int = 0
    busy_s: float = 0.0
    wall_s: float = 0.0
    failure: BaseException | None = None
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._rng = Random(self.options.seed)
        self._live = list(range(self.workload.at_first))
        self._waiting = iter(range(self.workload.at_first, len(self.workload.filters)))
        self._building: Future[Table] | None = None
        self._began = perf_counter()

    def run(self) -> None:
        """In a thread of its own, until it has inserted all there is."""
        try:
            while not self.stop.is_set():
                sleep(max(0.0, _TICK_S - self.catch_up()))
        except BaseException as failure:
            self.failure = failure

    def catch_up(self) -> float:
        """Make the changes that are due by now; the seconds that it took."""
        woke = perf_counter()
        due = round((woke - self._began) * self.options.per_second) - self.inserts
        self.ticks += 1
        live = self._live
        for owner in self._next(self._waiting, due):
            self.born[owner] = self.ticks
            self.engine.add(owner, (self.workload.filters[owner],))
            live.append(owner)
            place = self._rng.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            gone = live.pop()
            self.died[gone] = self.ticks
            self.engine.remove(gone)
        self.ticks += 1
        if self._building is None and self.engine.is_merge_due:
            self._building = self.pool.submit(self.engine.begin_merge().build)
        elif self._building is not None and self._building.done():
            self.engine.finish_merge(self._building.result())
            self._building, self.merges = None, self.merges + 1
        now = perf_counter()
        self.busy_s += now - woke
        self.wall_s = now - self._began
        return now - woke

    def _next(self, waiting: Iterator[int], count: int) -> Iterator[int]:
        for _ in range(count):
            owner = next(waiting, None)
            if owner is None:
                self.stop.set()
                return
            self.inserts += 1
            yield owner


@dataclass(frozen=True)
class _Seen:
    """An answer with the ticks between which it was found."""

    message: Message
    answer: set[Any]
    first: int
    last: int


def _both_ways(options: Options, workload: Callable[[], _Workload]) -> dict[str, Any]:
    return {"in_turn": _under_load(options, workload(), _in_turn), "beside": _under_load(options, workload(), _beside)}


def _under_load(
    options: Options, workload: _Workload, arrangement: "Callable[[_Load], tuple[dict[str, _Times], list[_Seen]]]"
) -> dict[str, Any]:
    began = perf_counter()
    engine = Engine((number, (workload.filters[number],)) for number in range(workload.at_first))
    build_s = perf_counter() - began
    engine.match_many(workload.message() for _ in range(20))
    quiet = _Times()
    until = perf_counter() + options.seconds / 2
    while perf_counter() < until:
        quiet.match(engine, workload.message())
    with ThreadPoolExecutor(1) as pool:
        load = _Load(engine, workload, options, pool)
        times, seen = arrangement(load)
    if load.failure is not None:
        raise BenchmarkFailed("The thread that inserts and deletes has failed.") from load.failure
    rate = load.inserts / load.wall_s
    if rate < _HELD * options.per_second:
        raise BenchmarkFailed(f"Only {rate:.0f} inserts and deletes a second were done.")
    _check(workload, load, _sample(seen, options.checked))
    still = [_Seen(message, engine.match(message), load.ticks + 1, load.ticks + 1) for message in
             (workload.message() for _ in range(options.checked))]  # fmt: skip
    _check(workload, load, still)
    at_rest = quiet.figures()
    return {
        "build_s": round(build_s, 2),
        "quiet_us": at_rest,
        **{f"{name}_us": each.figures() for name, each in times.items()},
        **{f"{name}_to_quiet": _ratios(each.figures(), at_rest) for name, each in times.items()},
        "inserts_per_second": round(rate),
        "deletes_per_second": round(len(load.died) / load.wall_s),
        "change_us": round(load.busy_s / load.inserts * 1e6, 1),
        "merges": load.merges,
        "matches_per_message": round(sum(len(each.answer) for each in seen) / len(seen), 1),
    }


def _ratios(loaded: dict[str, Any], quiet: dict[str, Any]) -> dict[str, float]:
    return {name: round(loaded[name] / quiet[name], 2) for name in ("p50", "p99", "on_a_core_p99") if quiet[name]}


def _in_turn(load: _Load) -> "tuple[dict[str, _Times], list[_Seen]]":
    matching, waited, seen = _Times(), _Times(), []
    while not load.stop.is_set():
        message = load.workload.message()
        ready, began = _ready_s(), perf_counter()
        load.catch_up()
        answer = matching.match(load.engine, message)
        waited.add(perf_counter() - began, ready)
        if len(matching.wall_s) % 50 == 1:
            seen.append(_Seen(message, answer, load.ticks + 1, load.ticks + 1))
    return {"loaded": matching, "waited": waited}, seen


def _beside(load: _Load) -> "tuple[dict[str, _Times], list[_Seen]]":
    times, seen = _Times(), []
    thread = Thread(target=load.run)
    thread.start()
    while not load.stop.is_set() and load.failure is None:
        message = load.workload.message()
        first = load.ticks
        answer = times.match(load.engine, message)
        if len(times.wall_s) % 50 == 1:
            seen.append(_Seen(message, answer, first, load.ticks))
    thread.join()
    return {"loaded": times}, seen


class _Times:
    """How long matches took, and for how much of that the thread was ready to run but had no core."""

    def __init__(self) -> None:
        self.wall_s: list[float] = []
        self._ready_s: list[float] = []

    def match(self, engine: Engine, message: Message) -> set[Any]:
        ready = _ready_s()
        began = perf_counter()
        answer = engine.match(message)
        self.add(perf_counter() - began, ready)
        return answer

    def add(self, wall_s: float, ready_before_s: float | None) -> None:
        self.wall_s.append(wall_s)
        if ready_before_s is not None:
            self._ready_s.append((_ready_s() or 0.0) - ready_before_s)

    def figures(self) -> dict[str, Any]:
        on_a_core = [wall - ready for wall, ready in zip(self.wall_s, self._ready_s, strict=False)]
        return {
            "p50": _us(percentile(self.wall_s, 0.5)),
            "p99": _us(percentile(self.wall_s, 0.99)),
            "max": _us(max(self.wall_s)),
            "on_a_core_p99": _us(percentile(on_a_core, 0.99)),
            "messages": len(self.wall_s),
        }


def _ready_s() -> float | None:
    try:
        with open("/proc/thread-self/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return None


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


# --- the answers -----------------------------------------------------------------------------------------


def _sample(seen: Sequence[_Seen], count: int) -> list[_Seen]:
    step = max(1, len(seen) // count)
    return list(seen[::step][:count])


def _check(workload: _Workload, load: _Load, seen: Sequence[_Seen]) -> None:
    """A change that began before the match and ended after it counts either way."""
    for each in seen:
        for owner, constraints in enumerate(workload.filters):
            born, died = load.born.get(owner, 0), load.died.get(owner, math.inf)
            if owner >= workload.at_first and owner not in load.born:
                may = must = False
            else:
                may = born <= each.last and died >= each.first
                must = born < each.first and died > each.last
            is_found = owner in each.answer
            if (must or is_found) and matches((constraints,), each.message) is not is_found:
                raise BenchmarkFailed(f"Predicate {owner} is {'' if is_found else 'not '}in an answer, wrongly.")
            if is_found and not may:
                raise BenchmarkFailed(f"Predicate {owner} is in an answer, but was not there at that time.")


# --- the dynamic part, and the rtree package -------------------------------------------------------------


def _dynamic_part(options: Options, regions: Sequence[PlanarRegion], size: int) -> dict[str, float]:
    rng = Random(options.seed)
    universe = _box(regions)
    tests = [RegionTest(rng.choice(_RELATIONS), region) for region in rng.sample(regions, size)]
    messages = [_draw_region(rng, universe) for _ in range(150)]
    predicates = [((Constraint("area", test),),) for test in tests]
    engine = Engine()
    tree = rtree_index.Index()
    order = rng.sample(range(size), size // 4)
    figures = {
        "insert_us": _each(lambda number: engine.add(number, predicates[number]), range(size)),
        "match_us": _each(lambda number: engine.match({"area": messages[number]}), range(150)),
        "delete_us": _each(engine.remove, order),
        "rtree_insert_us": _each(lambda number: tree.insert(number, tests[number].region.box), range(size)),
        "rtree_search_us": _each(lambda number: list(tree.intersection(messages[number].box)), range(150)),
        "rtree_delete_us": _each(lambda number: tree.delete(number, tests[number].region.box), order),
    }
    return {name: round(us, 1) for name, us in figures.items()}


def _each(act: Callable[[int], Any], numbers: Sequence[int]) -> float:
    began = perf_counter()
    for number in numbers:
        act(number)
    return (perf_counter() - began) / len(numbers) * 1e6


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--data", type=Path, default=_DATA, metavar="FOLDER", help=f"that has {_FILE}")
    parser.add_argument(
        "--per-second", type=positive_int, default=10_000, metavar="N", help="inserts, and as many deletes"
    )
    parser.add_argument("--seconds", type=positive_int, default=10, metavar="S", help="under load (default: 10)")
    args = parser.parse_args(argv)
    if not (args.data / _FILE).is_file():
        parser.error(f"{args.data} has no {_FILE}")
    options = Options(per_second=args.per_second, seconds=float(args.seconds), seed=args.seed)
    return measured(NAME, args, lambda say: measure(options, args.data, runs=args.runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
