"""The composition of relations: the published facts, its algebra, and triples of regions that were related exactly."""

import json
from itertools import permutations, product
from pathlib import Path
from random import Random

import pytest
import shapely
from shapely.affinity import translate

from matcher.composition import compose
from matcher.planar import PlanarRegion, from_geometry
from matcher.relations import inverse, relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import KINDS

RELATIONS = tuple(Relation)
_FACTS = Path(__file__).resolve().parents[3] / "shared" / "rcc8_composition.json"


def test_the_table_is_the_one_that_is_known() -> None:
    if not _FACTS.is_file():
        pytest.skip("the facts in ../shared are not on this machine")
    known = json.loads(_FACTS.read_text(encoding="utf-8"))["composition"]
    for first, second in product(RELATIONS, repeat=2):
        assert compose(first, second) == set(known[first][second]), (first, second)


def test_equal_regions_change_nothing() -> None:
    for each in RELATIONS:
        assert compose(Relation.EQUALS, each) == compose(each, Relation.EQUALS) == {each}


def test_the_way_back_is_the_inverse() -> None:
    for first, second in product(RELATIONS, repeat=2):
        assert compose(inverse(second), inverse(first)) == {inverse(each) for each in compose(first, second)}


def test_three_relations_exclude_each_other_from_every_side() -> None:
    """x to z is possible over y just as y to z is over x: Peirce's law."""
    for first, second, third in product(RELATIONS, repeat=3):
        assert (third in compose(first, second)) == (second in compose(inverse(first), third))


def test_there_are_193_ways() -> None:
    assert sum(len(compose(first, second)) for first, second in product(RELATIONS, repeat=2)) == 193


def triple(rng: Random, kind: str) -> list[PlanarRegion]:
    """Two that have to do with each other, and one of the same kind."""
    return [*KINDS[kind](rng), KINDS[kind](rng)[rng.randrange(2)]]


def check_triple(regions: list[PlanarRegion]) -> set[tuple[Relation, Relation, Relation]]:
    pairs = {(x, y): relate(regions[x], regions[y]) for x, y in permutations(range(3), 2)}
    seen = {(pairs[x, y], pairs[y, z], pairs[x, z]) for x, y, z in permutations(range(3))}
    for first, second, third in seen:
        assert third in compose(first, second), [each.rings for each in regions]
    return seen


@pytest.mark.parametrize("kind", KINDS)
def test_no_three_regions_contradict_the_table(kind: str, full_size: bool) -> None:
    """Those with holes and parts are among them."""
    rng = Random(41)
    for _ in range(30_000 if full_size else 500):
        check_triple(triple(rng, kind))


def cells(rng: Random) -> PlanarRegion:
    """Of a grid of few cells, so that three of them share most of their edges: any holes and parts, or none."""
    while True:
        width, height = rng.randrange(1, 5), rng.randrange(1, 5)
        chosen = [shapely.box(x, y, x + 1, y + 1) for x, y in product(range(width), range(height)) if rng.randrange(3)]
        if chosen:
            return from_geometry(translate(shapely.union_all(chosen), *rng.choices((0, 0, 1), k=2)))


@pytest.mark.slow
def test_regions_with_holes_and_parts_keep_to_the_table_and_use_most_of_it(full_size: bool) -> None:
    rng = Random(43)
    seen: set[tuple[Relation, Relation, Relation]] = set()
    not_simple = 0
    for _ in range(100_000 if full_size else 4_000):
        drawn = [cells(rng) for _ in range(3)]
        not_simple += not any(each.is_simple for each in drawn)
        seen |= check_triple(drawn)
    assert not_simple > 100
    assert len(seen) > 90
