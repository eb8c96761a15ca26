"""When one constraint says no more than another, and when two can't both hold.

Both questions are about one attribute, and both answers are sound and not complete: "no" may also mean "not found".
A constraint *covers* another if every value that satisfies the other satisfies it; two *conflict* if no value
satisfies both. A missing attribute satisfies nothing but `PresentTest(False)`, and is a value like any other here.

Regions are compared by composition. With C1 = (rel1, R1) and C2 = (rel2, R2) and X any region: if X rel2 R2, then X has
one of the relations compose(rel2, relation of R2 and R1) to R1. If rel1 is the only one, C1 covers C2; if it is none
of them, they conflict. The relation of R2 and R1 must be the exact one. X may have holes and parts; of regions R1
and R2 that do nothing is said, as the table was verified without them.

Of tests of other classes than those of `matcher.constraints` (a table takes new kinds) it is only known that equal ones
cover each other: they may be about the same values as any other test.
"""

from collections.abc import Callable
from typing import Any

from matcher.composition import compose
from matcher.constraints import (
    BoolTest,
    Constraint,
    Evaluate,
    NumberTest,
    PresentTest,
    RegionTest,
    StringOp,
    StringTest,
    Test,
    TimeTest,
    holds,
)
from matcher.relations import relate
from matcher.selector.tree import CompareOp, Relation

__all__ = ["conflicts", "covers"]


def covers(one: Constraint, other: Constraint, evaluate: Evaluate = relate) -> bool:
    """Whether `one` holds wherever `other` does. `evaluate` must be exact; it is an argument to be remembered."""
    if one.attribute != other.attribute:
        return False
    kind, other_kind = type(one.test), type(other.test)
    if kind is other_kind:
        return _COVERS.get(kind, _is_same)(one.test, other.test, evaluate)
    return one.test == PresentTest(True) and other_kind in _COVERS


def conflicts(one: Constraint, other: Constraint, evaluate: Evaluate = relate) -> bool:
    """Whether there is no value for which both hold."""
    kind, other_kind = type(one.test), type(other.test)
    if one.attribute != other.attribute or kind not in _COVERS or other_kind not in _COVERS:
        return False
    if kind is PresentTest or other_kind is PresentTest:
        return _needs_a_value(one.test) != _needs_a_value(other.test)
    if kind is not other_kind:
        return True  # a value has one type
    return _CONFLICTS[kind](one.test, other.test, evaluate)


def _needs_a_value(test: Test) -> bool:
    return not isinstance(test, PresentTest) or test.present


def _is_same(one: Test, other: Test, evaluate: Evaluate) -> bool:
    return one == other


def _is_other(one: Test, other: Test, evaluate: Evaluate) -> bool:
    return one != other


# --- what is ordered: numbers and times ------------------------------------------------------------

_UPPER = (CompareOp.LT, CompareOp.LE)
_LOWER = (CompareOp.GT, CompareOp.GE)
_STRICT = (CompareOp.LT, CompareOp.GT)


def _number_covers(one: NumberTest, other: NumberTest, evaluate: Evaluate) -> bool:
    if other.op == CompareOp.EQ:
        return _is_met(one, other.value)
    if one.op == CompareOp.NE:
        return not _is_met(other, one.value)
    for bounds, sign in ((_UPPER, 1), (_LOWER, -1)):
        if one.op in bounds and other.op in bounds:
            if one.value == other.value:
                return one.op not in _STRICT or other.op in _STRICT
            return (other.value < one.value) == (sign > 0)
    return False


def _number_conflicts(one: NumberTest, other: NumberTest, evaluate: Evaluate) -> bool:
    if one.op == CompareOp.EQ:
        return not _is_met(other, one.value)
    if other.op == CompareOp.EQ:
        return not _is_met(one, other.value)
    if one.op in _LOWER and other.op in _UPPER:
        one, other = other, one
    if one.op in _UPPER and other.op in _LOWER:
        if one.value == other.value:
            return one.op in _STRICT or other.op in _STRICT
        return one.value < other.value
    return False


def _is_met(test: NumberTest, value: int | float) -> bool:
    return holds(Constraint("", test), value)


def _time_covers(one: TimeTest, other: TimeTest, evaluate: Evaluate) -> bool:
    return _number_covers(_inclusive(one), _inclusive(other), evaluate)


def _time_conflicts(one: TimeTest, other: TimeTest, evaluate: Evaluate) -> bool:
    return _number_conflicts(_inclusive(one), _inclusive(other), evaluate)


def _inclusive(test: TimeTest) -> NumberTest:
    """Between two milliseconds there is nothing: after one is from the next on."""
    if test.op == CompareOp.LT:
        return NumberTest(CompareOp.LE, test.ms - 1)
    if test.op == CompareOp.GT:
        return NumberTest(CompareOp.GE, test.ms + 1)
    return NumberTest(test.op, test.ms)


# --- strings ---------------------------------------------------------------------------------------


def _string_covers(one: StringTest, other: StringTest, evaluate: Evaluate) -> bool:
    if other.op == StringOp.EQ:
        return _is_said(one, other.value)
    if one.op == StringOp.NE:
        return not _is_said(other, one.value)
    if one.op == StringOp.EQ:
        return False
    if one.value == "":
        return True  # any string begins, ends and goes on with nothing
    if other.op == StringOp.NE or (one.op != StringOp.CONTAINS and one.op != other.op):
        return False
    return _is_said(one, other.value)  # what the other asks for has it already


def _string_conflicts(one: StringTest, other: StringTest, evaluate: Evaluate) -> bool:
    if one.op == StringOp.EQ:
        return not _is_said(other, one.value)
    if other.op == StringOp.EQ:
        return not _is_said(one, other.value)
    if one.op == other.op and one.op in (StringOp.PREFIX, StringOp.SUFFIX):
        return not _is_said(one, other.value) and not _is_said(other, one.value)
    return False


def _is_said(test: StringTest, value: str) -> bool:
    return holds(Constraint("", test), value)


# --- regions ---------------------------------------------------------------------------------------

_PAIRS = [(one, other) for one in Relation for other in Relation]
_COVERS_IF = {
    (one, other): frozenset(between for between in Relation if compose(other, between) == {one})
    for one, other in _PAIRS
}  # fmt: skip
_CONFLICTS_IF = {
    (one, other): frozenset(between for between in Relation if one not in compose(other, between))
    for one, other in _PAIRS
}  # fmt: skip
"""Which relations of the other's region to the one's make it so. Where none does, nothing has to be evaluated."""


def _region_covers(one: RegionTest, other: RegionTest, evaluate: Evaluate) -> bool:
    return _is_among(_COVERS_IF[one.relation, other.relation], one, other, evaluate)


def _region_conflicts(one: RegionTest, other: RegionTest, evaluate: Evaluate) -> bool:
    return _is_among(_CONFLICTS_IF[one.relation, other.relation], one, other, evaluate)


def _is_among(wanted: frozenset[Relation], one: RegionTest, other: RegionTest, evaluate: Evaluate) -> bool:
    if one.region is other.region:  # no matter what it looks like
        return Relation.EQUALS in wanted
    return (
        bool(wanted)
        and one.region.is_simple
        and other.region.is_simple
        and evaluate(other.region, one.region) in wanted
    )


_COVERS: dict[type, Callable[[Any, Any, Evaluate], bool]] = {
    NumberTest: _number_covers,
    StringTest: _string_covers,
    BoolTest: _is_same,
    TimeTest: _time_covers,
    RegionTest: _region_covers,
    PresentTest: _is_same,
}
_CONFLICTS: dict[type, Callable[[Any, Any, Evaluate], bool]] = {
    NumberTest: _number_conflicts,
    StringTest: _string_conflicts,
    BoolTest: _is_other,
    TimeTest: _time_conflicts,
    RegionTest: _region_conflicts,
}
