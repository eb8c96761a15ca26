"""The benchmarks of regions run, find what their peers find, and give the figures that they promise."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
import shapely

from benchmarks import million_constraints, mixed_filters, region_peers
from benchmarks.support.region_data import contact_regions
from benchmarks.support.region_designs import PreparedPredicates, Relate, running_design
from matcher.engines.pairs import NAMES
from matcher.planar import from_geometry
from matcher.relations import relate
from tests.matcher.exact_pairs import KINDS, geometry_of


@pytest.fixture(scope="module")
def tiles() -> np.ndarray:
    """What output areas are like: cells that share their borders."""
    rng = Random(4)
    points = shapely.MultiPoint([(rng.uniform(0, 100), rng.uniform(0, 100)) for _ in range(150)])
    cells = shapely.voronoi_polygons(points, extend_to=shapely.box(0, 0, 100, 100))
    return np.array(cells.geoms, dtype=object)


@pytest.fixture(scope="module")
def hard() -> tuple[np.ndarray, np.ndarray, list]:
    """Constraints and messages on one lattice, where all relations are frequent and GEOS has nothing to round."""
    rng = Random(8)
    regions = [region for _ in range(150) for region in KINDS["lattice"](rng)]
    codes = np.array([rng.randrange(8) for _ in regions], np.int8)
    return np.array([geometry_of(region) for region in regions], dtype=object), codes, regions


def expected(regions: list, codes: np.ndarray, message: shapely.Geometry) -> list[int]:
    region = from_geometry(message)
    return [number for number, each in enumerate(regions) if relate(region, each) == NAMES[codes[number]]]


@pytest.mark.parametrize("design", ["relate", "prepared_relate", "prepared_predicates"])
def test_designs_of_geos_find_what_exact_arithmetic_finds(design: str, hard) -> None:
    geometries, codes, regions = hard
    made = {
        "relate": lambda: Relate(geometries, codes, prepares=False),
        "prepared_relate": lambda: Relate(geometries, codes, prepares=True),
        "prepared_predicates": lambda: PreparedPredicates(geometries, codes),
    }[design]()
    for message in geometries[:60]:
        assert made.match(message).tolist() == expected(regions, codes, message)


@pytest.mark.slow
def test_the_one_statement_of_postgis_finds_what_exact_arithmetic_finds(hard) -> None:
    geometries, codes, regions = hard
    with running_design(geometries, codes) as postgis:
        for message in geometries[:60]:
            assert postgis.match(shapely.to_wkb(message)).tolist() == expected(regions, codes, message)


def test_contact_regions_of_regions_in_parts_are_single_polygons(tiles: np.ndarray) -> None:
    """One in two parts was taken for a polygon with a hole beside it, which PostGIS refused."""
    apart = np.array([shapely.MultiPolygon([one, other]) for one, other in zip(tiles[:40], tiles[60:], strict=False)])
    drawn = contact_regions(Random(1), np.concatenate([tiles[110:], apart]))
    for _ in range(30):
        message = next(drawn)
        assert message.geom_type == "Polygon"
        assert message.is_valid


def test_contact_regions_touch_many(tiles: np.ndarray) -> None:
    drawn = contact_regions(Random(1), tiles)
    tree = shapely.STRtree(tiles)
    touched = [len(tree.query(next(drawn).boundary, predicate="intersects")) for _ in range(30)]
    assert np.mean(touched) > 6
    assert max(touched) > 15


@pytest.mark.slow
def test_peers_are_measured_with_the_same_answers(tiles: np.ndarray) -> None:
    figures = region_peers.measure(tiles, region_peers.Options(messages=4, postgis_messages=0), runs=2)
    for kind in ("A", "B", "C", "contact"):
        found = figures["large"][kind]
        assert found["ours_us"]["min"] > 0
        assert found["strtree_relate_to_ours"]["median"] > 0
        assert found["strtree_prepared_predicates_us"]["min"] > 0


def test_a_wrong_answer_gives_no_figures(tiles: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_peers.PackedTree, "search", lambda self, region: np.array([0, 1], np.int32))
    monkeypatch.setattr(region_peers._Workload, "_measure_engine", lambda *_: 0.0)
    with pytest.raises(region_peers.BenchmarkFailed):
        region_peers.measure_once(tiles, region_peers.Options(messages=4, postgis_messages=0))


@pytest.mark.slow
def test_mixed_filters_are_measured_with_the_same_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert mixed_filters.main(["--small", "--filters", "5000", "--messages", "5", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    half = figures["large"]["half_with_a_region"]
    assert min(half[kind]["loop_to_engine"]["min"] for kind in ("with_region", "without_region")) > 0
    assert (
        half["with_region"]["matches_per_message"]["median"] > half["without_region"]["matches_per_message"]["median"]
    )


def test_the_loop_of_mixed_filters_is_held_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed_filters._Loop, "match", lambda self, message: set())
    with pytest.raises(mixed_filters.BenchmarkFailed):
        mixed_filters.measure_once(mixed_filters.Options(filters=300, messages=3))


@pytest.mark.slow
def test_tables_of_several_sizes_are_measured_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--largest",
        "2000",
        "--messages",
        "4",
        "--checked",
        "2",
        "--runs",
        "1",
        "--json",
        "--out",
        str(tmp_path),
    ]
    assert million_constraints.main(options) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert list(figures["by_constraints"]) == ["20", "62", "200", "666", "2000"]
    assert 0.05 < figures["peak_gib"]["median"] < 1
    touched = [row["touched"]["median"] for row in figures["by_radius"].values()]
    assert touched == sorted(touched)
    assert json.loads((tmp_path / "million_constraints.json").read_text())["figures"] == figures
    assert (tmp_path / "million_constraints.png").read_bytes().startswith(b"\x89PNG")


def test_a_region_of_the_million_can_be_drawn_again() -> None:
    drawn = list(million_constraints._regions(3, 50))
    assert million_constraints._region(3, 50, 17) == drawn[17]
    assert len({region.rings for region in drawn}) == 50
    assert all(shapely.Polygon(region.rings[0]).is_valid for region in drawn)
