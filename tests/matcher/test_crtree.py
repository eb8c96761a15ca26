"""The constraint R-tree: what it finds, how it is built, and which boxes it may pass by."""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.approximate import Density, RegionNotSimple, approximate_relation
from matcher.box_relations import POSSIBLE, POSSIBLE_IF_SIMPLE, box_relation
from matcher.crtree import CrTree, _Entry, _Node
from matcher.linear import Linear
from matcher.planar import PlanarRegion, from_geometry, from_rings
from matcher.relations import relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import KINDS, draw_pair, moved, star

RELATIONS = tuple(Relation)
randoms = st.integers(0, 2**64).map(Random)  # a drawn Random would run out of choices: regions are drawn until valid


def box(west: float, south: float, east: float, north: float) -> PlanarRegion:
    return from_rings([[(west, south), (east, south), (east, north), (west, north)]])


def region(wkt: str) -> PlanarRegion:
    return from_geometry(shapely.from_wkt(wkt))


CORNERS = region("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((3 3, 4 3, 4 4, 3 4, 3 3)))")
OTHER_CORNERS = region("MULTIPOLYGON (((0 3, 1 3, 1 4, 0 4, 0 3)), ((3 0, 4 0, 4 1, 3 1, 3 0)))")


# --- what boxes say --------------------------------------------------------------------------------


def test_boxes_are_related_as_the_regions_they_are() -> None:
    """All boxes on a grid of four lines each way, against each other."""
    sides = [(low, high) for low, high in product(range(4), repeat=2) if low < high]
    boxes = [box(*x[:1], *y[:1], *x[1:], *y[1:]) for x, y in product(sides, repeat=2)]
    for a, b in product(boxes, repeat=2):
        assert box_relation(a.box, b.box) == relate(a, b)


def check_table(a: PlanarRegion, b: PlanarRegion) -> tuple[Relation, Relation]:
    found, boxes = relate(a, b), box_relation(a.box, b.box)
    assert boxes in POSSIBLE[found], (a.rings, b.rings)
    if a.is_simple and b.is_simple:
        assert boxes in POSSIBLE_IF_SIMPLE[found], (a.rings, b.rings)
    return found, boxes


@pytest.mark.parametrize("kind", KINDS)
def test_no_relation_is_passed_by_for_its_boxes(kind: str, full_size: bool) -> None:
    rng = Random(11)
    for _ in range(100_000 if full_size else 700):
        check_table(*KINDS[kind](rng))


def polyomino(rng: Random, width: int, height: int) -> PlanarRegion:
    """Cells of a grid: connected or not, with holes or not, and boxes that coincide all the time."""
    cells = [shapely.box(x, y, x + 1, y + 1) for x, y in product(range(width), range(height)) if rng.randrange(2)]
    return from_geometry(shapely.union_all(cells)) if cells else polyomino(rng, width, height)


def right_triangle(rng: Random, size: int) -> PlanarRegion:
    x, y = rng.randrange(size), rng.randrange(size)
    dx, dy = rng.choice((-2, -1, 1, 2)), rng.choice((-2, -1, 1, 2))
    return from_rings([[(x, y), (x + dx, y), (x, y + dy)]])


def on_small_grid(rng: Random) -> PlanarRegion:
    if rng.randrange(3) == 0:
        return right_triangle(rng, 5)
    made = polyomino(rng, rng.randrange(1, 5), rng.randrange(1, 5))
    dx, dy = rng.randrange(3), rng.randrange(3)
    return moved(made, lambda x, y: (x + dx, y + dy))


@pytest.mark.slow
def test_no_entry_of_the_table_could_be_left_out(full_size: bool) -> None:
    """Each relation of boxes that is called possible is seen, for simple regions and for all."""
    rng = Random(5)
    seen: dict[bool, set[tuple[Relation, Relation]]] = {True: set(), False: set()}
    for _ in range(200_000 if full_size else 8_000):
        a, b = on_small_grid(rng), on_small_grid(rng)
        seen[a.is_simple and b.is_simple].add(check_table(a, b))
    for made in (
        (region("POLYGON ((0 0, 4 0, 0 4, 0 0))"), region("POLYGON ((4 4, 4 0, 0 4, 4 4))")),  # meet along the diagonal
        (region("POLYGON ((0 0, 9 0, 0 9, 0 0))"), region("POLYGON ((9 9, 1 9, 9 1, 9 9))")),
        (region("POLYGON ((0 0, 9 0, 0 9, 0 0))"), region("POLYGON ((8 8, 8 7, 7 8, 8 8))")),  # apart, in its box
        (region("POLYGON ((0 0, 9 0, 0 9, 0 0))"), region("POLYGON ((8 8, 8 1, 1 8, 8 8))")),
        (region("POLYGON ((0 0, 9 0, 0 9, 0 0))"), region("POLYGON ((3 3, 5 4, 4 5, 3 3))")),
        (box(0, 0, 9, 9), box(1, 1, 2, 2)),
    ):
        for a, b in (made, made[::-1]):
            seen[True].add(check_table(a, b))
    seen[False].add(check_table(CORNERS, OTHER_CORNERS))
    for table, pairs in ((POSSIBLE_IF_SIMPLE, seen[True]), (POSSIBLE, seen[True] | seen[False])):
        possible = {(relation, boxes) for relation, allowed in table.items() for boxes in allowed}
        assert pairs == possible, possible - pairs


def test_parts_can_be_disjoint_though_their_boxes_are_equal() -> None:
    band = region("POLYGON ((0 4, 0 3, 3 0, 4 0, 4 1, 1 4, 0 4))")
    for constraint in (OTHER_CORNERS, band):
        tree: CrTree[str] = CrTree()
        tree.insert("apart", Relation.DISJOINT, constraint)
        assert box_relation(CORNERS.box, constraint.box) is Relation.EQUALS
        assert tree.search(CORNERS) == {"apart"}


PUBLISHED_COVERED_BY = {Relation.COVERED_BY, Relation.EQUALS}
PUBLISHED_COVERS = {Relation.COVERS, Relation.EQUALS}


def test_the_published_table_loses_a_triangle_that_touches_a_slanted_side() -> None:
    large = region("POLYGON ((0 0, 8 0, 0 8, 0 0))")
    small = region("POLYGON ((4 4, 2 3, 3 2, 4 4))")
    assert relate(small, large) is Relation.COVERED_BY
    assert box_relation(small.box, large.box) not in PUBLISHED_COVERED_BY
    assert box_relation(large.box, small.box) not in PUBLISHED_COVERS

    tree: CrTree[str] = CrTree()
    tree.insert("around", Relation.COVERED_BY, large)
    tree.insert("within", Relation.COVERS, small)
    assert tree.search(small) == {"around"}
    assert tree.search(large) == {"within"}


# --- the tree --------------------------------------------------------------------------------------


def check_structure(tree: CrTree[int]) -> int:
    """What Guttman promises of a tree, and the publication of its lists; how high it is."""
    root, entries = tree._root, []
    assert root.parent is None
    assert root.level == 0 or len(root.children) >= 2
    nodes = [root]
    while nodes:
        node = nodes.pop()
        assert len(node.children) <= tree._most
        assert node is root or len(node.children) >= tree._least
        below: set[int] = set()
        for child in node.children:
            assert child.parent is node
            below |= set(child.disjoint)
            if node.level == 0:
                assert isinstance(child, _Entry)
                assert set(child.disjoint) == ({child.id} if child.relation is Relation.DISJOINT else set())
                entries.append(child)
            else:
                assert isinstance(child, _Node)
                assert child.level == node.level - 1
                nodes.append(child)
        assert set(node.disjoint) == below
        if node.children:
            sides = list(zip(*(child.box for child in node.children), strict=True))
            assert node.box == (min(sides[0]), min(sides[1]), max(sides[2]), max(sides[3]))
    assert {entry.id: entry for entry in entries} == tree._entries
    assert len(entries) == len(tree)
    return root.level


@pytest.mark.slow
@given(randoms, st.integers(4, 12))
@settings(max_examples=40)
def test_any_sequence_of_changes_finds_what_a_look_at_each_finds(rng: Random, max_entries: int) -> None:
    tree: CrTree[int] = CrTree(relate, max_entries)
    linear: Linear[int] = Linear()
    regions = [each for _ in range(12) for each in draw_pair(rng)]
    kept: list[int] = []
    grows = True
    for step in range(160):
        if len(kept) > 60 or not kept:
            grows = not kept
        if rng.random() < (0.8 if grows else 0.2):
            made = rng.choice(regions)
            id = rng.choice(kept) if kept and rng.randrange(8) == 0 else step
            if id not in kept:
                kept.append(id)
            relation = rng.choice(RELATIONS)
            tree.insert(id, relation, made)
            linear.insert(id, relation, made)
        elif kept:
            id = kept.pop(rng.randrange(len(kept)))
            tree.remove(id)
            linear.remove(id)
        check_structure(tree)
        assert len(tree) == len(linear) == len(kept)
        if step % 8 == 0:
            query = rng.choice(regions) if rng.randrange(2) else draw_pair(rng)[0]
            assert tree.search(query) == linear.search(query)
    while kept:
        tree.remove(kept.pop(rng.randrange(len(kept))))
        check_structure(tree)
    assert tree.search(regions[0]) == set()


@pytest.mark.parametrize("max_entries", [4, 8])
def test_a_large_tree_grows_and_shrinks_again(max_entries: int) -> None:
    rng = Random(17)
    tree: CrTree[int] = CrTree(relate, max_entries)
    linear: Linear[int] = Linear()
    for id in range(1_500):
        made = star(rng, rng.randrange(3, 9), (rng.uniform(0, 100), rng.uniform(0, 100)), rng.choice((0.5, 2.0, 20.0)))
        relation = rng.choice(RELATIONS)
        tree.insert(id, relation, made)
        linear.insert(id, relation, made)
    assert check_structure(tree) >= 3
    for keep in (1_500, 300, 20, 0):
        for id in rng.sample(sorted(tree._entries), len(tree) - keep):
            tree.remove(id)
            linear.remove(id)
        check_structure(tree)
        for _ in range(4):
            query = star(rng, 9, (rng.uniform(0, 100), rng.uniform(0, 100)), 15)
            assert tree.search(query) == linear.search(query)
    assert check_structure(tree) == 0


def test_most_constraints_are_never_evaluated() -> None:
    """Of 1,000 small ones a small query looks at a few, and disjoint ones come in whole lists."""
    asked = Counter[Relation]()

    def counting(a: PlanarRegion, b: PlanarRegion) -> Relation:
        found = relate(a, b)
        asked[found] += 1
        return found

    rng = Random(23)
    tree: CrTree[int] = CrTree(counting)
    for id in range(1_000):
        tree.insert(id, RELATIONS[id % 8], star(rng, 5, (rng.uniform(0, 100), rng.uniform(0, 100)), 1))
    found = tree.search(box(48, 48, 52, 52))
    assert len(found) > 110
    assert 0 < asked.total() < 20


def test_what_is_inserted_again_replaces_what_was_there() -> None:
    made: CrTree[str] | Linear[str]
    for made in (CrTree(), Linear()):
        made.insert("a", Relation.DISJOINT, box(0, 0, 1, 1))
        made.insert("a", Relation.EQUALS, box(2, 2, 3, 3))
        assert len(made) == 1
        assert made.search(box(2, 2, 3, 3)) == {"a"}
        assert made.search(box(8, 8, 9, 9)) == set()


def test_what_is_not_there_is_not_removed() -> None:
    made: CrTree[str] | Linear[str]
    for made in (CrTree(), Linear()):
        with pytest.raises(KeyError):
            made.remove("a")


def test_a_node_must_have_room_for_two_halves() -> None:
    with pytest.raises(ValueError, match="max_entries"):
        CrTree(relate, 3)


@pytest.mark.parametrize("size", [1e-300, 1e200, 1e307])
def test_areas_that_overflow_or_vanish_do_no_harm(size: float) -> None:
    rng = Random(29)
    tree: CrTree[int] = CrTree(relate, 4)
    linear: Linear[int] = Linear()
    for id in range(60):
        made = moved(draw_pair(rng)[0], lambda x, y: (x * size, y * size))
        if all(map(math.isfinite, made.box)):
            for index in (tree, linear):
                index.insert(id, RELATIONS[id % 8], made)
            check_structure(tree)
            assert tree.search(made) == linear.search(made)
    assert len(tree) > 20
    for id in sorted(tree._entries):
        tree.remove(id)
        check_structure(tree)


# --- with an approximate evaluator -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("halo", [True, False])
def test_where_it_differs_from_a_look_at_each_the_evaluator_was_wrong_and_the_tree_is_right(halo: bool) -> None:
    approximate = partial(approximate_relation, density=Density(50, (0.0, 0.0, 100.0, 100.0)), halo=halo)
    rng = Random(31)
    tree: CrTree[int] = CrTree(approximate)
    linear: Linear[int] = Linear(approximate)
    exact: Linear[int] = Linear()
    draw: Callable[[], PlanarRegion] = lambda: star(  # noqa: E731 - a name for four random numbers
        rng, rng.randrange(3, 12), (rng.uniform(0, 100), rng.uniform(0, 100)), rng.choice((3.0, 30.0))
    )
    for id in range(300):
        made = draw()
        for index in (tree, linear, exact):
            index.insert(id, RELATIONS[id % 8], made)
    differing = 0
    for _ in range(15):
        query = draw()
        differences = tree.search(query) ^ linear.search(query)
        differing += len(differences)
        assert differences <= linear.search(query) ^ exact.search(query)
        assert not differences & (tree.search(query) ^ exact.search(query))
    assert differing > 0 or not halo


def test_a_region_that_the_evaluator_refuses_is_refused() -> None:
    tree: CrTree[int] = CrTree(partial(approximate_relation, density=Density(50, (0.0, 0.0, 9.0, 9.0))))
    tree.insert(1, Relation.OVERLAPS, region("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 2, 2 2, 1 1))"))
    with pytest.raises(RegionNotSimple):
        tree.search(box(3, 3, 4, 4))
