"""The benchmarks of the publication's evaluation: what they are made of, and each of them at a tiny size."""

import gzip
import json
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
import shapely

from benchmarks import fig4a, fig4b, fig5, table3
from benchmarks.support.algorithm1 import Walks, length_of, relate_walks, scan, walk_of
from benchmarks.support.evaluators import RELATIONS, Algorithm1, Exact
from benchmarks.support.publication_command import Question, answer
from benchmarks.support.publication_regions import UNIVERSE, RegionType, draw_message, draw_region
from benchmarks.support.published_table import PublishedTable
from benchmarks.support.true_relations import AnswerWrong, TrueRelations, geometry_of, matched_predicates
from benchmarks.support.workloads import DATA_SETS, Workload, box_around, load_regions
from matcher.approximate import Density, approximate_relation
from matcher.crtree import CrTree
from matcher.engine import Engine
from matcher.planar import PlanarRegion, from_parts, from_rings
from matcher.relations import relate
from matcher.selector.tree import Relation

_AREA = 1e6  # of the universe
_SQUARE = from_rings([[(0, 0), (8, 0), (8, 8), (0, 8)]])
_RING = from_rings([[(0, 0), (8, 0), (8, 8), (0, 8)], [(2, 2), (4, 2), (4, 4), (2, 4)]])


def _synthetic(count: int, seed: int = 1) -> list[PlanarRegion]:
    rng = random.Random(seed)
    return [draw_region(rng) for _ in range(count)]


def _lattice(count: int, seed: int = 1) -> list[PlanarRegion]:
    """Triangles and quadrilaterals that touch in every way."""
    rng = random.Random(seed)
    found: list[PlanarRegion] = []
    while len(found) < count:
        ring = [(rng.randrange(5), rng.randrange(5)) for _ in range(rng.choice((3, 4)))]
        polygon = shapely.Polygon(ring)
        if polygon.is_valid and polygon.area:
            found.append(from_rings([ring]))
    return found


# --- regions -----------------------------------------------------------------------------------------------


def test_synthetic_regions_are_valid_have_twenty_points_and_a_tenth_of_the_universe() -> None:
    for region in _synthetic(200):
        geometry = geometry_of(region)
        assert geometry.is_valid
        assert region.vertex_count == 20
        assert geometry.area >= 0.1 * _AREA
        assert shapely.box(*UNIVERSE).covers(geometry)


@pytest.mark.parametrize(
    ("kind", "points", "least_full", "most_full"),
    [(RegionType.A, (4, 10), 0.55, 0.9), (RegionType.B, (30, 50), 0.2, 0.8), (RegionType.C, (4, 5), 0.01, 0.1)],
)
def test_messages_of_a_type_look_like_it(
    kind: RegionType, points: tuple[int, int], least_full: float, most_full: float
) -> None:
    rng = random.Random(1)
    for _ in range(200):
        region = draw_message(rng, kind)
        geometry = geometry_of(region)
        box = shapely.box(*region.box)
        assert geometry.is_valid
        assert points[0] <= region.vertex_count <= points[1]
        assert 0.01 * _AREA * 0.999 <= box.area <= 0.25 * _AREA * 1.001
        assert least_full < geometry.area / box.area < most_full
        assert shapely.box(*UNIVERSE).covers(geometry)
        if kind is RegionType.A:
            assert 0.8 < (region.box[2] - region.box[0]) / (region.box[3] - region.box[1]) < 1.25


def test_the_same_seed_draws_the_same_regions() -> None:
    assert _synthetic(5, seed=3) == _synthetic(5, seed=3) != _synthetic(5, seed=4)


# --- Algorithm 1, compiled ---------------------------------------------------------------------------------


@pytest.mark.parametrize("halo", [True, False])
@pytest.mark.parametrize("points", [0, 3, 50])
def test_the_compiled_algorithm_says_what_the_plain_one_says_of_regions_that_touch(points: int, halo: bool) -> None:
    density = Density(points, (0.0, 0.0, 4.0, 4.0))
    regions = _lattice(24)
    evaluate = Algorithm1(density, halo)
    found = set()
    for a in regions:
        for b in regions:
            plain = approximate_relation(a, b, density, halo)
            assert evaluate(a, b) is plain, (a.rings, b.rings)
            found.add(plain)
    assert len(found) >= 6  # the pairs are worth trying


@pytest.mark.parametrize("halo", [True, False])
def test_the_compiled_algorithm_says_what_the_plain_one_says_of_synthetic_regions(halo: bool) -> None:
    density = Density(2000, UNIVERSE)
    regions = _synthetic(12)
    walks = Walks(regions, Density(0, UNIVERSE)).at(density)
    for message in _synthetic(4, seed=2):
        walk = walk_of(message, density)
        assert walk is not None
        codes = scan(walk, walks, np.ones(len(regions), np.bool_), halo)
        assert [RELATIONS[code] for code in codes] == [
            approximate_relation(message, region, density, halo) for region in regions
        ]


def test_regions_with_holes_are_left_to_the_exact_evaluator() -> None:
    density = Density(10, (0.0, 0.0, 8.0, 8.0))
    walks = Walks([_SQUARE, _RING], density)
    walk = walk_of(_SQUARE, density)
    assert walk is not None
    assert walk_of(_RING, density) is None
    assert walks.refused.tolist() == [False, True]
    assert scan(walk, walks, np.ones(2, np.bool_), True).tolist() == [RELATIONS.index(Relation.EQUALS), -1]
    assert relate_walks(walk, length_of(walk), walk, length_of(walk), True) == RELATIONS.index(Relation.EQUALS)
    assert Algorithm1(density, True)(_SQUARE, _RING) is Relation.COVERS


def test_the_exact_evaluator_agrees_with_the_plain_one() -> None:
    evaluate = Exact()
    regions = [*_lattice(20), _SQUARE, _RING]
    for region in regions[::2]:
        evaluate.keep(region)
    assert all(evaluate(a, b) is relate(a, b) for a in regions for b in regions)


# --- tables and the reference ------------------------------------------------------------------------------


def test_a_search_that_wants_nothing_evaluates_nothing() -> None:
    def refuse(a: PlanarRegion, b: PlanarRegion) -> Relation:
        raise AssertionError("evaluated")

    tree: CrTree[int] = CrTree(refuse)
    for place, region in enumerate(_lattice(30)):
        tree.insert(place, Relation.OVERLAPS, region)
    assert list(tree.find(_SQUARE, lambda place: False)) == []
    with pytest.raises(AssertionError, match="evaluated"):
        tree.search(_SQUARE)


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("predicates", [1, 3, 40])
def test_the_published_table_matches_what_holds(predicates: int, early_stop: bool) -> None:
    workload = Workload(_lattice(80), random.Random(5))
    exact = Exact()
    table = PublishedTable(workload.shared_out(predicates), exact, early_stop=early_stop)
    sizes = set()
    for message in _lattice(40, seed=6):
        holds = [
            exact(message, region) is relation
            for region, relation in zip(workload.regions, workload.relations, strict=True)
        ]
        expected = matched_predicates(workload.shared_out(predicates), workload.places, holds)
        assert table.match(message) == expected
        sizes.add(len(expected))
    assert len(sizes) > 1  # some messages match more than others


def test_a_wrong_answer_is_not_let_through_and_a_right_one_is() -> None:
    regions = _lattice(30)
    truth = TrueRelations(regions, [Relation.MEETS] * len(regions))
    message = _lattice(1, seed=9)[0]
    codes = truth.codes(message)
    right = [place for place, region in enumerate(regions) if relate(message, region) is Relation.MEETS]
    assert [RELATIONS[code] for code in codes] == [relate(message, region) for region in regions]
    truth.check(message, codes, right)
    with pytest.raises(AnswerWrong):
        truth.check(message, codes, right[1:])
    with pytest.raises(AnswerWrong):
        truth.check(message, codes, [*right, next(place for place in range(30) if place not in right)])


def test_where_geos_is_wrong_exact_arithmetic_decides() -> None:
    truth = TrueRelations([_SQUARE], [Relation.EQUALS])
    codes = truth.codes(_SQUARE)
    codes[0] = RELATIONS.index(Relation.COVERS)  # as if GEOS had said so
    truth.check(_SQUARE, codes, [0])
    assert RELATIONS[codes[0]] is Relation.EQUALS
    assert truth.settled == 1


def test_geometries_keep_holes_and_parts() -> None:
    ring = [[(0, 0), (8, 0), (8, 8), (0, 8)], [(2, 2), (4, 2), (4, 4), (2, 4)]]
    away = [[(20, 0), (28, 0), (28, 8)]]
    geometry = geometry_of(from_parts([ring, away]))
    assert geometry.geom_type == "MultiPolygon"
    assert geometry.equals(shapely.MultiPolygon([shapely.Polygon(ring[0], ring[1:]), shapely.Polygon(away[0])]))


# --- the four questions ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny_data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Sets of the names and the form of the real ones: crooked tiles, one of them with a hole."""
    folder = tmp_path_factory.mktemp("regions")
    rng = random.Random(1)
    side = 12
    corner = {
        (x, y): [x + rng.uniform(0, 0.4), y + rng.uniform(0, 0.4)] for x in range(side + 1) for y in range(side + 1)
    }
    features = []
    for x in range(side):
        for y in range(side):
            ring = [corner[at] for at in ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y))]
            rings = [ring]
            if x == y == 3:
                rings.append([[3.5, 3.5], [3.5, 3.6], [3.6, 3.6], [3.5, 3.5]])
            features.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": rings}})
    for data_set in DATA_SETS.values():
        with gzip.open(folder / data_set.file, "wt", encoding="utf-8") as file:
            json.dump({"type": "FeatureCollection", "features": features}, file)
    return str(folder)


def test_real_regions_are_read_with_their_holes(tiny_data: str) -> None:
    regions = load_regions(Path(tiny_data), "communes")
    assert len(regions) == 144
    assert [place for place, region in enumerate(regions) if not region.is_simple] == [3 * 12 + 3]
    west, south, east, north = box_around(regions)
    assert all(0 <= low < 1 for low in (west, south))
    assert all(12 <= high < 13 for high in (east, north))


def _tiny(question: Question, **changes: object) -> Question:
    """The same with its small size made smaller."""
    return msgspec.structs.replace(question, small=msgspec.structs.replace(question.small, **changes))


def test_fig4a_times_all_five_designs_at_all_sizes() -> None:
    figures = answer(_tiny(fig4a.QUESTION, sizes=(20, 40), messages=4, algorithm1_messages=2), is_small=True)
    result = figures["small"]
    assert list(result["time_ms"]) == ["geos", "geos_prepared", "algorithm1", "algorithm1_crtree", "ours"]
    for by_size in result["time_ms"].values():
        assert list(by_size) == ["20", "40"]
        assert all(0 < figure["min"] <= figure["max"] for figure in by_size.values())
    assert set(result["by_density"]) == {"geos_us_per_pair", "2000_halo", "2000_no_halo"}
    assert figures["published"]["error_percent"]["2000"] == 0.089


def test_fig4b_has_all_switches() -> None:
    figures = answer(_tiny(fig4b.QUESTION, sizes=(60,), messages=4, published_messages=2), is_small=True)
    result = figures["small"]
    for by_size in result["scenarios"].values():
        assert by_size["60"]["filters_left"]["max"] < by_size["60"]["filters"]["min"] == 30
        for switch in ("simplifier_off", "simplifier_on"):
            assert by_size["60"][switch]["ours_ms"]["min"] > 0
            assert by_size["60"][switch]["published_ms"]["min"] > 0
    assert len(result["early_stop"]) == 4
    assert set(result["mixed"]) == {"early_stop_off", "early_stop_on"}


def test_fig4b_notices_an_engine_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(Engine):
        def match(self, event):
            return set(list(super().match(event))[1:])

    monkeypatch.setattr(fig4b, "Engine", Forgetful)
    with pytest.raises(AnswerWrong):
        answer(_tiny(fig4b.QUESTION, sizes=(60,), messages=4), is_small=True, runs=1)


def test_fig5_tells_gain_and_error_of_each_set_and_type(tiny_data: str) -> None:
    figures = answer(_tiny(fig5.QUESTION, messages=3, constraints=100), is_small=True, data=tiny_data)
    assert "data" not in figures["options"]  # of one machine
    result = figures["small"]
    assert list(result) == list(DATA_SETS)
    errors = 0.0
    for of_set in result.values():
        assert list(of_set["types"]) == ["A", "B", "C"]
        for of_type in of_set["types"].values():
            assert list(of_type["halo_gain_percent"]) == ["0", "10000"]
            errors += of_type["halo_error_percent"]["0"]["max"]
    assert errors > 0  # corners alone are not enough


def test_table3_has_both_scenarios_of_each_set_and_type(tiny_data: str) -> None:
    figures = answer(
        _tiny(table3.QUESTION, messages=3, published_messages=2, one_by_one_messages=1), is_small=True, data=tiny_data
    )
    for of_set in figures["small"].values():
        assert of_set["constraints"]["median"] == 144
        assert of_set["with_holes_or_parts"]["median"] == 1
        for of_type in of_set["types"].values():
            for name in ("ours_ms", "crtree_ms", "one_by_one_ms"):
                assert of_type[name]["min"] > 0
            for switch in ("simplifier_off", "simplifier_on"):
                assert of_type[switch]["ours_ms"]["min"] > 0
    published = figures["published"]["milliseconds"]
    repeated = [(row["simplifier_off"], row["simplifier_on"]) for row in published["communes"].values()]
    assert repeated == [(row["one_by_one"], row["crtree"]) for row in published["buildings"].values()]


@pytest.mark.parametrize("module", [fig4a, fig4b, fig5, table3])
def test_a_command_prints_json_and_writes_a_table_and_a_plot(
    module, tiny_data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"sizes": (20, 30), "messages": 3} if module in (fig4a, fig4b) else {"messages": 2, "constraints": 60}
    monkeypatch.setattr(module, "QUESTION", _tiny(module.QUESTION, **changes))
    data = [] if module in (fig4a, fig4b) else ["--data", tiny_data]
    assert module.main(["--small", "--runs", "2", "--json", "--out", str(tmp_path), *data]) == 0
    name = module.QUESTION.name
    printed = json.loads(capsys.readouterr().out)
    saved = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert printed["name"] == saved["name"] == name
    assert printed["figures"] == saved["figures"]
    assert tiny_data not in json.dumps(saved)
    table = (tmp_path / f"{name}.md").read_text(encoding="utf-8").splitlines()
    assert len({line.count("|") for line in table[:3]}) == 1
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_command_without_the_data_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fig5.main(["--small", "--data", str(tmp_path)]) == 1
    assert "zones_oa_london_se.geojson.gz" in capsys.readouterr().err
