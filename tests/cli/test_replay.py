"""`fencepost replay`: equal to a plain reference on real traces, what it prints and writes, and what it refuses."""

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import cos, hypot, radians
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from geographiclib.geodesic import Geodesic

from server.cli.main import main

SQUARE = [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]
NORTH = [[[0, 4], [4, 4], [4, 8], [0, 8], [0, 4]]]  # shares an edge with the square


def feature(id: Any, coordinates: Any, kind: str = "Polygon") -> dict[str, Any]:
    return {
        "type": "Feature",
        "id": id,
        "properties": {},
        "geometry": {"type": kind, "coordinates": coordinates},
    }


def save_zones(path: Path, *features: dict[str, Any]) -> str:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return str(path)


def save_trace(path: Path, columns: dict[str, Any]) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


@pytest.fixture
def zones(tmp_path: Path) -> str:
    return save_zones(tmp_path / "zones.geojson", feature("south", SQUARE), feature(7, NORTH))


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[dict[str, Any], list[Any]]]:
    def run(*argv: str) -> tuple[dict[str, Any], list[Any]]:
        out = tmp_path / "told.parquet"
        code = main(["replay", *argv, "--json", "--out", str(out)])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        (line,) = captured.out.splitlines()
        return json.loads(line), rows(out)

    return run


def rows(path: Path) -> list[tuple[Any, ...]]:
    table = pq.read_table(path)
    assert table.schema.names == ["oid", "ts", "target", "mode", "lon", "lat"]
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def refused(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 1) -> str:
    capsys.readouterr()
    assert main(["replay", *argv]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


# --- real traces over real zones -------------------------------------------------------------------


class Bus:
    """A vehicle of the reference, which shares no code with what it checks."""

    def __init__(self) -> None:
        self.inside: dict[str, int] = {}  # zones it is told to be in
        self.waiting: dict[str, int] = {}  # zones in which it must stay for a while, and since when
        self.done: set[str] = set()
        self.seen: tuple[int, float, float] | None = None


class Reference:
    """One `covers` per point and zone, and a machine for each vehicle."""

    def __init__(self, trace: pa.Table, polygons: dict[str, shapely.Geometry]) -> None:
        self.rows = list(zip(*(trace[name].to_pylist() for name in ("oid", "ts", "lon", "lat")), strict=True))
        points = shapely.points(trace["lon"].to_numpy(), trace["lat"].to_numpy())
        self.names = list(polygons)
        self.covered: list[list[int]] = [[] for _ in self.rows]
        for number, polygon in enumerate(polygons.values()):
            shapely.prepare(polygon)
            for row in np.flatnonzero(shapely.covers(polygon, points)).tolist():
                self.covered[row].append(number)

    def told(self, tos: str, dwell_ms: int = 0, speeds: list[float | None] | None = None) -> list[tuple[Any, ...]]:
        buses: dict[str, Bus] = {}
        told: list[tuple[Any, ...]] = []
        for row, (oid, ts, lon, lat) in enumerate(self.rows):
            bus = buses.setdefault(oid, Bus())
            if bus.seen is not None and ts <= bus.seen[0]:
                continue
            told += self._ended(oid, bus, ts, dwell_ms, tos)
            here = {self.names[number] for number in self.covered[row]}
            is_slow = None if speeds is None else speeds[row]
            for zone in self.names:
                holds: bool | None = zone in here
                if holds and speeds is not None:
                    holds = None if is_slow is None else is_slow < 4.0
                told += [(oid, ts, zone, mode, lon, lat) for mode in self._step(bus, zone, holds, ts, dwell_ms, tos)]
            bus.seen = (ts, lon, lat)
        last = max(ts for _, ts, _, _ in self.rows)
        for oid, bus in buses.items():
            told += self._ended(oid, bus, last, dwell_ms, tos)
        return sorted(told, key=lambda each: each[1])

    def _ended(self, oid: str, bus: Bus, now: int, dwell_ms: int, tos: str) -> Iterator[tuple[Any, ...]]:
        due = [(since + dwell_ms, zone) for zone, since in bus.waiting.items() if since + dwell_ms <= now]
        assert bus.seen is not None or not due
        for at, zone in sorted(due, key=lambda each: (each[0], self.names.index(each[1]))):
            del bus.waiting[zone]
            bus.inside[zone] = at
            bus.done.add(zone)
            yield (oid, at, zone, "enter", bus.seen[1], bus.seen[2])

    def _step(self, bus: Bus, zone: str, holds: bool | None, ts: int, dwell_ms: int, tos: str) -> list[str]:
        if holds is None:
            return []
        if tos == "every":
            return ["match"] if holds else []
        if tos == "first" and zone in bus.done:
            return []
        if not holds:
            bus.waiting.pop(zone, None)
            return ["leave"] if bus.inside.pop(zone, None) is not None else []
        if zone in bus.inside:
            return []
        if dwell_ms:
            bus.waiting.setdefault(zone, ts)
            return []
        bus.inside[zone] = ts
        bus.done.add(zone)
        return ["enter"]


class Austin:
    def __init__(self, shared_data: Path, folder: Path) -> None:
        self.zones = str(shared_data / "zones_austin_neighbourhoods.geojson.gz")
        with gzip.open(self.zones) as file:
            features = json.load(file)["features"]
        polygons = {f"SYSTEM.{each['id']}": shapely.geometry.shape(each["geometry"]) for each in features}
        table = pq.read_table(shared_data / "traj_austin_bus.parquet")
        self.reference = Reference(table, polygons)
        self.speeds = list(_speeds(self.reference.rows))
        self.trace = str(folder / "buses.parquet")
        pq.write_table(table.append_column("speed", pa.array(self.speeds, pa.float64())), self.trace)


def _speeds(fixes: list[tuple[str, int, float, float]]) -> Iterator[float | None]:
    """Metres a second since the fix before, as good as a flat map gives them; a vehicle's first has none."""
    before: dict[str, tuple[int, float, float]] = {}
    for oid, ts, lon, lat in fixes:
        last = before.get(oid)
        before[oid] = (ts, lon, lat)
        if last is None or ts == last[0]:
            yield None
        else:
            yield hypot((lon - last[1]) * cos(radians(30.3)), lat - last[2]) * 111_195 / ((ts - last[0]) / 1000)


@pytest.fixture(scope="module")
def austin(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Austin:
    return Austin(shared_data, tmp_path_factory.mktemp("austin"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tos", "dwell_s", "with_speed"),
    [
        ("once", 0, False),
        ("once", 0, True),
        ("once", 600, False),
        ("once", 60, True),
        ("first", 0, False),
        ("first", 600, True),
        ("every", 0, False),
        ("every", 0, True),
    ],
)
def test_real_traces_give_what_a_plain_reference_gives(tos, dwell_s, with_speed, austin: Austin, replay):
    selector = "(*) within (SYSTEM.*)" + (" AND speed < 4" if with_speed else "")
    options = ["--dwell-s", str(dwell_s)] if dwell_s else []
    argv = ["--zones", austin.zones, "--trace", austin.trace, "--selector", selector, "--tos", tos, *options]
    counts, told = replay(*argv)
    expected = austin.reference.told(tos, dwell_s * 1000, austin.speeds if with_speed else None)
    assert len(expected) > 1000
    assert told == expected
    modes = [each[3] for each in expected]
    assert counts == {
        "samples": 138_281,
        "objects": 182,
        "late": 0,
        "enters": modes.count("enter"),
        "leaves": modes.count("leave"),
        "matches": modes.count("match"),
        "messages": {"server": 138_281, "device": len(expected), "dispatch": 182},
    }


def _encounters(fixes: list[tuple[str, int, float, float]], left: str, metres: float) -> list[tuple[Any, ...]]:
    """Every pair with that vehicle, looked at whenever one of the two is heard of."""
    newest: dict[str, tuple[int, float, float]] = {}
    near: set[str] = set()
    told: list[tuple[Any, ...]] = []
    for oid, ts, lon, lat in fixes:
        newest[oid] = (ts, lon, lat)
        here = newest.get(left)
        for other in [each for each in newest if each != left] if oid == left else [oid]:
            there = newest[other]
            if here is None or ts - here[0] > 300_000 or ts - there[0] > 300_000:
                continue
            is_near = Geodesic.WGS84.Inverse(here[2], here[1], there[2], there[1])["s12"] < metres
            if is_near is not (other in near):
                near ^= {other}
                told.append((left, ts, other, "enter" if is_near else "leave", here[1], here[2]))
    return told


@pytest.mark.slow
def test_real_encounters_are_what_a_plain_reference_finds(austin: Austin, replay):
    selector = "('bus-8854') distance (800, *)"
    _, told = replay("--zones", austin.zones, "--trace", austin.trace, "--selector", selector)
    expected = _encounters(austin.reference.rows, "bus-8854", 800)
    assert len(expected) > 1000
    assert told == expected


# --- what goes in ----------------------------------------------------------------------------------

WALK = {
    "oid": ["mike", "mike", "anna/van 7", "mike", "mike"],
    "ts": [1000, 2000, 2000, 3000, 4000],
    "lon": [-1.0, 1.0, 4.0, 2.0, 2.0],
    "lat": [1.0, 1.0, 4.0, 5.0, 9.0],
}


def test_enters_and_leaves_of_a_walk(zones: str, tmp_path: Path, replay):
    counts, told = replay(
        "--zones", zones, "--trace", save_trace(tmp_path / "t", WALK), "--selector", "(*) within (SYSTEM.*)"
    )
    assert told == [
        ("mike", 2000, "SYSTEM.south", "enter", 1.0, 1.0),
        ("anna/van 7", 2000, "SYSTEM.south", "enter", 4.0, 4.0),  # on the corner of both
        ("anna/van 7", 2000, "SYSTEM.7", "enter", 4.0, 4.0),
        ("mike", 3000, "SYSTEM.south", "leave", 2.0, 5.0),
        ("mike", 3000, "SYSTEM.7", "enter", 2.0, 5.0),
        ("mike", 4000, "SYSTEM.7", "leave", 2.0, 9.0),
    ]
    assert counts == {
        "samples": 5,
        "objects": 2,
        "late": 0,
        "enters": 4,
        "leaves": 2,
        "matches": 0,
        "messages": {"server": 5, "device": 6, "dispatch": 2},
    }


def test_fixes_that_are_not_newer_are_late_and_change_nothing(zones: str, tmp_path: Path, replay):
    trace = {
        "oid": ["a", "a", "b", "a", "a"],
        "ts": [2000, 1000, 1000, 2000, 3000],
        "lon": [-1.0, 1.0, 1.0, 1.0, -1.0],
        "lat": [1.0] * 5,
    }
    counts, told = replay(
        "--zones", zones, "--trace", save_trace(tmp_path / "t", trace), "--selector", "(*) within (SYSTEM.south)"
    )
    assert (counts["late"], counts["samples"]) == (2, 5)
    assert [each[:4] for each in told] == [("b", 1000, "SYSTEM.south", "enter")]


def test_other_columns_are_pairs_of_the_event(zones: str, tmp_path: Path, replay):
    days = [datetime(2026, 11, day, tzinfo=UTC) for day in (17, 18, 19)]
    trace = {
        "oid": pa.array(["a"] * 3).dictionary_encode(),
        "ts": pa.array(days, pa.timestamp("us", "UTC")),
        "lon": pa.array([1, 1, 1], pa.int32()),
        "lat": pa.array([1, 1, 1], pa.float32()),
        "floor": pa.array([3, None, 5], pa.uint8()),
        "wind": [0.5, 1.5, None],
        "line": ["M1", "M2", "M1"],
        "open": [True, None, False],
        "until": pa.array(days, pa.timestamp("s")),
        "picture": [b"", b"", b""],  # which no pair can hold, and nobody asks for
    }
    file = save_trace(tmp_path / "t", trace)

    def days_of(condition: str) -> list[int]:
        argv = ["--zones", zones, "--trace", file, "--tos", "every"]
        _, told = replay(*argv, "--selector", f"(*) within (SYSTEM.south) AND {condition}")
        return [datetime.fromtimestamp(each[1] / 1000, UTC).day for each in told]

    assert days_of("TRUE") == [17, 18, 19]
    assert days_of("floor > 3") == [19]
    assert days_of("floor IS NULL") == [18]
    assert days_of("wind BETWEEN 1 AND 2") == [18]
    assert days_of("line = 'M1'") == [17, 19]
    assert days_of("NOT open") == [19]
    assert days_of("until >= TIMESTAMP '2026-11-18T00:00:00Z'") == [18, 19]


def test_the_uncertainty_of_a_fix_is_its_region(zones: str, tmp_path: Path, replay):
    trace = {"oid": ["a", "a"], "ts": [1, 2], "lon": [2.0, 4.0], "lat": [2.0, 2.0], "unc": [10.0, 10.0]}
    argv = ["--zones", zones, "--trace", save_trace(tmp_path / "t", trace), "--tos", "every"]
    assert [each[1] for each in replay(*argv, "--selector", "(*) inside (SYSTEM.south)")[1]] == [1]
    assert [each[1] for each in replay(*argv, "--selector", "(*) overlaps (SYSTEM.south)")[1]] == [2]


def test_a_selector_for_the_whole_list_has_no_target(zones: str, tmp_path: Path, replay):
    argv = ["--zones", zones, "--trace", save_trace(tmp_path / "t", WALK), "--modes", "enter"]
    _, told = replay(*argv, "--selector", "NOT (mike) within (SYSTEM.*)")
    assert told == [("mike", 1000, None, "enter", -1.0, 1.0), ("mike", 4000, None, "enter", 2.0, 9.0)]


def test_zones_are_named_by_ids_without_dots_and_may_be_packed(tmp_path: Path, replay, capsys):
    doubled = [[[0, 0], [4, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]
    file = save_zones(tmp_path / "z", feature("hall.1", doubled), feature("b", NORTH))
    packed = tmp_path / "z.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + Path(file).read_bytes()))
    argv = ["--zones", str(packed), "--trace", save_trace(tmp_path / "t", WALK)]
    assert main(["replay", *argv, "--selector", "(mike) within (SYSTEM.HALL_1)", "--tos", "first", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["enters"] == 1
    assert captured.err.splitlines() == [
        "Points that repeat the one before are left out, in 1 zones; an import refuses them.",
        "'hall.1' is called SYSTEM.hall_1, because a zone's own name has no dot.",
    ]


def test_dead_bands_and_crossings_are_replayed(zones: str, tmp_path: Path, replay):
    trace = {
        "oid": ["a"] * 5,
        "ts": [0, 10_000, 20_000, 30_000, 40_000],
        "lon": [-1.0, 0.1, 2.0, -0.1, -1.0],  # 0.1 degrees are 11 km
        "lat": [2.0] * 5,
    }
    argv = ["--zones", zones, "--trace", save_trace(tmp_path / "t", trace), "--selector", "(*) within (SYSTEM.*)"]
    assert [(each[1], each[3]) for each in replay(*argv)[1]] == [(10_000, "enter"), (30_000, "leave")]
    band = replay(*argv, "--hysteresis-m", "20000")[1]
    assert [(each[1], each[3]) for each in band] == [(20_000, "enter"), (40_000, "leave")]
    through = {"oid": ["a"] * 2, "ts": [0, 8000], "lon": [-2.0, 6.0], "lat": [2.0] * 2}
    argv[3] = save_trace(tmp_path / "t", through)
    assert replay(*argv)[1] == []
    assert replay(*argv, "--crossing")[1] == [
        ("a", 2000, "SYSTEM.south", "enter", 0.0, 2.0),
        ("a", 6000, "SYSTEM.south", "leave", 4.0, 2.0),
    ]


def test_lines_for_people(zones: str, tmp_path: Path, capsys):
    argv = ["--zones", zones, "--trace", save_trace(tmp_path / "t", WALK), "--selector", "(*) within (SYSTEM.*)"]
    assert main(["replay", *argv]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "5 fixes of 2 objects",
        "told: 4 enters, 2 leaves, 0 matches",
        "sent: 5 messages if the server evaluates",
        "      6 reports and 2 plans if devices do",
    ]


def test_an_empty_trace_gives_nothing(zones: str, tmp_path: Path, replay):
    empty = {"oid": pa.array([], pa.string()), "ts": pa.array([], pa.int64())}
    empty |= {name: pa.array([], pa.float64()) for name in ("lon", "lat")}
    counts, told = replay(
        "--zones", zones, "--trace", save_trace(tmp_path / "t", empty), "--selector", "(*) within (SYSTEM.*)"
    )
    assert told == []
    assert set(counts["messages"].values()) == {0}


# --- refusals --------------------------------------------------------------------------------------


@pytest.fixture
def argv(zones: str, tmp_path: Path) -> dict[str, str]:
    trace = save_trace(tmp_path / "walk.parquet", WALK)
    return {"--zones": zones, "--trace": trace, "--selector": "(*) within (SYSTEM.*)"}


def flat(options: dict[str, str]) -> list[str]:
    return [word for pair in options.items() for word in pair]


def test_a_bad_selector_is_shown_with_a_pointer(argv, capsys):
    said = refused(capsys, *flat(argv | {"--selector": "(*) within SYSTEM.south"}))
    text, pointer, sentence = said.splitlines()
    assert text == "(*) within SYSTEM.south"
    assert pointer == "           ^"
    assert sentence.startswith("fencepost: ")
    assert "column 12" in sentence


@pytest.mark.parametrize("name", ["--zones", "--trace"])
def test_a_missing_file_is_named(name: str, argv, capsys):
    assert refused(capsys, *flat(argv | {name: "nowhere"})) == "fencepost: nowhere: No such file or directory.\n"


def test_a_folder_that_is_not_there_is_noticed_before_the_work(argv, tmp_path, capsys):
    said = refused(capsys, *flat(argv | {"--out": str(tmp_path / "no" / "told.parquet")}))
    assert said.startswith("fencepost: There is no folder ")


@pytest.mark.parametrize("selector", ["(*) within (SYSTEM.nord)", "(*) within (mike.HOME)", "(*) within (mike.*)"])
def test_an_unknown_zone_is_named(selector: str, argv, capsys):
    said = refused(capsys, *flat(argv | {"--selector": selector}))
    assert f"The selector names {selector[12:-1]}, which is not in " in said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--tos", "twice", "invalid choice"),
        ("--modes", "enter,match", "modes is a list of"),
        ("--modes", "in", "not a list of enter and leave"),
        ("--dwell-s", "-1", "dwell_s is -1"),
        ("--dwell-s", "nan", "dwell_s is nan"),
        ("--hysteresis-m", "-1", "hysteresis_m is -1"),
    ],
)
def test_bad_options_are_bad_usage(option: str, value: str, said: str, argv, capsys):
    assert said in refused(capsys, *flat(argv | {option: value}), code=2)


def test_zones_that_nobody_could_tell_apart_are_refused(argv, tmp_path, capsys):
    file = save_zones(tmp_path / "z", feature("Hall", SQUARE), feature("HALL", NORTH))
    assert "Two zones are called 'HALL'" in refused(capsys, *flat(argv | {"--zones": file}))
    nameless = {key: value for key, value in feature("", SQUARE).items() if key != "id"}
    assert "Feature 0 has no id" in refused(capsys, *flat(argv | {"--zones": save_zones(tmp_path / "z", nameless)}))


@pytest.mark.parametrize("content", [b"", b"{", b"[1,2", b"PAR1xxxxPAR1", b"\xff\xfe"])
def test_a_damaged_file_is_named(content: bytes, argv, tmp_path, capsys):
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    for name in ("--zones", "--trace"):
        said = refused(capsys, *flat(argv | {name: str(bad)}))
        assert said.startswith(f"fencepost: {bad} is not "), said


COLUMNS = {
    "no oid": ({"oid": None}, "has no column oid; its columns are ts, lon, lat."),
    "no place": ({"lon": None, "lat": None}, "has no column lon and no column lat"),
    "numbers as oid": ({"oid": [1, 2, 3, 4, 5]}, "The column oid of FILE is of the type int64, not text."),
    "text as ts": ({"ts": ["1", "2", "3", "4", "5"]}, "The column ts of FILE is of the type string"),
    "fractions as ts": ({"ts": [1.0, 2.0, 3.0, 4.0, 5.0]}, "The column ts of FILE is of the type double"),
    "text as lat": ({"lat": ["1"] * 5}, "The column lat of FILE is of the type string, not a number."),
    "null oid": ({"oid": ["a", "b", None, "c", "d"]}, "Row 2 of FILE has no oid."),
    "null ts": ({"ts": [1, None, 3, 4, 5]}, "Row 1 of FILE has no ts."),
    "null lat": ({"lat": [1.0, 1.0, 1.0, 1.0, None]}, "Row 4 of FILE has no lat."),
    "NaN": ({"lat": [1.0, float("nan"), 1.0, 1.0, 1.0]}, "Row 1 of FILE: its lat is not finite."),
    "beyond a pole": ({"lat": [1.0, 1.0, 91.0, 1.0, 1.0]}, "Row 2 of FILE: "),
    "before 1970": ({"ts": [1, 2, 3, -1, 5]}, "Row 3 of FILE: its ts is not in the years 1970 to 9999."),
    "microseconds": ({"ts": [1, 2, 3, 4, 10**15]}, "Row 4 of FILE: its ts is not in the years 1970 to 9999."),
    "infinite speed": ({"speed": [1.0, 2.0, None, float("inf"), 1.0]}, "Row 3 of FILE: its speed is not finite."),
    "huge count": ({"speed": pa.array([1, 2, 3, 4, 2**64 - 1], pa.uint64())}, "Row 4 of FILE: its speed has more than"),
    "a list": ({"speed": [[1]] * 5}, "The column speed of FILE is of the type list"),
    "negative unc": ({"unc": [1.0, -1.0, 1.0, 1.0, 1.0]}, "Row 1 of FILE: its unc is below 0."),
}


@pytest.mark.parametrize("fault", COLUMNS)
def test_a_faulty_column_is_named_with_its_row(fault: str, argv, tmp_path, capsys):
    changes, sentence = COLUMNS[fault]
    columns = {name: value for name, value in (WALK | changes).items() if value is not None}
    file = save_trace(tmp_path / "faulty.parquet", columns)
    selector = "(*) within (SYSTEM.*) AND speed < 5"
    said = refused(capsys, *flat(argv | {"--trace": file, "--selector": selector}))
    assert sentence.replace("FILE", file) in said
    assert not (tmp_path / "told.parquet").exists()


def test_a_pair_that_the_trace_has_not_is_said_to_be_unknown(argv, capsys):
    assert main(["replay", *flat(argv | {"--selector": "(*) within (SYSTEM.*) AND sped < 5"})]) == 0
    captured = capsys.readouterr()
    assert "has no column sped: the selector's sped is unknown in every fix." in captured.err
    assert "0 enters" in captured.out
