"""Simplification: what covers and what conflicts, and that no event is matched by less or by more."""

from collections import Counter
from itertools import product
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.constraints import (
    AttributeValue,
    BoolTest,
    Constraint,
    Filter,
    NumberTest,
    Predicate,
    PresentTest,
    RegionTest,
    StringOp,
    StringTest,
    Test,
    TimeTest,
    holds,
    matches,
)
from matcher.errors import NumberInvalid
from matcher.planar import PlanarRegion, from_rings
from matcher.relations import relate
from matcher.selector.tree import CompareOp, Relation, Time
from matcher.simplification import Rule, conflicts, covers, format_constraint, simplify
from tests.matcher.exact_pairs import draw_pair

randoms = st.integers(0, 2**64).map(Random)  # a drawn Random would run out of choices: regions are drawn until valid

STRINGS = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]
VALUES: list[AttributeValue] = [
    None, True, False, 0, -0.0, 1, 1.0, 0.5, 2, 2**53, 2.0**53, 2**53 + 1, -1e300, 1e300,
    *STRINGS, *map(Time, range(-2, 6)), (1.0, 2.0),
]  # fmt: skip


def x(test: Test) -> Constraint:
    return Constraint("x", test)


def number(text: str, name: str = "x") -> Constraint:
    op, _, value = text.partition(" ")
    return Constraint(name, NumberTest(CompareOp(op), float(value)))


def string(op: str, value: str) -> Constraint:
    return x(StringTest(StringOp(op), value))


def time(op: str, ms: int) -> Constraint:
    return x(TimeTest(CompareOp(op), ms))


def box(west: float, south: float, east: float, north: float) -> PlanarRegion:
    return from_rings([[(west, south), (east, south), (east, north), (west, north)]])


def area(relation: str, region: PlanarRegion) -> Constraint:
    return x(RegionTest(Relation(relation), region))


def draw_test(rng: Random, kinds: int = 9) -> Test:
    kind = rng.randrange(kinds)
    if kind < 3:
        return NumberTest(rng.choice(tuple(CompareOp)), rng.choice((0, 1, 1.0, 0.5, 2, 2**53, 2**53 + 1, -1)))
    if kind < 6:
        return StringTest(rng.choice(tuple(StringOp)), rng.choice(STRINGS[:15]))
    if kind == 6:
        return TimeTest(rng.choice(tuple(CompareOp)), rng.randrange(4))
    return BoolTest(rng.random() < 0.5) if kind == 7 else PresentTest(rng.random() < 0.5)


# --- covers and conflicts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (number("<> 0"), number("> 10")),  # the publication's example
        (number("<> 10"), number("> 10")),
        (number("> 3"), number("> 4")),
        (number(">= 3"), number("> 3")),
        (number("<= 3"), number("= 3")),
        (number("< 3"), number("<= 2")),
        (number("<> 3"), number("<> 3")),
        (time(">", 3), time(">=", 5)),
        (time("<=", 3), time("<", 3)),
        (string("<>", "ab"), string("prefix", "b")),
        (string("prefix", "a"), string("prefix", "ab")),
        (string("suffix", "b"), string("suffix", "ab")),
        (string("contains", "b"), string("prefix", "abc")),
        (string("contains", "b"), string("suffix", "abc")),
        (string("contains", "b"), string("=", "abc")),
        (string("prefix", ""), string("<>", "a")),  # any string
        (x(PresentTest(True)), number("= 1")),
        (x(PresentTest(True)), area("disjoint", box(0, 0, 1, 1))),
        (area("disjoint", box(0, 0, 1, 1)), area("inside", box(2, 0, 3, 1))),
        (area("inside", box(0, 0, 9, 9)), area("covered-by", box(1, 1, 2, 2))),
        (area("contains", box(1, 1, 2, 2)), area("covers", box(0, 0, 9, 9))),
        (area("meets", box(0, 0, 1, 1)), area("meets", box(0, 0, 1, 1))),
    ],
)
def test_one_covers_the_other_and_not_the_reverse(one: Constraint, other: Constraint) -> None:
    assert covers(one, other)
    assert covers(other, one) == (one == other)
    assert not conflicts(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (number("> 3"), number("< 3")),
        (number("> 3"), number("<= 3")),
        (number("= 3"), number("> 3")),
        (number("= 3"), number("<> 3")),
        (time(">", 3), time("<", 4)),  # nothing between two milliseconds
        (string("=", "abc"), string("contains", "d")),
        (string("prefix", "ab"), string("prefix", "b")),
        (string("suffix", "ab"), string("suffix", "a")),
        (string("=", "a"), string("<>", "a")),
        (x(BoolTest(True)), x(BoolTest(False))),
        (x(BoolTest(True)), number("= 1")),  # a boolean is no number
        (string("<>", "a"), number("<> 1")),
        (x(PresentTest(False)), number("= 1")),
        (x(PresentTest(False)), x(PresentTest(True))),
        (area("inside", box(0, 0, 1, 1)), area("inside", box(2, 0, 3, 1))),
        (area("contains", box(0, 0, 1, 1)), area("disjoint", box(0, 0, 9, 9))),
        (area("equals", box(0, 0, 1, 1)), area("meets", box(0, 0, 1, 1))),
    ],
)
def test_two_that_never_hold_together(one: Constraint, other: Constraint) -> None:
    assert conflicts(one, other)
    assert conflicts(other, one)
    assert not covers(one, other)
    assert not covers(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (number("> 3"), number("< 4")),  # 3.5
        (string("prefix", "ab"), string("suffix", "c")),
        (string("prefix", "a"), string("contains", "a")),
        (area("overlaps", box(0, 0, 2, 2)), area("overlaps", box(1, 1, 3, 3))),
        (x(PresentTest(False)), x(PresentTest(False))),
    ],
)
def test_two_that_may_hold_together(one: Constraint, other: Constraint) -> None:
    assert not conflicts(one, other)
    assert not conflicts(other, one)


def test_the_published_example_of_a_conflict_is_none() -> None:
    """ "x covered-by A conflicts with x disjoint B if A overlaps B", but here is an x."""
    a, b, found = box(0, 0, 4, 4), box(3, 0, 6, 4), box(0, 0, 1, 1)
    assert relate(a, b) is Relation.OVERLAPS
    one, other = area("covered-by", a), area("disjoint", b)
    assert holds(one, found)
    assert holds(other, found)
    assert not conflicts(one, other)
    assert simplify(((one, other),)).dropped == ()


def test_after_one_millisecond_is_from_the_next_on() -> None:
    for one, other in ((time(">", 3), time(">=", 4)), (time("<", 4), time("<=", 3))):
        assert covers(one, other)
        assert covers(other, one)


def test_attributes_have_nothing_to_do_with_each_other() -> None:
    assert not covers(number("> 1", "a"), number("> 2", "b"))
    assert not conflicts(number("> 1", "a"), number("< 0", "b"))


def test_nothing_is_said_of_regions_with_holes_unless_they_are_the_same() -> None:
    ring = from_rings([[(0, 0), (9, 0), (9, 9), (0, 9)], [(1, 1), (8, 1), (8, 8), (1, 8)]])
    far = box(20, 20, 21, 21)
    assert not covers(area("disjoint", far), area("inside", ring))
    assert not conflicts(area("inside", far), area("inside", ring))
    assert covers(area("inside", ring), area("inside", ring))
    assert conflicts(area("inside", ring), area("meets", ring))


class EvenTest(msgspec.Struct, frozen=True):
    """Of a kind that a table may have been taught."""

    even: bool


def test_of_tests_of_a_new_kind_only_equal_ones_are_known_to_cover() -> None:
    even, odd = x(EvenTest(True)), x(EvenTest(False))
    assert covers(even, x(EvenTest(True)))
    others = [number("= 2"), string("=", "a"), x(PresentTest(True)), x(PresentTest(False)), odd]
    for other in others:
        assert not covers(even, other)
        assert not covers(other, even)
        assert not conflicts(even, other)
        assert not conflicts(other, even)
    made = simplify(((even, number("> 1"), even, number("> 2")),))
    assert made.filters == ((even, number("> 2")),)
    assert [each.why for each in made.dropped] == ["x EvenTest(even=True) says it already.", "x > 2.0 says it already."]


@given(randoms)
@settings(max_examples=60)
def test_covers_and_conflicts_are_true_of_every_value(rng: Random) -> None:
    for _ in range(40):
        one, other = x(draw_test(rng)), x(draw_test(rng))
        both = [(holds(one, value), holds(other, value)) for value in VALUES]
        if covers(one, other):
            assert (False, True) not in both, (one, other)
        if conflicts(one, other):
            assert (True, True) not in both, (one, other)
        assert conflicts(one, other) == conflicts(other, one)


def test_nothing_is_overlooked_among_numbers_and_times() -> None:
    """With a value between any two of the constants, the answers are complete too."""
    for make, values in (
        (lambda op, value: x(NumberTest(op, value)), [v / 2 for v in range(-1, 8)]),
        (lambda op, value: x(TimeTest(op, value)), [Time(ms) for ms in range(-2, 7)]),
    ):
        tests = [make(op, value) for op in CompareOp for value in (0, 1, 2, 3)]
        for one, other in product(tests, repeat=2):
            both = [(holds(one, value), holds(other, value)) for value in values]
            assert covers(one, other) == ((False, True) not in both), (one, other)
            assert conflicts(one, other) == ((True, True) not in both), (one, other)


def test_covers_and_conflicts_are_true_of_every_region(full_size: bool) -> None:
    """Of regions with holes and parts too, as values."""
    rng = Random(47)
    said: Counter[str] = Counter()
    for _ in range(200 if full_size else 12):
        drawn = [each for _ in range(6) for each in draw_pair(rng)]
        drawn += [box(*corner, *(side + rng.randrange(1, 5) for side in corner)) for corner in ((0, 0), (1, 0), (2, 2))]
        related = {(a, b): relate(drawn[a], drawn[b]) for a, b in product(range(len(drawn)), repeat=2)}
        for a, b in product(range(len(drawn)), repeat=2):
            pairs = {(related[value, a], related[value, b]) for value in range(len(drawn))}
            for first, second in product(Relation, repeat=2):
                one, other = x(RegionTest(first, drawn[a])), x(RegionTest(second, drawn[b]))
                if covers(one, other):
                    said["covers"] += a != b
                    assert all(of_a == first for of_a, of_b in pairs if of_b == second)
                if conflicts(one, other):
                    said["conflicts"] += a != b
                    assert (first, second) not in pairs
    assert said["covers"] > 300
    assert said["conflicts"] > 3_000


# --- the three rules -------------------------------------------------------------------------------


def test_a_constraint_that_covers_another_goes() -> None:
    made = simplify(((number("<> 0"), number("> 10"), number("> 5")),))
    assert made.filters == ((number("> 10"),),)
    assert [(each.rule, each.filter, each.what, each.why) for each in made.dropped] == [
        (Rule.REDUNDANT_CONSTRAINT, 0, number("> 5"), "x > 10.0 says it already."),
        (Rule.REDUNDANT_CONSTRAINT, 0, number("<> 0"), "x > 10.0 says it already."),
    ]


def test_a_filter_with_a_conflict_goes() -> None:
    never = (number("> 10"), string("=", "a"), number("> 1", "y"))
    made = simplify((never, (number("= 1", "y"),)))
    assert made.filters == ((number("= 1", "y"),),)
    assert made.kept == (1,)
    (dropped,) = made.dropped
    assert (dropped.rule, dropped.filter, dropped.what) == (Rule.CONFLICT, 0, never)
    assert dropped.why == "x > 10.0 and x = 'a' never hold together."


def test_a_filter_that_another_one_stands_for_goes() -> None:
    wide: Filter = (number("> 1"), number("< 5", "y"))
    narrow: Filter = (number("= 3", "y"), area("inside", box(0, 0, 1, 1)), number("> 7", "z"))
    other: Filter = (number("< 4", "y"), number("= 2"), number("> 7", "z"))
    made = simplify((narrow, other, wide))
    assert made.filters == (narrow, wide)
    assert made.kept == (0, 2)
    (dropped,) = made.dropped
    assert (dropped.rule, dropped.filter, dropped.what, dropped.by) == (Rule.REDUNDANT_FILTER, 1, other, wide)
    assert dropped.why == "The filter x > 1.0 AND y < 5.0 matches whatever it matches."


def test_of_two_that_say_the_same_the_first_stays() -> None:
    one, other = (number("> 1"), number("> 1")), (number("> 1"),)
    made = simplify((one, other, other))
    assert made.filters == (other,)
    assert made.kept == (0,)
    assert Counter(each.rule for each in made.dropped) == {Rule.REDUNDANT_CONSTRAINT: 1, Rule.REDUNDANT_FILTER: 2}


def test_an_empty_filter_stands_for_all() -> None:
    made = simplify(((number("> 1"),), ()))
    assert made.filters == ((),)
    assert made.dropped[0].why == "An empty filter matches all."
    assert simplify(()).filters == ()
    assert simplify(((number("> 1"), number("< 1")),)).filters == ()


def test_each_pair_of_regions_is_related_once() -> None:
    asked: Counter[tuple[int, int]] = Counter()

    def counting(a: PlanarRegion, b: PlanarRegion) -> Relation:
        asked[min(id(a), id(b)), max(id(a), id(b))] += 1
        return relate(a, b)

    regions = [box(at, 0, at + 3, 3) for at in range(5)]
    simplify(tuple((area("inside", a), area("covered-by", b)) for a, b in product(regions, repeat=2)), counting)
    assert asked
    assert set(asked.values()) == {1}


def truth(predicate: Predicate, values: dict[str, AttributeValue]) -> bool | None:
    """The three values, as selectors have them."""

    def of(each: Constraint) -> bool | None:
        value = values.get(each.attribute)
        return None if value is None and not isinstance(each.test, PresentTest) else holds(each, value)

    def every(found: list[bool | None]) -> bool | None:
        return False if False in found else None if None in found else True

    found = [every([of(each) for each in constraints]) for constraints in predicate]
    return True if True in found else None if None in found else False


def draw_predicate(rng: Random, regions: list[PlanarRegion]) -> Predicate:
    def draw() -> Constraint:
        if rng.randrange(3) == 0:
            return Constraint("area", RegionTest(rng.choice(tuple(Relation)), rng.choice(regions)))
        name = rng.choice("ab")
        return Constraint(name, draw_test(rng, 3 if name == "a" and rng.randrange(8) else 9))

    sizes = (0, *[1] * 8, *[2] * 10, *[3] * 10, *[4] * 5)
    return tuple(tuple(draw() for _ in range(rng.choice(sizes))) for _ in range(rng.randrange(6)))


@pytest.mark.slow
@given(randoms)
@settings(max_examples=150)
def test_no_event_is_matched_by_less_or_by_more(rng: Random) -> None:
    regions = [each for _ in range(3) for each in draw_pair(rng)] + [box(0, 0, 4, 4), box(1, 1, 2, 2), box(2, 0, 6, 6)]
    for _ in range(5):
        predicate = draw_predicate(rng, regions)
        made, careful = simplify(predicate), simplify(predicate, keeps_unknown=True)
        assert simplify(made.filters).dropped == ()
        assert simplify(careful.filters, keeps_unknown=True).dropped == ()
        for index, each in zip(made.kept, made.filters, strict=True):
            assert set(each) <= set(predicate[index])
        for _ in range(25):
            event: dict[str, AttributeValue] = {name: rng.choice(VALUES) for name in "ab" if rng.randrange(3)}
            if rng.randrange(4):
                event["area"] = rng.choice(regions) if rng.randrange(10) else rng.choice(VALUES)
            assert matches(made.filters, event) == matches(predicate, event) == (truth(predicate, event) is True)
            assert truth(careful.filters, event) is truth(predicate, event)


def test_each_rule_is_used_on_drawn_predicates() -> None:
    """The property above is worth nothing if nothing is dropped."""
    rng = Random(53)
    regions = [box(0, 0, 4, 4), box(1, 1, 2, 2), box(2, 0, 6, 6)]
    predicates = [draw_predicate(rng, regions) for _ in range(500)]
    for keeps_unknown in (False, True):
        used = Counter(
            each.rule for every in predicates for each in simplify(every, keeps_unknown=keeps_unknown).dropped
        )
        assert min(used[rule] for rule in Rule) > (1 if keeps_unknown else 100), used


def test_unknown_and_false_are_told_apart_where_a_leave_depends_on_it() -> None:
    never, checked = (number("> 5"), number("< 3")), (x(PresentTest(True)), number("> 5"))
    for constraints in (never, checked):
        assert truth((constraints,), {}) is not truth(simplify((constraints,)).filters, {})
        assert simplify((constraints,), keeps_unknown=True).filters == (constraints,)
    null = (x(PresentTest(True)), x(PresentTest(False)), number("> 5", "y"))
    assert simplify((null,), keeps_unknown=True).filters == ()


# --- constraints -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (x(NumberTest(CompareOp.LE, 7)), "x <= 7"),
        (x(BoolTest(True)), "x = TRUE"),
        (x(PresentTest(False)), "x IS NULL"),
        (x(PresentTest(True)), "x IS NOT NULL"),
        (time(">", 0), "x > TIMESTAMP '1970-01-01T00:00:00.000Z'"),
        (time(">", 10**18), "x > TIMESTAMP '1000000000000000000'"),
        (string("<>", "it's"), "x <> 'it''s'"),
        (string("prefix", "a%"), "x LIKE 'a\\%%' ESCAPE '\\'"),
        (string("suffix", "b"), "x LIKE '%b'"),
        (string("contains", "b"), "x LIKE '%b%'"),
        (area("covered-by", box(0, 0, 1, 1)), "x covered-by (a region of 4 corners)"),
    ],
)
def test_a_constraint_is_said_as_in_a_selector(constraint: Constraint, said: str) -> None:
    assert format_constraint(constraint) == said


def test_only_like_types_are_compared() -> None:
    one = x(NumberTest(CompareOp.NE, 5))
    assert [value for value in VALUES if holds(one, value) and type(value) not in (int, float)] == []
    assert not holds(x(NumberTest(CompareOp.EQ, 1)), True)
    assert not holds(x(BoolTest(True)), 1)
    assert not holds(x(TimeTest(CompareOp.NE, 5)), 6)
    assert not holds(x(StringTest(StringOp.NE, "a")), None)
    assert holds(x(PresentTest(True)), (1.0, 2.0))
    assert holds(x(NumberTest(CompareOp.GT, 2.0**53)), 2**53 + 1)


def test_nan_is_no_number_to_compare_with() -> None:
    with pytest.raises(NumberInvalid):
        NumberTest(CompareOp.EQ, float("nan"))
    assert holds(x(NumberTest(CompareOp.LT, 10**400)), 1)
