"""What was added lately is found as a plain look at each predicate finds it, by readers in other threads too."""

import sys
from collections.abc import Hashable, Iterator
from itertools import count, product
from random import Random
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matcher.constraints import (
    BoolTest,
    Constraint,
    NumberTest,
    Predicate,
    PresentTest,
    RegionTest,
    StringOp,
    StringTest,
    TimeTest,
)
from matcher.engine import Engine
from matcher.planar import PlanarRegion, from_rings
from matcher.relations import relate
from matcher.selector.tree import CompareOp, Relation, Time
from matcher.table.growing import Columns
from matcher.table.raster import CROSSED, INSIDE, cells_per_unit, rasterized, side_of_box
from matcher.table.regions import edge_region
from tests.matcher.exact_pairs import draw_pair
from tests.matcher.test_engine import NUMBERS, REGIONS, STRINGS, draw_predicate, draw_values, expected, square

HUGE = (2**200 + 1, 2**200, float(2**200), -(2**200) - 1, 10**400, -(10**400), 2**106 + 1, float("-inf"))


def both_parts(predicates: dict[Hashable, Predicate]) -> Iterator[Engine]:
    """An engine in which they are recent, and one in which they are in the table."""
    engine = Engine()
    for owner, predicate in predicates.items():
        engine.add(owner, predicate)
    yield engine
    yield Engine(predicates.items())


@given(st.randoms(use_true_random=False))
def test_what_is_recent_is_found_as_a_look_at_each_finds_it_while_it_comes_and_goes(rng: Random) -> None:
    predicates: dict[Hashable, Predicate] = {}
    engine = Engine()
    for step in range(rng.randrange(120)):
        if predicates and rng.random() < 0.3:
            owner = rng.choice(list(predicates))
            del predicates[owner]
            engine.remove(owner)
        else:
            owner = rng.randrange(100)
            predicates[owner] = draw_predicate(rng)
            engine.add(owner, predicates[owner])
        if step % 8 == 0:
            values = draw_values(rng)
            assert engine.match(values) == expected(predicates, values)


def test_numbers_of_any_size_are_compared_exactly_with_every_operator() -> None:
    numbers = (*NUMBERS, *HUGE)
    predicates: dict[Hashable, Predicate] = {
        (op, place): ((Constraint("n", NumberTest(op, number)),),)
        for op, (place, number) in product(CompareOp, enumerate(numbers))
    }
    for engine in both_parts(predicates):
        for value in (*numbers, float("nan"), True, 3):
            assert engine.match({"n": value}) == expected(predicates, {"n": value}), value


def test_strings_times_and_truth_values_are_compared_with_every_operator() -> None:
    predicates: dict[Hashable, Predicate] = {}
    for string_op, text in product(StringOp, STRINGS):
        predicates[string_op, text] = ((Constraint("a", StringTest(string_op, text)),),)
    for op, ms in product(CompareOp, (0, 1, 2**60 + 1, 2**60)):
        predicates[op, ms] = ((Constraint("a", TimeTest(op, ms)),),)
    for flag in (True, False):
        predicates["is", flag] = ((Constraint("a", BoolTest(flag)),),)
        predicates["present", flag] = ((Constraint("a", PresentTest(flag)),),)
    for engine in both_parts(predicates):
        for value in (*STRINGS, "xabay", "ab" * 500, Time(0), Time(2**60), Time(2**60 + 1), True, False, 0, 1, None):
            assert engine.match({"a": value}) == expected(predicates, {"a": value}), value
        assert engine.match({}) == {("present", False)}


def test_many_recent_regions_have_the_relation_that_the_plain_code_finds() -> None:
    rng = Random(7)
    predicates: dict[Hashable, Predicate] = {}
    for number in range(600):
        region = rng.choice(REGIONS)
        if number % 2:
            region = square(rng.uniform(-2, 6), rng.uniform(-2, 6), rng.choice((0.05, 0.25, 1)))
        predicates[number] = ((Constraint("area", RegionTest(rng.choice(list(Relation)), region)),),)
    found = 0
    for engine in both_parts(predicates):
        for region in (*REGIONS[:25], square(0, 0, 4), square(-1, -1, 3.5)):
            wanted = expected(predicates, {"area": region})
            assert engine.match({"area": region}) == wanted
            found += len(wanted)
    assert found


def test_a_cell_without_a_mark_is_free_of_the_boundary() -> None:
    rng = Random(8)
    decided = 0
    for _ in range(150):
        region = draw_pair(rng)[0]
        edges = edge_region(region)
        sides = rasterized(edges.edges, edges.box)
        x0, y0, x1, y1 = region.box
        for _ in range(20):
            size = rng.choice((0.01, 0.05, 0.2)) * max(x1 - x0, y1 - y0)
            box = square(rng.uniform(x0 - size, x1), rng.uniform(y0 - size, y1), size)
            if not len(sides) or box.box[2] < x0 or box.box[3] < y0:
                continue
            across, up = cells_per_unit(edges.box)
            west, south, east, north = box.box
            side = side_of_box(sides, x0, y0, across, up, west, south, east, north)
            if side != CROSSED:
                decided += 1
                assert relate(region, box) is (Relation.CONTAINS if side == INSIDE else Relation.DISJOINT)
    assert decided > 300


@pytest.mark.parametrize("least", [5e-324, 1e-200, 1e-160, 1.0, 1e150, 1e300, 4e307])
def test_regions_with_coordinates_of_any_size_have_the_relation_that_the_plain_code_finds(least: float) -> None:
    """Products of these under- or overflow; a table with both kinds of regions is no exception."""

    def scaled(x: float, y: float, width: float) -> PlanarRegion:
        return from_rings(
            [[(x * least, y * least), ((x + width) * least, y * least), (x * least, (y + width) * least)]]
        )

    regions = [
        scaled(*each) for each in ((0, 0, 4), (0, 0, 2), (1, 1, 1), (2, 2, 1), (-3, -3, 3), (-4, 0, 4), (1, 0, 3))
    ]
    regions += [square(0, 0, 1), square(-1, -1, 3)]
    predicates: dict[Hashable, Predicate] = {
        (relation, place): ((Constraint("area", RegionTest(relation, region)),),)
        for relation, (place, region) in product(Relation, enumerate(regions))
    }
    for engine in both_parts(predicates):
        for region in regions:
            assert engine.match({"area": region}) == expected(predicates, {"area": region})


def test_more_kinds_of_tests_than_a_word_has_bits_are_told_apart() -> None:
    predicates: dict[Hashable, Predicate] = {
        number: (
            (
                Constraint(f"a{number}", NumberTest(CompareOp.GT, 0)),
                Constraint(f"a{(number + 1) % 150}", PresentTest(number % 2 == 0)),
            ),
        )
        for number in range(150)
    }
    rng = Random(9)
    for engine in both_parts(predicates):
        for _ in range(40):
            values = {f"a{number}": 1 for number in range(150) if rng.random() < 0.7}
            assert engine.match(values) == expected(predicates, values)


def test_what_was_removed_between_two_beginnings_of_a_merge_does_not_come_back() -> None:
    always: Predicate = ((),)
    engine = Engine([("in the table", always), ("stays", always)])
    engine.add("recent", always)
    forgotten = engine.begin_merge()
    engine.remove("recent")
    engine.remove("in the table")
    merge = engine.begin_merge()
    with pytest.raises(ValueError, match="begun"):
        engine.finish_merge(forgotten.build())
    engine.add("recent", always)
    engine.remove("stays")
    engine.finish_merge(merge.build())
    assert engine.match({}) == {"recent"}
    assert len(engine) == 1
    engine.merge()
    assert engine.match({}) == {"recent"}


def test_arrays_that_a_reader_has_do_not_change_when_more_is_added() -> None:
    columns = Columns(np.int64)
    had = []
    for number in range(1000):
        columns.with_room()[0][columns.count] = number
        columns.count += 1
        count = columns.count
        had.append((count, columns.arrays[0]))
    for count, array in had:
        assert array[:count].tolist() == list(range(count))


@pytest.mark.slow
def test_readers_beside_a_writer_see_what_stays_and_nothing_that_is_gone() -> None:
    """Some ids stay, one is replaced all the time and always matches, the rest come and go and are merged meanwhile."""
    rng = Random(11)
    stays: dict[Hashable, Predicate] = {("stays", number): draw_predicate(rng) for number in range(150)}
    engine = Engine(list(stays.items())[:75])
    for owner, predicate in list(stays.items())[75:]:
        engine.add(owner, predicate)
    engine.add("replaced", ((),))
    never = Constraint("a", NumberTest(CompareOp.GT, float("inf")))
    drawn = [draw_values(rng) for _ in range(30)]
    wanted = [expected(stays, values) | {"replaced"} for values in drawn]
    fickle = [draw_predicate(rng) for _ in range(200)]
    wrong: list[object] = []
    matches = 0
    is_done = False

    def read(seed: int) -> None:
        nonlocal matches
        order = Random(seed)
        try:
            while not is_done:
                place = order.randrange(len(drawn))
                found = engine.match(drawn[place])
                matches += 1
                if {owner for owner in found if not isinstance(owner, int)} != wanted[place]:
                    wrong.append((drawn[place], found))
        except BaseException as failure:
            wrong.append(failure)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    readers = [Thread(target=read, args=(seed,)) for seed in range(2)]
    try:
        for reader in readers:
            reader.start()
        merge = None
        for step in count():
            if wrong or (step >= 6000 and matches >= 500):  # what is compiled first takes its time
                break
            engine.add(step, fickle[step % len(fickle)])
            if step >= 100:
                engine.remove(step - 100)
            engine.add("replaced", ((never,), (), (never,)) if step % 2 else ((),))
            if step % 300 == 0:
                merge = engine.begin_merge()
            elif step % 300 == 150 and merge is not None:
                engine.finish_merge(merge.build())
    finally:
        is_done = True
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert not wrong, wrong[0]
