"""The engine finds what a plain look at each predicate finds."""

import subprocess
import sys
from collections.abc import Hashable, Sequence
from random import Random
from typing import Any, ClassVar

import msgspec
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
    matches,
)
from matcher.engine import Engine, register, scan_index, values_of
from matcher.events import Event, Located, Region
from matcher.planar import PlanarRegion, from_rings
from matcher.selector.tree import CompareOp, Relation, Time
from matcher.table.bits import Bits
from tests.matcher.exact_pairs import draw_pair
from tests.support.sources import ROOT
from zones.shapes import Polygon

NAMES = ("a", "b", "c", "area")
NUMBERS = (0, 1, -1, 2.5, 2**53, 2**53 + 1, float(2**53), -(2**63), 1e300, float("inf"), -0.0)
STRINGS = ("", "a", "b", "ab", "ba", "aba", "abab", "日本")
REGIONS: tuple[PlanarRegion, ...] = tuple(region for seed in range(40) for region in draw_pair(Random(seed))[:2])


def square(x: float, y: float, size: float) -> PlanarRegion:
    return from_rings([[(x, y), (x + size, y), (x + size, y + size), (x, y + size)]])


def draw_constraint(rng: Random) -> Constraint:
    name = rng.choice(NAMES)
    kind = rng.randrange(7) if name != "area" else 6
    if kind == 0:
        return Constraint(name, StringTest(rng.choice(list(StringOp)), rng.choice(STRINGS)))
    if kind == 1:
        return Constraint(name, BoolTest(bool(rng.randrange(2))))
    if kind == 2:
        return Constraint(name, TimeTest(rng.choice(list(CompareOp)), rng.randrange(4)))
    if kind == 3:
        return Constraint(name, PresentTest(rng.random() < 0.7))
    if kind == 6:
        return Constraint(name, RegionTest(rng.choice(list(Relation)), rng.choice(REGIONS)))
    return Constraint(name, NumberTest(rng.choice(list(CompareOp)), rng.choice(NUMBERS)))


def draw_predicate(rng: Random) -> Predicate:
    return tuple(
        tuple(draw_constraint(rng) for _ in range(rng.choice((1, 1, 2, 2, 3, 4, 6)) if rng.randrange(50) else 0))
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))
    )


def draw_values(rng: Random) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name in (*NAMES, "unheard"):
        kind = rng.randrange(8) if name != "area" or rng.randrange(4) == 0 else 6
        if kind == 0:
            continue
        values[name] = (
            None,
            rng.choice((*NUMBERS, float("nan"))),
            rng.choice((*STRINGS, "xabay")),
            bool(rng.randrange(2)),
            Time(rng.randrange(4)),
            Located((1.0, 2.0)),
            rng.choice(REGIONS),
            rng.choice(NUMBERS),
        )[kind]
    return values


def expected(predicates: dict[Hashable, Predicate], values: dict[str, Any]) -> set[Hashable]:
    return {owner for owner, predicate in predicates.items() if matches(predicate, values)}


@pytest.mark.parametrize("seed", range(4))
def test_a_table_finds_what_a_look_at_each_finds(seed: int, full_size: bool) -> None:
    rng = Random(seed)
    for size in (0, 1, 63, 64, 65, 1000):
        predicates: dict[Hashable, Predicate] = {number: draw_predicate(rng) for number in range(size)}
        engine = Engine(predicates.items())
        found = 0
        for _ in range(400 if full_size else 60):
            values = draw_values(rng)
            assert engine.match(values) == expected(predicates, values), values
            found += len(expected(predicates, values))
        assert found or size < 63


@given(st.randoms(use_true_random=False))
def test_any_predicates_match_recent_or_merged_with_early_stop_or_without(rng: Random) -> None:
    predicates: dict[Hashable, Predicate] = {number: draw_predicate(rng) for number in range(rng.randrange(30))}
    merged, never_stops, recent = Engine(predicates.items()), Engine(predicates.items(), early_stop=False), Engine()
    for owner, predicate in predicates.items():
        recent.add(owner, predicate)
    for _ in range(5):
        values = draw_values(rng)
        wanted = expected(predicates, values)
        assert merged.match(values) == wanted
        assert never_stops.match(values) == wanted
        assert recent.match(values) == wanted


@pytest.mark.parametrize("seed", range(3))
def test_what_is_added_and_removed_counts_at_once_also_while_a_table_is_being_built(seed: int) -> None:
    rng = Random(seed)
    predicates: dict[Hashable, Predicate] = {number: draw_predicate(rng) for number in range(200)}
    engine = Engine(predicates.items())
    merge = None
    finished = 0
    for step in range(600):
        kind = rng.randrange(10)
        if kind < 4:
            owner: Hashable = rng.randrange(300)
            predicates[owner] = draw_predicate(rng)
            engine.add(owner, predicates[owner])
        elif kind < 7 and predicates:
            owner = rng.choice(list(predicates))
            del predicates[owner]
            engine.remove(owner)
        elif kind == 7 and merge is None and step % 3 == 0:
            merge = engine.begin_merge()
        elif kind == 8 and merge is not None:
            engine.finish_merge(merge.build())
            merge, finished = None, finished + 1
        values = draw_values(rng)
        assert engine.match(values) == expected(predicates, values)
        assert len(engine) == len(predicates)
    assert finished > 3
    engine.merge()
    assert not engine.is_merge_due
    for _ in range(20):
        values = draw_values(rng)
        assert engine.match(values) == expected(predicates, values)


def test_few_filters_left_and_many_left_are_told_the_same_of_regions() -> None:
    rng = Random(5)
    predicates: dict[Hashable, Predicate] = {
        number: (
            (
                Constraint("rank", NumberTest(CompareOp.LT, number)),
                Constraint("area", RegionTest(rng.choice(list(Relation)), rng.choice(REGIONS))),
            ),
        )
        for number in range(3000)
    }
    engine = Engine(predicates.items())
    for rank in (2999, 2995, 2985, 2970, 2900, 1500, 0, -1):
        for _ in range(5):
            values = {"rank": rank, "area": rng.choice(REGIONS)}
            assert engine.match(values) == expected(predicates, values)


def test_the_published_message_is_forwarded_through_interface_2() -> None:
    """Figs. 1 and 3 of the publication; regions it abbreviates are completed so that they fit the figures."""
    leak = from_rings([[(23.1, 10.9), (30.3, 27.0), (48.0, 19.0), (40.0, 8.0)]])
    message = {"warning": "hazardous leak", "area": leak, "concentration": 172, "hazard": 4}
    f11 = (
        Constraint("stock", StringTest(StringOp.EQ, "MTK")),
        Constraint("price", NumberTest(CompareOp.LT, 100)),
    )
    f12 = (
        Constraint("stock", StringTest(StringOp.EQ, "DYS")),
        Constraint("price", NumberTest(CompareOp.GT, 200)),
        Constraint("bubble", BoolTest(True)),
    )
    f21 = (
        Constraint("cloud", RegionTest(Relation.OVERLAPS, from_rings([[(10, 5), (7, 12), (20, 15)]]))),
        Constraint("pressure", NumberTest(CompareOp.LT, 1000)),
    )
    f22 = (
        Constraint("warning", StringTest(StringOp.EQ, "hazardous leak")),
        Constraint("area", RegionTest(Relation.DISJOINT, from_rings([[(3, 2), (15, 40), (20, 30), (12, 5)]]))),
        Constraint("concentration", NumberTest(CompareOp.GT, 100)),
        Constraint("hazard", NumberTest(CompareOp.GT, 3)),
    )
    engine = Engine({"I1": (f11, f12), "I2": (f21, f22)}.items())
    by_filter = Engine({"f1.1": (f11,), "f1.2": (f12,), "f2.1": (f21,), "f2.2": (f22,)}.items())
    assert engine.match(message) == {"I2"}
    assert by_filter.match(message) == {"f2.2"}
    assert engine.match({**message, "hazard": 3}) == set()
    assert engine.match({**message, "area": square(10, 10, 5)}) == set()
    assert engine.match({"stock": "DYS", "price": 201, "bubble": True}) == {"I1"}
    assert engine.match({"cloud": square(8, 6, 4), "pressure": 999}) == {"I2"}
    assert engine.match_many([message, {}]) == [{"I2"}, set()]


@pytest.mark.parametrize("is_merged", [True, False])
def test_whole_numbers_are_not_rounded_to_be_compared(is_merged: bool) -> None:
    large = 2**53
    engine = Engine()
    for op in CompareOp:
        engine.add(op, [[Constraint("n", NumberTest(op, large + 1))]])
    if is_merged:
        engine.merge()
    assert engine.match({"n": float(large)}) == {CompareOp.LT, CompareOp.LE, CompareOp.NE}
    assert engine.match({"n": large + 1}) == {CompareOp.EQ, CompareOp.LE, CompareOp.GE}
    assert engine.match({"n": True}) == set()


def test_an_event_has_its_own_attributes_and_its_regions_are_planar() -> None:
    shape = Polygon((((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)),))
    event = Event(ts=1000, loc=(1.0, 2.0), oid="storm1", lpid="CMCC", pairs={"area": Region(shape), "wind": 41})
    engine = Engine()
    engine.add("region", [[Constraint("area", RegionTest(Relation.CONTAINS, square(1, 1, 1)))]])
    engine.add("time", [[Constraint("ts", TimeTest(CompareOp.EQ, 1000))]])
    engine.add("oid", [[Constraint("oid", StringTest(StringOp.PREFIX, "storm"))]])
    engine.add("place", [[Constraint("loc", PresentTest(True)), Constraint("lpid", PresentTest(True))]])
    engine.add("no unc", [[Constraint("unc", PresentTest(False))]])
    for _ in range(2):
        assert engine.match(event) == {"region", "time", "oid", "place", "no unc"}
        assert engine.match(msgspec.structs.replace(event, unc=1.0, oid="", loc=None)) == {"region", "time"}
        assert engine.match({"area": Region(shape)}) == {"region", "no unc"}
        engine.merge()
    assert values_of(event)["wind"] == 41


def test_an_id_that_is_added_again_has_only_its_new_filters() -> None:
    engine = Engine([("x", [[Constraint("a", BoolTest(True))]])])
    engine.add("x", [[Constraint("a", BoolTest(False))]])
    assert engine.match({"a": True}) == set()
    assert engine.match({"a": False}) == {"x"}
    assert len(engine) == 1
    engine.remove("x")
    assert "x" not in engine
    assert engine.match({"a": False}) == set()
    with pytest.raises(KeyError):
        engine.remove("x")


def test_a_predicate_without_filters_never_matches_and_a_filter_without_constraints_always_does() -> None:
    engine = Engine([("never", []), ("always", [[]])])
    assert engine.match({}) == {"always"}
    engine.add("never 2", [])
    engine.add("always 2", [()])
    assert engine.match({"a": 1}) == {"always", "always 2"}


def test_a_merge_that_was_not_begun_is_not_finished() -> None:
    engine = Engine()
    table = engine.begin_merge().build()
    engine.finish_merge(table)
    with pytest.raises(ValueError, match="begun"):
        engine.finish_merge(table)


# --- new types ---------------------------------------------------------------------------------------------


class Version(msgspec.Struct, frozen=True):
    parts: tuple[int, ...]


class AtLeast(msgspec.Struct, frozen=True):
    version: Version


class OddDay(msgspec.Struct, frozen=True):
    odd: bool


def is_at_least(test: AtLeast, value: Version) -> bool:
    return value.parts >= test.version.parts


class WatchfulIndex:
    """Notes which filters it was still asked about."""

    asked: ClassVar[list[int]] = []

    def __init__(self, entries: Sequence[tuple[int, AtLeast]], size: int) -> None:
        self._scan = scan_index(is_at_least)(entries, size)
        self._filters = [number for number, _ in entries]

    def exclude(self, value: Version, out: Bits) -> None:
        self.asked.extend(f for f in self._filters if not int(out[f // 64]) >> f % 64 & 1)
        self._scan.exclude(value, out)


register(AtLeast, WatchfulIndex, values=(Version,), holds=is_at_least, is_dear=True)


@pytest.mark.parametrize("is_merged", [True, False])
def test_a_new_type_brings_its_tests_and_its_index(is_merged: bool) -> None:
    engine = Engine()
    engine.add("old", [[Constraint("firmware", AtLeast(Version((1, 2))))]])
    engine.add("new", [[Constraint("firmware", AtLeast(Version((2,)))), Constraint("on", BoolTest(True))]])
    if is_merged:
        engine.merge()
    assert engine.match({"firmware": Version((1, 10)), "on": True}) == {"old"}
    assert engine.match({"firmware": Version((2, 0)), "on": True}) == {"old", "new"}
    assert engine.match({"firmware": Version((2, 0)), "on": 1}) == {"old"}
    assert engine.match({"firmware": "2.0", "on": True}) == set()


def test_a_test_of_no_known_type_is_refused_when_it_is_added() -> None:
    engine = Engine()
    with pytest.raises(TypeError, match="OddDay"):
        engine.add("x", [[Constraint("day", OddDay(True))]])
    assert len(engine) == 0


def test_filters_of_an_id_that_matches_already_are_not_looked_at() -> None:
    dear = Constraint("firmware", AtLeast(Version((1,))))
    cheap = Constraint("on", BoolTest(True))
    predicates = [("x", [[dear], [cheap], [dear, cheap]]), ("y", [[dear, cheap], [dear]])]
    values = {"firmware": Version((3,)), "on": True}
    WatchfulIndex.asked.clear()
    assert Engine(predicates).match(values) == {"x", "y"}
    assert WatchfulIndex.asked == [3, 4]
    WatchfulIndex.asked.clear()
    assert Engine(predicates, early_stop=False).match(values) == {"x", "y"}
    assert WatchfulIndex.asked == [0, 2, 3, 4]


def test_the_engine_is_loaded_only_when_it_is_asked_for() -> None:
    program = (
        "import sys, matcher; print('numba' in sys.modules); matcher.Engine; print('numba' in sys.modules);"
        "print(hasattr(matcher, 'Motor'))"
    )
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True", "False"]


def test_of_an_id_that_is_given_twice_the_last_predicate_counts():
    is_on, is_off = ([[Constraint("a", BoolTest(value))]] for value in (True, False))
    engine = Engine(iter([("x", is_on), ("y", is_on), ("x", is_off)]))
    assert len(engine) == 2
    for _ in range(2):
        assert engine.match({"a": True}) == {"y"}
        assert engine.match({"a": False}) == {"x"}
        engine.merge()
    engine.remove("x")
    assert engine.match({"a": False}) == set()
