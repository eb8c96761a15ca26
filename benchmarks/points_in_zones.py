"""How much faster than GEOS are fixes looked up in 5,000 and in 100,000 zones?

    python -m benchmarks.points_in_zones --json

Two kinds of zones. `areas` are real polygons: the 85,550 census areas around London, which tile the ground, and
buildings and communes to make 100,000; the small set is the 5,000 nearest to the middle of London. `overlapping` are
random circles and star-shaped polygons, so many to the ground that a point lies in about five. Fixes lie where zones
are: of the areas in the box of a random one, of the others anywhere among them.

The peer is `shapely.STRtree.query` with the predicate `intersects`, which counts the boundary as we do: one point at a
time, and an array of points in one call. Its points are made before, and its circles are polygons of 64 corners. Ours
takes two arrays of coordinates and ends with two arrays of pairs, row and zone, in batches of 500 and all at once; with
Python keys; and one fix at a time.

Before anything is timed, the pairs must be those of the tree for all polygons (where they differ, the zone's own test
decides), and for some fixes those of the zones' own tests for all zones. Times are CPU time of the thread, the best of
five rounds after one to warm up; of single fixes wall time, each by itself.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from random import Random
from time import perf_counter, thread_time
from typing import Any

import msgspec
import numpy as np
import shapely
from numpy.typing import NDArray

from benchmarks.support.measurement_command import BenchmarkFailed, command, measured, positive_int
from benchmarks.support.region_data import load_geometries
from benchmarks.support.spread import percentile, spread
from benchmarks.support.workloads import DATA, DATA_SETS
from matcher.places import Place
from matcher.plain_zone_index import PlainZoneIndex
from matcher.warmup import warm_up
from matcher.zone_index import ZoneIndex
from zones.covers import outline
from zones.shapes import Circle, MultiPolygon, Polygon, Shape

__all__ = ["BenchmarkFailed", "Options", "main", "measure", "measure_once"]

NAME = "points_in_zones"
_BATCH = 500
_ROUNDS = 5
_DEEP = 5  # overlapping zones over a point
_CHECKED = 2_000
_LONDON = (-0.1276, 51.5072)
_Floats = NDArray[np.float64]


class Options(msgspec.Struct, frozen=True):
    zones: tuple[int, ...] = (5_000, 100_000)
    points: int = 200_000
    points_one_by_one: int = 20_000
    seed: int = 1


def measure(
    data: Path, options: Options, *, runs: int = 2, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The figures of every kind and number of zones, with the spread of several seeds."""
    say("Warming up.")
    warm_up()
    figures: dict[str, Any] = {"options": msgspec.structs.asdict(options), "runs": runs}
    for kind in ("areas", "overlapping"):
        for count in options.zones:
            found = []
            for run in range(1, runs + 1):
                say(f"Run {run} of {runs} with {count} {kind}.")
                found.append(
                    measure_once(data, kind, count, msgspec.structs.replace(options, seed=options.seed + run - 1))
                )
            figures[f"{kind}_{count}"] = spread(found)
    return figures


def measure_once(data: Path, kind: str, count: int, options: Options) -> dict[str, Any]:
    rng = Random(options.seed)
    if kind == "areas":
        shapes, geometries = _areas(data, count)
        lons, lats = _points_in_boxes(rng, shapely.bounds(geometries), options.points)
    else:
        shapes = _overlapping(rng, count)
        geometries = np.array([outline(shape) for shape in shapes], dtype=object)
        west, south, east, north = shapely.total_bounds(geometries).tolist()
        lons, lats = _points_in_boxes(rng, np.array([[west, south, east, north]]), options.points)
    began = thread_time()
    index = ZoneIndex(enumerate(shapes))
    build_s = thread_time() - began
    began = thread_time()
    tree = shapely.STRtree(geometries)
    tree.query(shapely.Point(0, 0))  # it is made when it is asked first
    tree_build_s = thread_time() - began
    points = shapely.points(lons, lats)
    pairs = _check(shapes, index, tree, points, lons, lats)
    some = options.points_one_by_one
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "ours": (partial(_in_batches, index, lons, lats, _BATCH), len(lons)),
        "ours_at_once": (partial(index.covering_many, lons, lats), len(lons)),
        "ours_with_keys": (partial(_with_keys, index, lons, lats), len(lons)),
        "strtree_one_by_one": (partial(_one_by_one, tree, points[:some]), some),
        "strtree_bulk": (partial(tree.query, points, predicate="intersects"), len(lons)),
    }
    us = _timed(ways)
    singles = _singles(index, lons[:some].tolist(), lats[:some].tolist())
    return {
        "zones": count,
        "corners_per_zone": round(float(shapely.get_num_coordinates(geometries).mean()), 1),
        "zones_per_point": round(len(pairs[0]) / len(lons), 2),
        "points_in_some_zone": round(len(np.unique(pairs[0])) / len(lons), 3),
        "build_s": round(build_s, 2),
        "build_us_per_zone": round(build_s / count * 1e6, 1),
        "bytes_per_zone": round(index.nbytes / count),
        "strtree_build_s": round(tree_build_s, 2),
        **{f"{way}_us": round(time, 3) for way, time in us.items()},
        "strtree_one_by_one_to_ours": round(us["strtree_one_by_one"] / us["ours"], 1),
        "strtree_bulk_to_ours": round(us["strtree_bulk"] / us["ours"], 1),
        "single_p50_us": round(percentile(singles, 0.5) or 0, 2),
        "single_p99_us": round(percentile(singles, 0.99) or 0, 2),
    }


# --- zones and fixes --------------------------------------------------------------------------------------


@cache
def _all_areas(data: Path) -> NDArray[Any]:
    files = [DATA_SETS[name].file for name in ("output_areas", "buildings", "communes")]
    return np.concatenate([load_geometries(data / file) for file in files])


def _areas(data: Path, count: int) -> tuple[list[Shape], NDArray[Any]]:
    geometries = _all_areas(data)
    if count > len(geometries):
        raise BenchmarkFailed(f"There are only {len(geometries)} areas.")
    if count < 50_000:
        apart = shapely.distance(shapely.centroid(geometries), shapely.Point(_LONDON))
        geometries = geometries[np.argsort(apart, kind="stable")[:count]]
    else:
        geometries = geometries[:count]
    return [_shape(geometry) for geometry in geometries], geometries


def _shape(geometry: Any) -> Shape:
    parts = tuple(
        tuple(
            tuple((lon, lat) for lon, lat in shapely.get_coordinates(ring).tolist())
            for ring in (part.exterior, *part.interiors)
        )
        for part in shapely.get_parts(geometry)
    )
    return Polygon(parts[0]) if len(parts) == 1 else MultiPolygon(parts)


def _overlapping(rng: Random, count: int) -> list[Shape]:
    """Circles and stars around London, half and half, of which about five lie over each point."""
    half = 0.25 * math.sqrt(count / 5_000)  # degrees; the ground grows with the number
    lat_scale = math.cos(math.radians(_LONDON[1]))
    metres = 111_300.0
    mean_m = math.sqrt(_DEEP * (2 * half * metres) ** 2 * lat_scale / count / math.pi)
    shapes: list[Shape] = []
    for number in range(count):
        lon, lat = (middle + rng.uniform(-half, half) for middle in _LONDON)
        size_m = mean_m * rng.uniform(0.3, 1.5)
        if number % 2:
            shapes.append(Circle((lon, lat), size_m))
            continue
        corners = rng.randint(5, 40)
        ring = []
        for corner in range(corners):
            angle, reach = math.tau * corner / corners, size_m * rng.uniform(0.6, 1.2) / metres
            ring.append((lon + reach * math.cos(angle) / lat_scale, lat + reach * math.sin(angle)))
        shapes.append(Polygon(((*ring, ring[0]),)))
    return shapes


def _points_in_boxes(rng: Random, boxes: _Floats, count: int) -> tuple[_Floats, _Floats]:
    """Fixes anywhere in boxes, each of which has as many."""
    draw = np.random.default_rng(rng.randrange(2**32))
    west, south, east, north = boxes[draw.integers(0, len(boxes), count)].T
    return west + (east - west) * draw.random(count), south + (north - south) * draw.random(count)


# --- answers and times ------------------------------------------------------------------------------------


def _check(
    shapes: Sequence[Shape], index: ZoneIndex, tree: Any, points: NDArray[Any], lons: _Floats, lats: _Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rows, slots = index.covering_many(lons, lats)
    is_drawn = np.array([not isinstance(shape, Circle) for shape in shapes])
    ours = (rows * len(shapes) + slots)[is_drawn[slots]]
    their_rows, their_slots = tree.query(points, predicate="intersects")
    theirs = (their_rows * len(shapes) + their_slots)[is_drawn[their_slots]]
    for pair in np.setxor1d(ours, theirs).tolist():
        row, slot = divmod(pair, len(shapes))
        if Place(shapes[slot]).covers((float(lons[row]), float(lats[row]))) != (pair in ours):
            raise BenchmarkFailed(f"Zone {slot} was decided wrongly at {lons[row]}, {lats[row]}.")
    plain = PlainZoneIndex(enumerate(shapes)).covering_many(lons[:_CHECKED], lats[:_CHECKED])
    first = rows < _CHECKED
    if set(zip(*(each.tolist() for each in plain), strict=True)) != set(
        zip(rows[first].tolist(), slots[first].tolist(), strict=True)
    ):
        raise BenchmarkFailed("The index and the zones' own tests differ.")
    return rows, slots


def _in_batches(index: ZoneIndex, lons: _Floats, lats: _Floats, size: int) -> None:
    for start in range(0, len(lons), size):
        index.covering_many(lons[start : start + size], lats[start : start + size])


def _with_keys(index: ZoneIndex, lons: _Floats, lats: _Floats) -> None:
    keys = index.keys
    for start in range(0, len(lons), _BATCH):
        rows, slots = index.covering_many(lons[start : start + _BATCH], lats[start : start + _BATCH])
        for _row, _key in zip(rows.tolist(), [keys[slot] for slot in slots.tolist()], strict=True):
            pass


def _one_by_one(tree: Any, points: NDArray[Any]) -> None:
    query = tree.query
    for point in points:
        query(point, predicate="intersects")


def _timed(ways: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Microseconds for a point: the best of some rounds, after one that warms up."""
    best = dict.fromkeys(ways, math.inf)
    for name, (run, count) in ways.items():
        run()
        for _ in range(_ROUNDS):
            began = thread_time()
            run()
            best[name] = min(best[name], (thread_time() - began) / count * 1e6)
    return best


def _singles(index: ZoneIndex, lons: Sequence[float], lats: Sequence[float]) -> list[float]:
    times = []
    for point in zip(lons, lats, strict=True):
        began = perf_counter()
        index.covering(point)
        times.append((perf_counter() - began) * 1e6)
    return times


# --- the command -----------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    parser = command(NAME, __doc__)
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="with the files of the areas")
    parser.add_argument("--points", type=positive_int, default=200_000, metavar="N", help="fixes (default: 200000)")
    parser.add_argument("--small", action="store_true", help="1,000 zones, 20,000 fixes, one run")
    args = parser.parse_args(argv)
    missing = [each.file for each in DATA_SETS.values() if not (args.data / each.file).is_file()]
    if missing:
        print(f"There is no file {args.data / missing[0]}. Name its folder with --data.", file=sys.stderr)
        return 1
    options, runs = Options(points=args.points, seed=args.seed), args.runs
    if args.small:
        options, runs = Options((1_000,), min(20_000, args.points), 2_000, args.seed), 1
    return measured(NAME, args, lambda say: measure(args.data, options, runs=runs, say=say))


if __name__ == "__main__":
    sys.exit(main())
