"""The three-valued truth of a condition for one event: True, False, or None for UNKNOWN.

The rules are those of JMS 2.0 message selectors (section 3.8.1) on top of SQL-92:

- An attribute the event does not have is NULL. What is computed from NULL is NULL, a test of it is UNKNOWN, and
  only IS [NOT] NULL can tell. NOT UNKNOWN is UNKNOWN; FALSE AND UNKNOWN is FALSE; TRUE OR UNKNOWN is TRUE.
- Only like types are compared: numbers (exact or approximate) with numbers, strings with strings, booleans with
  booleans, times with times. A comparison of other pairs of types is FALSE, with `<>` too. Strings and booleans
  know only `=` and `<>`; to order them is FALSE. Points and regions are like nothing.
- A relation of a region that the event does not have is UNKNOWN, of what is not a region FALSE.
- Being near another object is UNKNOWN where one of the two has no place, or an old one (`matcher.proximity`).
- `x BETWEEN a AND b` is `x >= a AND x <= b` and `x NOT BETWEEN a AND b` is `x < a OR x > b`, so both are FALSE for
  a string x. `x NOT IN (...)` is `NOT (x IN (...))` and `x NOT LIKE ...` is `NOT (x LIKE ...)`; IN and LIKE are FALSE
  for what is not a string. A boolean attribute that stands alone is `x = TRUE`.
- Arithmetic is Java's as far as that gives a number: exact by exact is exact, and its division drops the fraction
  (7 / 2 is 3, -7 / 2 is -3). Where Java would wrap around, divide by zero, or answer an infinity or NaN, and for
  operands that are no numbers, the result is NULL: an agent in any language can keep to that, and no subscriber
  is woken by a garbled number.

Attributes are the event's pairs, and `oid`, `ts` (a time), `loc` (a point), `unc` and `lpid`. This runs for every
binding at every fix, on devices: nodes are dispatched by one lookup of their type, and zones, which are dear, are
only asked when the event has a place, or a region.
"""

from collections.abc import Callable
from math import isfinite
from operator import eq, ge, gt, le, lt, ne
from typing import Any, cast

from matcher.events import Event, Located, Region, Value
from matcher.footprints import own_region
from matcher.globe import relate_on_globe
from matcher.places import Neighbourhood, Places
from matcher.planar import PlanarRegion
from matcher.selector.like import like
from matcher.selector.tree import (
    And,
    Arith,
    ArithOp,
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
    Negative,
    Not,
    Operand,
    Or,
    Related,
    Relation,
    Time,
    Truth,
)

__all__ = ["truth"]


def truth(condition: Condition, event: Event, places: Places) -> bool | None:
    """Whether the condition holds for the event; None is UNKNOWN."""
    return _TRUTH[type(condition)](condition, event, places)


# --- conditions --------------------------------------------------------------------------------------


def _and(node: And, event: Event, places: Places) -> bool | None:
    result: bool | None = True
    for item in node.items:
        value = _TRUTH[type(item)](item, event, places)
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _or(node: Or, event: Event, places: Places) -> bool | None:
    result: bool | None = False
    for item in node.items:
        value = _TRUTH[type(item)](item, event, places)
        if value:
            return True
        if value is None:
            result = None
    return result


def _not(node: Not, event: Event, places: Places) -> bool | None:
    value = _TRUTH[type(node.item)](node.item, event, places)
    return None if value is None else not value


def _in_zones(node: InZones, event: Event, places: Places) -> bool | None:
    loc = event.loc
    if loc is None:
        return None if node.zones else False
    for zone in node.zones:  # noqa: SIM110 - a generator would cost more than the usual one zone
        if places.covers(zone, loc):
            return True
    return False


def _related(node: Related, event: Event, places: Places) -> bool | None:
    value = own_region(event) if node.attribute is None else event.pairs.get(node.attribute)
    if value is None:
        return None
    if type(value) is not Region:
        return False
    relation = node.relation
    if relation is Relation.DISJOINT:
        return all(_relation(value, places.region(zone)) == relation for zone in node.zones)
    return any(_relation(value, places.region(zone)) == relation for zone in node.zones)


def _relation(region: Region, zone: PlanarRegion) -> str:
    """Worked out once for an event: filters ask the same again and again, and it is the dearest of all questions."""
    known = region.related
    found = known.get(id(zone))  # which is the zone's own as long as it is kept here
    if found is None:
        if len(known) >= _MOST_RELATED:
            known.clear()
        found = known[id(zone)] = (zone, relate_on_globe(region.planar, zone))
    return found[1]


def _near(node: Near, event: Event, places: Places) -> bool | None:
    return cast("Neighbourhood", places).is_near(node.others, node.metres)


def _const(node: Const, event: Event, places: Places) -> bool | None:
    return node.value


def _compare(node: Compare, event: Event, places: Places) -> bool | None:
    left, right = node.left, node.right
    return _compared(node.op, _VALUE[type(left)](left, event), _VALUE[type(right)](right, event))


def _between(node: Between, event: Event, places: Places) -> bool | None:
    value, low, high = _value(node.operand, event), _value(node.low, event), _value(node.high, event)
    if node.negated:
        below, above = _compared(CompareOp.LT, value, low), _compared(CompareOp.GT, value, high)
        return True if below or above else None if below is None or above is None else False
    from_low, to_high = _compared(CompareOp.GE, value, low), _compared(CompareOp.LE, value, high)
    return False if from_low is False or to_high is False else None if from_low is None or to_high is None else True


def _in(node: In, event: Event, places: Places) -> bool | None:
    value = _attribute(node.name, event)
    if value is None:
        return None
    return (type(value) is str and value in node.values) is not node.negated


def _like(node: Like, event: Event, places: Places) -> bool | None:
    value = _attribute(node.name, event)
    if value is None:
        return None
    return (type(value) is str and like(value, node.pattern, node.escape)) is not node.negated


def _is_null(node: IsNull, event: Event, places: Places) -> bool | None:
    return (_attribute(node.name, event) is None) is not node.negated


def _stands_alone(node: Truth, event: Event, places: Places) -> bool | None:
    value = _value(node.operand, event)
    return None if value is None else value is True


# --- values ------------------------------------------------------------------------------------------


def _value(operand: Operand, event: Event) -> Value | None:
    return _VALUE[type(operand)](operand, event)


def _attribute(name: str, event: Event) -> Value | None:
    own = _OWN.get(name)
    return event.pairs.get(name) if own is None else own(event)


def _named(node: Name, event: Event) -> Value | None:
    own = _OWN.get(node.name)
    return event.pairs.get(node.name) if own is None else own(event)


def _literal(node: Literal, event: Event) -> Value:
    return node.value


def _negative(node: Negative, event: Event) -> Value | None:
    value = _value(node.operand, event)
    return _number(-cast("float", value)) if type(value) in _NUMBERS else None


def _arith(node: Arith, event: Event) -> Value | None:
    left, right = _value(node.left, event), _value(node.right, event)
    if type(left) not in _NUMBERS or type(right) not in _NUMBERS:
        return None
    return _computed(node.op, cast("int | float", left), cast("int | float", right))


def _computed(op: ArithOp, left: int | float, right: int | float) -> int | float | None:
    if op is ArithOp.ADD:
        return _number(left + right)
    if op is ArithOp.SUB:
        return _number(left - right)
    if op is ArithOp.MUL:
        return _number(left * right)
    if right == 0:
        return None
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return _number(quotient if (left < 0) is (right < 0) else -quotient)
    return _number(left / right)


def _number(value: int | float) -> int | float | None:
    if type(value) is int:
        return value if _INT_MIN <= value <= _INT_MAX else None
    return value if isfinite(value) else None


def _compared(op: CompareOp, left: Value | None, right: Value | None) -> bool | None:
    if left is None or right is None:
        return None
    kind = _KINDS.get(type(left))
    if kind is None or kind != _KINDS.get(type(right)) or (kind in _UNORDERED and op not in _EQUALITY):
        return False
    return _OPERATORS[op](left, right)


_MOST_RELATED = 1024  # relations kept with an event's region
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_NUMBERS = frozenset({int, float})  # by exact type: a boolean is no number
_KINDS: dict[type, str] = {int: "number", float: "number", str: "string", bool: "boolean", Time: "time"}
_UNORDERED = frozenset({"string", "boolean"})
_EQUALITY = frozenset({CompareOp.EQ, CompareOp.NE})
_OPERATORS: dict[CompareOp, Callable[[Any, Any], bool]] = {
    CompareOp.EQ: eq,
    CompareOp.NE: ne,
    CompareOp.LT: lt,
    CompareOp.LE: le,
    CompareOp.GT: gt,
    CompareOp.GE: ge,
}
_OWN: dict[str, Callable[[Event], Value | None]] = {
    "oid": lambda event: event.oid or None,
    "ts": lambda event: Time(event.ts),
    "loc": lambda event: None if event.loc is None else Located(event.loc),
    "unc": lambda event: event.unc,
    "lpid": lambda event: event.lpid,
}
_VALUE: dict[type, Callable[[Any, Event], Value | None]] = {
    Name: _named,
    Literal: _literal,
    Negative: _negative,
    Arith: _arith,
}
_TRUTH: dict[type, Callable[[Any, Event, Places], bool | None]] = {
    And: _and,
    Or: _or,
    Not: _not,
    InZones: _in_zones,
    Related: _related,
    Near: _near,
    Const: _const,
    Compare: _compare,
    Between: _between,
    In: _in,
    Like: _like,
    IsNull: _is_null,
    Truth: _stands_alone,
}
