"""`fencepost match`: what it prints, that all its ways agree with a plain reference, and what it refuses."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import shapely

from matcher.approximate import Density, approximate_relation
from matcher.box_relations import POSSIBLE_IF_SIMPLE, box_relation
from matcher.planar import PlanarRegion, from_geometry
from matcher.selector.tree import Relation
from server.cli.main import main
from server.cli.progress import Progress
from tests.matcher.exact_pairs import draw_pair, geometry_of, reference_relation

INDEXES = ("tree", "crtree", "linear")
RELATIONS = tuple(Relation)
_ROOT = Path(__file__).resolve().parents[2]


def square(west: float, south: float, size: float) -> list[Any]:
    east, north = west + size, south + size
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def feature(coordinates: Any, id: Any = None, *, relation: Any = None, kind: str = "Polygon") -> dict[str, Any]:
    made: dict[str, Any] = {"type": "Feature", "geometry": {"type": kind, "coordinates": coordinates}}
    made["properties"] = {} if relation is None else {"relation": relation}
    return made if id is None else made | {"id": id}


def save(path: Path, features: list[Any]) -> str:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return str(path)


def match(*argv: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    code = main(["match", *argv, "--json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return [json.loads(line) for line in captured.out.splitlines()]


# --- golden ----------------------------------------------------------------------------------------

PLANTS = [
    feature(square(0, 0, 4), "north", relation="overlaps"),
    feature(square(0, 0, 2), 7, relation="covers"),
    feature(square(2, 2, 2), relation="contains"),  # known as 2
    feature([square(1, 1, 1), square(9, 9, 1)], "two parts", relation="disjoint", kind="MultiPolygon"),
    feature(square(-2, -2, 8), "around", relation="inside"),
    feature(square(4, 0, 4), "beside", relation="meets"),
    feature([*square(-1, -1, 6), *square(0, 0, 4)], "moat", relation="meets"),
    feature(square(0, 0, 4), "same", relation="equals"),
    feature(square(0, 0, 8), "corner", relation="covered-by"),
]
STORMS = [
    feature(square(0, 0, 4), "exactly"),
    feature(square(2, 2, 4)),
    feature(square(1, 1, 3.5), "storm"),
    feature(square(20, 20, 1), 3.5),
]
GOLDEN = [
    {"message": "exactly", "matches": [7, "around", "beside", "moat", "same", "corner"]},
    {"message": 1, "matches": ["north"]},
    {"message": "storm", "matches": ["north", 2, "around"]},
    {"message": 3.5, "matches": ["two parts"]},
]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    plants, storms = save(tmp_path / "plants.geojson", PLANTS), save(tmp_path / "storms.geojson", STORMS)
    return ["--constraints", plants, "--messages", storms]


def reference(constraints: list[Any], messages: list[Any]) -> list[dict[str, Any]]:
    """By rational arithmetic, one pair after the other."""
    found = []
    for index, message in enumerate(messages):
        matches = [
            constraint.get("id", place)
            for place, constraint in enumerate(constraints)
            if reference_relation(region(message), region(constraint)) == constraint["properties"]["relation"]
        ]
        found.append({"message": message.get("id", index), "matches": matches})
    return found


def region(feature: Any) -> PlanarRegion:
    return from_geometry(shapely.geometry.shape(feature["geometry"]))


def test_the_golden_file_is_what_rational_arithmetic_says():
    assert reference(PLANTS, STORMS) == GOLDEN


@pytest.mark.parametrize("index", INDEXES)
def test_matches_are_printed_for_each_message_in_order(index: str, files: list[str], capsys):
    assert match(*files, "--index", index, capsys=capsys) == GOLDEN


def test_json_is_all_that_is_on_stdout_and_nothing_is_on_stderr(files: list[str], capsys):
    assert main(["match", *files, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == (
        '{"message":"exactly","matches":[7,"around","beside","moat","same","corner"]}'
    )
    assert captured.err == ""


def test_lines_for_people(files: list[str], capsys):
    assert main(["match", *files]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "exactly: 7, around, beside, moat, same, corner",
        "1: north",
        "storm: north, 2, around",
        "3.5: two parts",
    ]
    assert captured.err == "4 messages against 9 constraints: 11 matches.\n"


def test_many_matches_and_none_stay_on_one_line(tmp_path: Path, capsys):
    constraints = [feature(square(9 * place, 9, 1), f"p\n{place}", relation="disjoint") for place in range(1200)]
    argv = ["--constraints", save(tmp_path / "c", constraints)]
    messages = [feature(square(0, 0, 1), "far"), feature(square(-1, 8, 20000), "wide")]
    assert main(["match", *argv, "--messages", save(tmp_path / "m", messages), "--stats"]) == 0
    captured = capsys.readouterr()
    shown = re.escape(", ".join(rf'"p\n{place}"' for place in range(8)))
    far, wide = captured.out.splitlines()
    assert re.fullmatch(rf"far: {shown} and 1,192 more  \([\d,.]+ µs\)", far)
    assert re.fullmatch(r"wide: none  \([\d,.]+ µs\)", wide)
    summary, times = captured.err.splitlines()
    assert summary == "2 messages against 1,200 constraints: 1,200 matches."
    assert re.fullmatch(r"Time of a match: median [\d,.]+ µs, longest [\d,.]+ µs\.", times)


def test_stats_add_the_time_of_each_match(files: list[str], capsys):
    timed = match(*files, "--stats", capsys=capsys)
    assert [{"message": each["message"], "matches": each["matches"]} for each in timed] == GOLDEN
    assert all(0 < each["us"] < 1e6 for each in timed)  # no compiler is among them


def test_packed_files_are_unpacked(files: list[str], tmp_path: Path, capsys):
    packed = []
    for option, file in zip(files[::2], files[1::2], strict=True):
        (tmp_path / f"{option}.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + Path(file).read_bytes()))
        packed += [option, str(tmp_path / f"{option}.gz")]
    assert match(*packed, capsys=capsys) == GOLDEN


def test_one_of_the_files_may_come_from_stdin(files: list[str], monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(files[3]).read_bytes())))
    assert match(*files[:3], "-", capsys=capsys) == GOLDEN


@pytest.mark.parametrize("evaluator", ["exact", "approximate"])
@pytest.mark.parametrize("index", INDEXES)
def test_nothing_against_nothing_is_nothing(index: str, evaluator: str, tmp_path: Path, capsys):
    none, one = save(tmp_path / "none", []), save(tmp_path / "one", [feature(square(0, 0, 1), relation="equals")])
    how = ["--index", index, "--evaluator", evaluator]
    assert match("--constraints", none, "--messages", none, *how, capsys=capsys) == []
    assert match("--constraints", one, "--messages", none, *how, capsys=capsys) == []
    assert match("--constraints", none, "--messages", one, *how, capsys=capsys) == [{"message": 0, "matches": []}]


# --- all ways agree --------------------------------------------------------------------------------


def drawn_features(seed: int, count: int, *, simple: bool) -> list[Any]:
    """Half of them on a small grid, where contacts are the rule."""
    rng = Random(seed)
    found: list[Any] = []
    while len(found) < count:
        for made in draw_pair(rng):
            geometry = geometry_of(made)
            if max(map(abs, made.box)) < 50 and shapely.is_valid(geometry) and (made.is_simple or not simple):
                text = json.loads(shapely.to_geojson(geometry))
                if region({"geometry": text}).box == made.box:
                    found.append(feature(text["coordinates"], relation=str(rng.choice(RELATIONS)), kind=text["type"]))
    return found[:count]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_index_finds_what_rational_arithmetic_finds(seed: int, tmp_path: Path, capsys):
    constraints, messages = drawn_features(seed, 90, simple=False), drawn_features(seed + 50, 14, simple=False)
    messages += constraints[:6]
    argv = ["--constraints", save(tmp_path / "c", constraints), "--messages", save(tmp_path / "m", messages)]
    expected = reference(constraints, messages)
    assert sum(len(each["matches"]) for each in expected) > 60
    for index in INDEXES:
        assert match(*argv, "--index", index, capsys=capsys) == expected, index


@pytest.mark.parametrize("density", ["0", "50", None])
@pytest.mark.parametrize("halo", [None, "--halo", "--no-halo"])
def test_the_approximate_evaluator_is_asked_where_boxes_leave_a_doubt(density, halo, tmp_path: Path, capsys):
    constraints, messages = drawn_features(3, 60, simple=True), drawn_features(4, 12, simple=True)
    argv = ["--constraints", save(tmp_path / "c", constraints), "--messages", save(tmp_path / "m", messages)]
    argv += ["--evaluator", "approximate", *([] if density is None else ["--density", density])]
    argv += [] if halo is None else [halo]

    regions = [region(each) for each in constraints]
    everything = shapely.MultiPolygon([geometry_of(each) for each in [*regions, *map(region, messages)]]).bounds
    universe = Density(1000 if density is None else float(density), everything)
    with_boxes, without = [], []
    for number, message in enumerate(messages):
        x = region(message)
        holding = [
            place
            for place, each in enumerate(constraints)
            if approximate_relation(x, regions[place], universe, halo != "--no-halo") == each["properties"]["relation"]
        ]
        without.append({"message": number, "matches": holding})
        boxes = [box_relation(x.box, each.box) for each in regions]
        sound = []
        for place, each in enumerate(constraints):
            wanted = Relation(each["properties"]["relation"])
            if boxes[place] == Relation.DISJOINT:
                holds = wanted == Relation.DISJOINT
            else:
                holds = boxes[place] in POSSIBLE_IF_SIMPLE[wanted] and place in holding
            sound += [place] if holds else []
        with_boxes.append({"message": number, "matches": sound})
    assert match(*argv, "--index", "linear", capsys=capsys) == without
    assert match(*argv, "--index", "tree", capsys=capsys) == with_boxes
    assert match(*argv, "--index", "crtree", capsys=capsys) == with_boxes


def test_halo_and_density_change_what_the_approximate_evaluator_says(tmp_path: Path, capsys):
    """Touching between two corners is seen with points there, or with a halo; coming near is taken for it."""
    big = feature(square(0, 0, 8), "big", relation="meets")
    argv = ["--constraints", save(tmp_path / "c", [big])]
    near = [feature(square(8.1, 3, 2), "near"), feature([[[8, 4], [9, 3], [9, 5], [8, 4]]], "touching")]
    argv += ["--messages", save(tmp_path / "m", near), "--evaluator", "approximate"]

    def met(*how: str) -> list[str]:
        return [each["message"] for each in match(*argv, *how, capsys=capsys) if each["matches"]]

    assert met("--no-halo") == ["touching"]
    assert met("--halo", "--density", "0") == ["touching"]  # its box is apart, which is certain
    assert met("--halo", "--density", "0", "--index", "linear") == ["near", "touching"]
    assert met("--halo", "--density", "5000", "--index", "linear") == ["touching"]


def test_points_that_do_not_fit_in_memory_are_laid_again(files, tmp_path: Path, monkeypatch, capsys):
    constraints = save(tmp_path / "c", drawn_features(5, 40, simple=True))
    argv = ["--constraints", constraints, "--messages", constraints, "--evaluator", "approximate"]
    expected = match(*argv, capsys=capsys)
    monkeypatch.setattr("matcher.region_matcher.MAX_KEPT_POINTS", 200)
    assert match(*argv, capsys=capsys) == expected


# --- refusals --------------------------------------------------------------------------------------

_GOOD = [feature(square(0, 0, 1), "a", relation="meets")]
_CROSSING = [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]


def collection(*features: Any) -> str:
    return json.dumps({"type": "FeatureCollection", "features": list(features)})


def with_geometry(geometry: Any) -> str:
    return collection(*_GOOD, {"type": "Feature", "id": "b", "properties": {"relation": "meets"}, "geometry": geometry})


FAULTS = {
    "empty": ("", "FILE: It is empty."),
    "blank": (" \n", "FILE: It is empty."),
    "not JSON": ("{oops", "FILE: It is not JSON."),
    "not UTF-8": (b'{"type": "\xff"}', "FILE: It is not JSON."),
    "a picture": (b"\x89PNG\r\n\x1a\n\0\0", "FILE: It is not JSON."),
    "deep": ("[" * 200_000, "FILE: It is not JSON."),
    "an array": ("[]", "FILE: It is not a FeatureCollection; its type is an array."),
    "a number": ("3", "FILE: It is not a FeatureCollection; its type is 3."),
    "one feature": (json.dumps(_GOOD[0]), "FILE: It is not a FeatureCollection; its type is 'Feature'."),
    "no features": ('{"type": "FeatureCollection"}', "FILE: The FeatureCollection has no list of features."),
    "null feature": (collection(None), "FILE: Feature 0: It is not an object of type Feature."),
    "bool id": (collection(feature(square(0, 0, 1), True)), "FILE: Feature 0: Its id is neither a string nor a number"),
    "properties": (
        collection({"type": "Feature", "properties": [], "geometry": None}),
        "FILE: Feature 0: Its properties are not an object.",
    ),
    "no geometry": (with_geometry(None), "FILE: Feature 1 (id 'b'): It has no geometry."),
    "a point": (
        with_geometry({"type": "Point", "coordinates": [0, 0]}),
        "FILE: Feature 1 (id 'b'): Its geometry is of type 'Point'. Give it a Polygon or a MultiPolygon.",
    ),
    "no coordinates": (
        with_geometry({"type": "Polygon"}),
        "FILE: Feature 1 (id 'b'): coordinates is missing, not an array.",
    ),
    "a string": (
        with_geometry({"type": "Polygon", "coordinates": [[["0", 0]]]}),
        "FILE: Feature 1 (id 'b'): coordinates[0][0][0] is '0', not a number.",
    ),
    "height": (
        with_geometry({"type": "Polygon", "coordinates": [[[0, 0, 5]]]}),
        "FILE: Feature 1 (id 'b'): coordinates[0][0] has 3 coordinates;",
    ),
    "NaN": (
        with_geometry({"type": "Polygon", "coordinates": [[[0, 0], [float("nan"), 0]]]}),
        "FILE: Feature 1 (id 'b'): coordinates[0][1][0] is nan, not a finite number.",
    ),
    "infinity": (
        with_geometry({"type": "Polygon", "coordinates": [[[0, 0], [0, 777]]]}).replace("777", "1e999"),
        "FILE: Feature 1 (id 'b'): coordinates[0][1][1] is inf, not a finite number.",
    ),
    "NaN elsewhere": (
        collection(_GOOD[0] | {"properties": {"relation": "meets", "wind": float("nan")}}),
        "FILE: It can't be read as a FeatureCollection:",
    ),
    "no rings": (with_geometry({"type": "Polygon", "coordinates": []}), "FILE: Feature 1 (id 'b'): It has no rings."),
    "no parts": (
        with_geometry({"type": "MultiPolygon", "coordinates": []}),
        "FILE: Feature 1 (id 'b'): It has no rings.",
    ),
    "unclosed": (
        with_geometry({"type": "Polygon", "coordinates": [square(0, 0, 1)[0][:4]]}),
        "FILE: Feature 1 (id 'b'): The last point of the outer ring is not its first.",
    ),
    "short": (
        with_geometry({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]}),
        "FILE: Feature 1 (id 'b'): The number of points of the outer ring is 3;",
    ),
    "crossing": (
        with_geometry({"type": "Polygon", "coordinates": _CROSSING}),
        "FILE: Feature 1 (id 'b'): At lon 1, lat 1 the outer ring crosses itself.",
    ),
    "flat": (
        with_geometry({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 2], [0, 0]]]}),
        "FILE: Feature 1 (id 'b'): All points of the outer ring lie on one line",
    ),
    "hole outside": (
        with_geometry({"type": "Polygon", "coordinates": [*square(0, 0, 1), *square(5, 5, 1)]}),
        "FILE: Feature 1 (id 'b'): At lon 5, lat 5 hole 1 is outside the outer ring.",
    ),
    "parts overlap": (
        with_geometry({"type": "MultiPolygon", "coordinates": [square(0, 0, 2), square(1, 1, 2)]}),
        "FILE: Feature 1 (id 'b'):",
    ),
    "truncated gzip": (
        gzip.compress(collection(*_GOOD).encode())[:-9],
        "FILE is a gzip file with an end or a part missing.",
    ),
    "damaged gzip": (b"\x1f\x8bnonsense", "FILE is a gzip file with an end or a part missing."),
}
CONSTRAINT_FAULTS = {
    "no relation": (
        collection(feature(square(0, 0, 1), "a")),
        "FILE: Feature 0 (id 'a'): It has no property relation. Give it one of disjoint, meets, overlaps, equals, "
        "inside, contains, covers, covered-by.",
    ),
    "null properties": (
        collection(feature(square(0, 0, 1)) | {"properties": None}),
        "FILE: Feature 0: It has no property relation.",
    ),
    "unknown relation": (
        collection(feature(square(0, 0, 1), 5, relation="coveredBy")),
        "FILE: Feature 0 (id 5): Its relation is 'coveredBy', none of the eight.",
    ),
    "relation of another type": (
        collection(feature(square(0, 0, 1), relation=["meets"])),
        "FILE: Feature 0: Its relation is an array, none of the eight.",
    ),
    "duplicate": (collection(*_GOOD, *_GOOD), "FILE: Features 0 and 1 have the same id, 'a'."),
    "duplicate of a place": (
        collection(feature(square(0, 0, 1), 1, relation="meets"), feature(square(0, 0, 1), relation="meets")),
        "FILE: Features 0 and 1 have the same id, 1.",
    ),
}


def refused(argv: list[str], capsys) -> str:
    """Nothing on stdout, one line on stderr, exit code 1."""
    assert main(["match", *argv, "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fencepost: ")
    return captured.err.removeprefix("fencepost: ")


@pytest.mark.parametrize("which", ["--constraints", "--messages"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_file_with_a_fault_is_refused_by_its_name(name: str, which: str, tmp_path: Path, capsys):
    content, expected = FAULTS[name]
    bad = tmp_path / "bad.geojson"
    bad.write_bytes(content if isinstance(content, bytes) else content.encode())
    other = "--messages" if which == "--constraints" else "--constraints"
    said = refused([which, str(bad), other, save(tmp_path / "good", _GOOD)], capsys)
    assert said.startswith(expected.replace("FILE", str(bad)))


@pytest.mark.parametrize("name", CONSTRAINT_FAULTS)
def test_constraints_with_a_fault_are_refused_though_messages_may_be_so(name: str, tmp_path: Path, capsys):
    content, expected = CONSTRAINT_FAULTS[name]
    bad, good = tmp_path / "bad.geojson", save(tmp_path / "good", _GOOD)
    bad.write_text(content)
    assert refused(["--constraints", str(bad), "--messages", good], capsys).startswith(
        expected.replace("FILE", str(bad))
    )
    assert match("--constraints", good, "--messages", str(bad), capsys=capsys)


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys):
    good = save(tmp_path / "good", _GOOD)
    missing = str(tmp_path / "missing.geojson")
    assert refused(["--constraints", good, "--messages", missing], capsys) == f"{missing}: No such file or directory.\n"
    assert refused(["--constraints", str(tmp_path), "--messages", good], capsys).startswith(f"{tmp_path}: Is a dir")


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("which", ["--constraints", "--messages"])
def test_holes_and_parts_are_refused_by_the_approximate_evaluator(index: str, which: str, tmp_path: Path, capsys):
    good = save(tmp_path / "good", _GOOD)
    other = "--messages" if which == "--constraints" else "--constraints"
    for name, coordinates, kind in (
        ("hole", [*square(0, 0, 4), *square(1, 1, 1)], "Polygon"),
        ("parts", [square(0, 0, 1), square(3, 3, 1)], "MultiPolygon"),
    ):
        bad = save(tmp_path / name, [*_GOOD, feature(coordinates, name, relation="meets", kind=kind)])
        said = refused([which, bad, other, good, "--evaluator", "approximate", "--index", index], capsys)
        assert said.startswith(
            f"{bad}: Feature 1 (id '{name}'): It has 2 rings, and the approximate evaluator takes regions of one only."
        )
    # One part in a MultiPolygon is as simple as a Polygon.
    fine = save(tmp_path / "fine", [feature([square(0, 0, 4)], relation="equals", kind="MultiPolygon")])
    assert match(which, fine, other, good, "--evaluator", "approximate", "--index", index, capsys=capsys)


def test_a_universe_without_end_is_refused_for_points_only(tmp_path: Path, capsys):
    far = save(tmp_path / "far", [feature(square(-1e308, 0, 1.5e308), "far", relation="equals")])
    assert "can't be used" in refused(["--constraints", far, "--messages", far, "--evaluator", "approximate"], capsys)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--density", "5"], "fencepost: --density is for --evaluator approximate;"),
        (["--evaluator", "exact", "--density", "0"], "fencepost: --density is for --evaluator approximate;"),
        (["--halo"], "fencepost: --halo is for --evaluator approximate;"),
        (["--no-halo"], "fencepost: --no-halo is for --evaluator approximate;"),
        (["--constraints", "-", "--messages", "-"], "fencepost: Only one of --constraints and --messages"),
        (["--evaluator", "approximate", "--density", "-1"], "-1 is not a number of points from 0 to 1,000,000"),
        (["--evaluator", "approximate", "--density", "nan"], "nan is not a number of points"),
        (["--evaluator", "approximate", "--density", "many"], "many is not a number of points"),
        (["--index", "rtree"], "invalid choice: 'rtree'"),
        (["--evaluator", "rough"], "invalid choice: 'rough'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_together_is_bad_usage(argv: list[str], said: str, capsys):
    """Before any file is read: these are not there."""
    assert main(["match", "--constraints", "missing", "--messages", "missing", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1 or "usage: fencepost match" in captured.err


@pytest.mark.parametrize("argv", [[], ["--constraints", "x"], ["--messages", "x"]])
def test_both_files_must_be_named(argv: list[str], capsys):
    assert main(["match", *argv]) == 2
    assert "required" in capsys.readouterr().err


# --- around it -------------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_if_it_takes_long(monkeypatch: pytest.MonkeyPatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for err, expected in (
        (io.StringIO(), ""),
        (_Terminal(), "\r\x1b[KMatching [############............]  50%  500 of 1,000\r\x1b[K"),
    ):
        with Progress("Matching", 1000, err) as progress:
            progress.at(1)  # at once: nothing
            now[0] += 1
            progress.at(500)
            progress.at(501)  # too soon to be seen
            progress.clear()
            progress.clear()
        assert err.getvalue() == expected


@pytest.mark.slow
def test_the_first_use_says_that_it_compiles(files: list[str], tmp_path: Path):
    """With an empty cache, as on a new machine."""
    done = subprocess.run(
        [sys.executable, "-m", "server.cli.main", "match", *files, "--json", "--stats"],
        cwd=_ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=True,
        timeout=250,
    )
    assert done.stderr == "Compiling the code that matches; once compiled it is kept for the next time.\n"
    assert all(json.loads(line)["us"] < 1e6 for line in done.stdout.splitlines())


@pytest.mark.slow
def test_census_areas_are_read_and_matched_in_seconds_and_memory(shared_data: Path, tmp_path: Path):
    """85,550 constraints; the answers for some messages are those of no index at all."""
    rng = Random(3)
    areas = json.loads(gzip.decompress((shared_data / "zones_oa_london_se.geojson.gz").read_bytes()))["features"]
    messages = [*rng.sample(areas, 3), feature(square(-0.5, 51.3, 0.7), "London")]
    for each in areas:
        each["properties"] = {"relation": rng.choice(RELATIONS)}
    argv = ["--constraints", save(tmp_path / "c", areas), "--messages", save(tmp_path / "m", messages), "--json"]
    program = (
        "import resource, sys, time; from server.cli.main import main; start = time.process_time();"
        "code = main(sys.argv[1:]); used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "print(time.process_time() - start, used / 2**20, file=sys.stderr); sys.exit(code)"
    )
    answers = []
    for index in ("tree", "linear"):
        done = subprocess.run(
            [sys.executable, "-c", program, "match", *argv, "--index", index],
            cwd=_ROOT, capture_output=True, text=True, check=True, timeout=250,
        )  # fmt: skip
        answers.append([json.loads(line) for line in done.stdout.splitlines()])
        seconds, gigabytes = map(float, done.stderr.splitlines()[-1].split())
        assert gigabytes < 2
        if index == "tree":
            assert seconds < 30  # about 3, and as long again where the code is not compiled yet
    assert answers[0] == answers[1]
    assert all(len(each["matches"]) > 9000 for each in answers[0])
