"""Predicates without what says nothing: the publication's three rules.

1. A filter with two conflicting constraints never matches, and goes.
2. A constraint that covers another one of its filter goes: the other says more.
3. A filter goes if each constraint of another filter covers one of its own: the other matches whatever it does.

None changes for which events the predicate matches (a missing attribute included, which satisfies nothing but the test
that it is missing), if regions are evaluated exactly. An approximate evaluator may contradict itself, and then an
answer may change.

FALSE and UNKNOWN are the same to who asks what matches, but not to a binding: FALSE is a `leave`, UNKNOWN is none. Two
simplifications make FALSE of UNKNOWN or the reverse when an attribute is missing, and `keeps_unknown` leaves them
out: a filter with a conflict, `x > 5 AND x < 3`, is UNKNOWN then, and nothing is FALSE; `x IS NOT NULL AND x > 5` is
FALSE, and `x > 5` UNKNOWN. All else keeps the three values, because two tests of a value on one attribute are both
UNKNOWN or neither is.

A predicate is what belongs to one interface, in the platform one binding's selector. Predicates of two subscriptions
are never put together here: each has its own targets to tell of, and its own `leave`.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from matcher.constraints import (
    BoolTest,
    Constraint,
    Evaluate,
    Filter,
    NumberTest,
    Predicate,
    PresentTest,
    RegionTest,
    StringOp,
    StringTest,
    TimeTest,
)
from matcher.covering import conflicts, covers
from matcher.instants import LAST_INSTANT, format_instant
from matcher.planar import PlanarRegion
from matcher.relations import inverse, relate
from matcher.selector.tree import Relation

__all__ = ["Dropped", "Rule", "Simplified", "conflicts", "covers", "format_constraint", "simplify"]


class Rule(StrEnum):
    CONFLICT = "conflict"
    REDUNDANT_CONSTRAINT = "redundant-constraint"
    REDUNDANT_FILTER = "redundant-filter"


class Dropped(msgspec.Struct, frozen=True):
    """What went, by which rule, and on account of what."""

    rule: Rule
    filter: int  # its place among the filters that were given, from 0
    what: Filter | Constraint  # a whole filter, or one constraint of it
    by: tuple[Constraint, ...]  # the two in conflict, the one that says more, or the filter that matches more

    @property
    def why(self) -> str:
        by = [format_constraint(each) for each in self.by]
        if self.rule is Rule.CONFLICT:
            return f"{by[0]} and {by[1]} never hold together."
        if self.rule is Rule.REDUNDANT_CONSTRAINT:
            return f"{by[0]} says it already."
        return f"The filter {' AND '.join(by)} matches whatever it matches." if by else "An empty filter matches all."


class Simplified(msgspec.Struct, frozen=True):
    filters: Predicate
    dropped: tuple[Dropped, ...] = ()
    kept: tuple[int, ...] = ()  # where the filters that are left were among those that were given


def simplify(filters: Predicate, evaluate: Evaluate = relate, *, keeps_unknown: bool = False) -> Simplified:
    """The predicate without what the three rules take away. `evaluate` must be exact."""
    known = _Known(evaluate, keeps_unknown)
    dropped: list[Dropped] = []
    left: dict[int, Filter] = {}
    for index, each in enumerate(filters):
        clash = _conflict(each, known)
        if clash is not None:
            dropped.append(Dropped(Rule.CONFLICT, index, each, clash))
            continue
        left[index] = _without_redundant(index, each, known, dropped)
    names = {index: frozenset(constraint.attribute for constraint in each) for index, each in left.items()}
    # From the end, so that of two that say the same the first stays.
    for index in reversed(list(left)):
        for other, candidate in left.items():
            if other != index and names[other] <= names[index] and _matches_more(candidate, left[index], known):
                dropped.append(Dropped(Rule.REDUNDANT_FILTER, index, filters[index], candidate))
                del left[index]
                break
    return Simplified(tuple(left.values()), tuple(dropped), tuple(left))


def format_constraint(constraint: Constraint) -> str:
    """As a selector would say it; of a region only how large its description is."""
    name, test = constraint.attribute, constraint.test
    if isinstance(test, NumberTest):
        return f"{name} {test.op} {test.value}"
    if isinstance(test, TimeTest):
        is_instant = 0 <= test.ms <= LAST_INSTANT
        return f"{name} {test.op} TIMESTAMP '{format_instant(test.ms) if is_instant else test.ms}'"
    if isinstance(test, BoolTest):
        return f"{name} = {str(test.value).upper()}"
    if isinstance(test, PresentTest):
        return f"{name} IS {'NOT ' if test.present else ''}NULL"
    if isinstance(test, RegionTest):
        return f"{name} {test.relation} (a region of {test.region.vertex_count} corners)"
    return _format_string(name, test) if isinstance(test, StringTest) else f"{name} {test}"


def _format_string(name: str, test: StringTest) -> str:
    if test.op in (StringOp.EQ, StringOp.NE):
        return f"{name} {test.op} {_quoted(test.value)}"
    any_of = {StringOp.PREFIX: ("", "%"), StringOp.SUFFIX: ("%", ""), StringOp.CONTAINS: ("%", "%")}
    before, after = any_of[test.op]
    literal = "".join(f"\\{char}" if char in "%_\\" else char for char in test.value)
    escape = "" if literal == test.value else " ESCAPE '\\'"
    return f"{name} LIKE {_quoted(before + literal + after)}{escape}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _Known:
    """What is covered by what in one predicate. Each relation of two regions is found once; ids of regions are good for
    that, because the predicate keeps them alive."""

    def __init__(self, evaluate: Evaluate, keeps_unknown: bool) -> None:
        self._evaluate = evaluate
        self._keeps_unknown = keeps_unknown
        self._found: dict[tuple[int, int], Relation] = {}

    def covers(self, one: Constraint, other: Constraint) -> bool:
        return covers(one, other, self._relation) and not (self._keeps_unknown and _is_one_of_value(one, other))

    def conflicts(self, one: Constraint, other: Constraint) -> bool:
        if self._keeps_unknown and (_is_of_value(one) or _is_of_value(other)):
            return False
        return conflicts(one, other, self._relation)

    def _relation(self, a: PlanarRegion, b: PlanarRegion) -> Relation:
        found = self._found.get((id(a), id(b)))
        if found is None:
            found = self._found[id(a), id(b)] = self._evaluate(a, b)
            self._found[id(b), id(a)] = inverse(found)
        return found


def _is_of_value(constraint: Constraint) -> bool:
    """Whether it is UNKNOWN for a missing attribute."""
    return not isinstance(constraint.test, PresentTest)


def _is_one_of_value(one: Constraint, other: Constraint) -> bool:
    return _is_of_value(one) != _is_of_value(other)


def _conflict(constraints: Filter, known: _Known) -> tuple[Constraint, Constraint] | None:
    for index, one in enumerate(constraints):
        for other in constraints[index + 1 :]:
            if known.conflicts(one, other):
                return one, other
    return None


def _without_redundant(index: int, constraints: Filter, known: _Known, dropped: list[Dropped]) -> Filter:
    left = list(constraints)
    # From the end, so that of two that say the same the first stays.
    for place in reversed(range(len(left))):
        by = _one_that_says_more(left, place, known)
        if by is not None:
            dropped.append(Dropped(Rule.REDUNDANT_CONSTRAINT, index, left.pop(place), (by,)))
    return tuple(left)


def _one_that_says_more(constraints: Sequence[Constraint], place: int, known: _Known) -> Constraint | None:
    for index, other in enumerate(constraints):
        if index != place and known.covers(constraints[place], other):
            return other
    return None


def _matches_more(wider: Filter, narrower: Filter, known: _Known) -> bool:
    return all(any(known.covers(each, other) for other in narrower) for each in wider)
