"""Constraints on single attributes: what filters are made of, and when one holds.

A filter is a conjunction of constraints, a predicate a disjunction of filters. The types of values and their comparison
are those of selectors (`matcher.selector.truth`): only like types are compared, `<>` included, and an attribute that
is missing satisfies nothing but a test that it is missing. UNKNOWN therefore counts as not matched, which is
what a filter without NOT makes of it.

`BETWEEN` is two constraints and `IN` as many filters as it has values, so that every test here has one operand.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import msgspec

from matcher.errors import NumberInvalid
from matcher.planar import PlanarRegion
from matcher.relations import relate
from matcher.selector.tree import CompareOp, Relation, Time
from zones.shapes import Point

__all__ = [
    "AttributeValue", "BoolTest", "Constraint", "Evaluate", "Filter", "NumberTest", "Predicate", "PresentTest",
    "RegionTest", "StringOp", "StringTest", "Test", "TimeTest", "holds", "matches",
]  # fmt: skip

AttributeValue = bool | int | float | str | Time | PlanarRegion | Point | None
"""What an event says of one attribute; None if nothing. A place is like no test's type, but it is present."""

Evaluate = Callable[[PlanarRegion, PlanarRegion], Relation]
"""Decides the relation of "the event's region REL the constraint's": `relate`, or an approximate evaluator."""


class StringOp(StrEnum):
    EQ = "="
    NE = "<>"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CONTAINS = "contains"


class _Test(msgspec.Struct, frozen=True, tag_field="t"):
    pass


class NumberTest(_Test, frozen=True, tag="number"):
    op: CompareOp
    value: int | float

    def __post_init__(self) -> None:
        if self.value != self.value:
            raise NumberInvalid("A constraint compares with NaN.", hint="Give a number.")


class StringTest(_Test, frozen=True, tag="string"):
    op: StringOp
    value: str


class BoolTest(_Test, frozen=True, tag="bool"):
    value: bool


class TimeTest(_Test, frozen=True, tag="time"):
    op: CompareOp
    ms: int


class RegionTest(_Test, frozen=True, tag="region"):
    """The event's region has this relation to that one."""

    relation: Relation
    region: PlanarRegion


class PresentTest(_Test, frozen=True, tag="present"):
    """IS NOT NULL, or with False IS NULL."""

    present: bool


Test = NumberTest | StringTest | BoolTest | TimeTest | RegionTest | PresentTest


class Constraint(msgspec.Struct, frozen=True):
    attribute: str
    test: Test


Filter = tuple[Constraint, ...]  # all must hold; an empty one always does
Predicate = tuple[Filter, ...]  # one must match; an empty one never does


def holds(constraint: Constraint, value: AttributeValue, evaluate: Evaluate = relate) -> bool:
    """Whether the constraint holds for what the event says of its attribute."""
    return _HOLDS[type(constraint.test)](constraint.test, value, evaluate)


def matches(predicate: Predicate, values: Mapping[str, AttributeValue], evaluate: Evaluate = relate) -> bool:
    """Whether one of the filters matches: the plain reference for tables of many."""
    return any(all(holds(each, values.get(each.attribute), evaluate) for each in every) for every in predicate)


def _number(test: NumberTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return type(value) in (int, float) and _COMPARISONS[test.op](value, test.value)


def _string(test: StringTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return type(value) is str and _STRINGS[test.op](value, test.value)


def _bool(test: BoolTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return value is test.value


def _time(test: TimeTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return type(value) is Time and _COMPARISONS[test.op](value.ms, test.ms)


def _region(test: RegionTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return type(value) is PlanarRegion and evaluate(value, test.region) == test.relation


def _present(test: PresentTest, value: AttributeValue, evaluate: Evaluate) -> bool:
    return (value is not None) is test.present


_COMPARISONS: dict[CompareOp, Callable[[Any, Any], bool]] = {
    CompareOp.EQ: eq,
    CompareOp.NE: ne,
    CompareOp.LT: lt,
    CompareOp.LE: le,
    CompareOp.GT: gt,
    CompareOp.GE: ge,
}
_STRINGS: dict[StringOp, Callable[[str, str], bool]] = {
    StringOp.EQ: eq,
    StringOp.NE: ne,
    StringOp.PREFIX: str.startswith,
    StringOp.SUFFIX: str.endswith,
    StringOp.CONTAINS: str.__contains__,
}
_HOLDS: dict[type, Callable[[Any, AttributeValue, Evaluate], bool]] = {
    NumberTest: _number,
    StringTest: _string,
    BoolTest: _bool,
    TimeTest: _time,
    RegionTest: _region,
    PresentTest: _present,
}
