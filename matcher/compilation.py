"""From a binding's condition to a predicate that an engine can hold with a hundred thousand others.

The predicate is *necessary*: whenever the condition is TRUE, it matches. It may match more, because a constraint knows
one attribute and one value, and TRUE but not FALSE from UNKNOWN. What it can't say it leaves out: arithmetic, LIKE
with more than a beginning or an end, points in zones, whatever is negated (`NOT x > 5` is TRUE for a string). So the
engine says which bindings to look at, and the condition itself still says what is true: no notification depends on
what is left out here, or on simplification.

Relations here are those of the plane, which has an end at 180 degrees. A zone that reaches it is left out too, and an
event with a region that does must not be asked about at all: see `matcher.globe`.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec

from matcher.constraints import (
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
)
from matcher.footprints import FOOTPRINT
from matcher.globe import is_within_the_plane
from matcher.planar import PlanarRegion
from matcher.selector.tree import (
    And,
    Between,
    Compare,
    CompareOp,
    Condition,
    Const,
    In,
    InZones,
    IsNull,
    Like,
    Literal,
    Name,
    Near,
    Not,
    Operand,
    Or,
    Related,
    Relation,
    Time,
    Truth,
)
from matcher.simplification import Dropped, simplify

__all__ = ["ALWAYS", "Compiled", "compile_condition"]

ALWAYS: Predicate = ((),)  # one empty filter: matches every event
_NEVER: Predicate = ()

_MOST_FILTERS = 256
_FLIPPED = {
    CompareOp.LT: CompareOp.GT,
    CompareOp.GT: CompareOp.LT,
    CompareOp.LE: CompareOp.GE,
    CompareOp.GE: CompareOp.LE,
}

_RegionOf = Callable[[str], PlanarRegion]


class Compiled(msgspec.Struct, frozen=True):
    filters: Predicate
    dropped: tuple[Dropped, ...] = ()  # by simplification

    @property
    def is_always(self) -> bool:
        """Whether it says nothing: every event has to be looked at."""
        return () in self.filters


def compile_condition(condition: Condition, region_of: _RegionOf) -> Compiled:
    """The filters that an event must match one of for the condition to be TRUE, simplified."""
    filters = _compiled(condition, region_of)
    if () in filters:
        return Compiled(ALWAYS)
    made = simplify(filters)
    return Compiled(made.filters, made.dropped)


def _compiled(node: Condition, region_of: _RegionOf) -> Predicate:
    if isinstance(node, And):
        return _all(_compiled(cast(Condition, item), region_of) for item in node.items)
    if isinstance(node, Or):
        return _any(_compiled(cast(Condition, item), region_of) for item in node.items)
    if isinstance(node, Related):
        return _related(node, region_of)
    return _COMPILED[type(node)](node)


def _any(parts: Iterable[Predicate]) -> Predicate:
    filters = tuple(dict.fromkeys(each for part in parts for each in part))
    return filters if len(filters) <= _MOST_FILTERS else ALWAYS


def _all(parts: Iterable[Predicate]) -> Predicate:
    """The parts that say little are put together first; one that would make too many filters is left out."""
    product: Predicate = ALWAYS
    for part in sorted(parts, key=len):
        if len(product) * len(part) > _MOST_FILTERS:
            continue
        product = tuple(_joined(one, other) for one in product for other in part)
    return product


def _joined(one: Filter, other: Filter) -> Filter:
    return tuple(dict.fromkeys((*one, *other)))


def _related(node: Related, region_of: _RegionOf) -> Predicate:
    attribute = FOOTPRINT if node.attribute is None else node.attribute
    tests = [
        Constraint(attribute, RegionTest(node.relation, region))
        for region in map(region_of, node.zones)
        if is_within_the_plane(region)
    ]
    if node.relation is Relation.DISJOINT:
        found: Predicate = (tuple(tests),)
    elif len(tests) < len(node.zones):
        return ALWAYS
    else:
        found = _any(((test,),) for test in tests)
    if node.attribute is None:
        # Without a footprint it is the disk of `unc`, which is no attribute.
        found = _any((found, ((Constraint(FOOTPRINT, PresentTest(False)),),)))
    return found


def _compare(node: Compare) -> Predicate:
    left, op, right = node.left, node.op, node.right
    if isinstance(left, Literal) and isinstance(right, Name):
        left, op, right = right, _FLIPPED.get(op, op), left
    if not isinstance(left, Name) or not isinstance(right, Literal):
        return ALWAYS
    return _compared(left.name, op, right.value)


def _compared(name: str, op: CompareOp, value: Any) -> Predicate:
    is_equality = op in (CompareOp.EQ, CompareOp.NE)
    if isinstance(value, bool):
        return _one(name, BoolTest(value is (op is CompareOp.EQ))) if is_equality else _NEVER
    if isinstance(value, str):
        return _one(name, StringTest(StringOp(str(op)), value)) if is_equality else _NEVER
    return _one(name, TimeTest(op, value.ms) if isinstance(value, Time) else NumberTest(op, value))


def _between(node: Between) -> Predicate:
    if node.negated:
        return ALWAYS
    bounds: tuple[tuple[CompareOp, Operand], ...] = ((CompareOp.GE, node.low), (CompareOp.LE, node.high))
    return _all(_compare(Compare(op, node.operand, bound)) for op, bound in bounds)


def _in(node: In) -> Predicate:
    return ALWAYS if node.negated else _any(_one(node.name, StringTest(StringOp.EQ, each)) for each in node.values)


def _like(node: Like) -> Predicate:
    """Only a beginning or an end, which are most of those that people write."""
    if node.negated or node.escape is not None or "_" in node.pattern:
        return ALWAYS
    pattern = node.pattern
    if "%" not in pattern:
        return _one(node.name, StringTest(StringOp.EQ, pattern))
    beginning, end = pattern.partition("%")[0], pattern.rpartition("%")[2]
    parts = []
    if beginning:
        parts.append(_one(node.name, StringTest(StringOp.PREFIX, beginning)))
    if end:
        parts.append(_one(node.name, StringTest(StringOp.SUFFIX, end)))
    return _all(parts)


def _is_null(node: IsNull) -> Predicate:
    return _one(node.name, PresentTest(node.negated))


def _stands_alone(node: Truth) -> Predicate:
    if isinstance(node.operand, Name):
        return _one(node.operand.name, BoolTest(True))
    return ALWAYS if node.operand.value is True else _NEVER


def _const(node: Const) -> Predicate:
    return ALWAYS if node.value else _NEVER


def _anything(node: Condition) -> Predicate:
    return ALWAYS


def _one(name: str, test: Test) -> Predicate:
    return ((Constraint(name, test),),)


_COMPILED: dict[type, Callable[[Any], Predicate]] = {
    Compare: _compare,
    Between: _between,
    In: _in,
    Like: _like,
    IsNull: _is_null,
    Truth: _stands_alone,
    Const: _const,
    InZones: _anything,
    Near: _anything,
    Not: _anything,
}
