"""From a selector, which names objects and zones, to conditions for one object, which name zone ids only.

A spatial term speaks of the event's own object: it is TRUE if that object is in its list and its place is in one of
its zones, UNKNOWN if it is in the list and has no place, FALSE if it is not in the list. A selector has one truth
per *binding*: (object, zone) for each zone of a filter's anchor, so that "in A" and "in B" are two visits and not one.
docs/decisions/0003 has the reasons. Where the anchor is a `distance`, its bindings are (object, other object), and
bound they are only for those who say which objects there are (`ObjectDirectory`). An object that a list names and that
is not there, or not to be seen, is one whose distance is UNKNOWN.

The object is known here, so `oid` in a condition is replaced by its value: a device need not know its own name.
"""

from collections.abc import Callable, Iterable
from typing import Protocol, cast

import msgspec

from matcher.events import Event
from matcher.planar import PlanarRegion
from matcher.selector.filters import Filter, Leaf, Spatial, distinct, filters_of, speaks_of
from matcher.selector.mentions import inline_id, names_in
from matcher.selector.tree import (
    And,
    Arith,
    Between,
    Compare,
    Condition,
    Const,
    Distance,
    InlineZone,
    InZones,
    Literal,
    Name,
    NamedZone,
    Near,
    Negative,
    Not,
    Operand,
    Or,
    Plain,
    Relate,
    Related,
    Relation,
    Selector,
    Within,
    ZoneRef,
    ZoneSet,
    ZoneTag,
)
from matcher.selector.truth import truth
from zones.names import fold
from zones.shapes import Point

__all__ = ["Bound", "ObjectDirectory", "ZoneDirectory", "bind", "bind_anybody"]


class ZoneDirectory(Protocol):
    """Knows which zones a reference names now, for the subscriber in question."""

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        """The ids of the zones, in an order that does not change; none if there is no such zone."""
        ...


class ObjectDirectory(Protocol):
    """Knows which other objects there are, for the subscriber in question."""

    def other(self, oid: str) -> str | None:
        """The id of the object of that name; None if there is none, or none to be seen."""
        ...

    def others(self) -> tuple[str, ...]:
        """The ids of all that may be seen."""
        ...


class Bound(msgspec.Struct, frozen=True):
    """One binding of an object: the zone or other object it is about ("" for the whole list) and when it holds."""

    target: str
    condition: Condition


def bind(
    selector: Selector,
    oid: str,
    directory: ZoneDirectory,
    objects: ObjectDirectory | None = None,
    *,
    other: str | None = None,
) -> tuple[Bound, ...]:
    """The bindings the selector has for this object now, in the order in which it names them.

    The condition of one that can't hold any more is `Const(False)`: a state that is kept may still have to leave.
    Without `objects` there are no bindings to other objects, and conditions on them are `Near(())`. With `other`, only
    those of the bindings to other objects are looked for that are to the object of this name.
    """
    folded, event = fold(oid), Event(ts=0, oid=oid)
    ids = _Ids(directory, objects, folded, None if other is None else fold(other))

    def decided(term: Leaf) -> Condition:
        if isinstance(term.node, Spatial):
            condition = ids.condition(term.node) if speaks_of(term, folded) else Const(False)
        else:
            condition = _of_object(term.node, event)
        return _not(condition) if term.negated else condition

    return _bindings((each for each in filters_of(selector) if speaks_of(each, folded)), ids, decided)


def bind_anybody(selector: Selector, directory: ZoneDirectory) -> tuple[Bound, ...]:
    """The bindings the selector may have for whatever object.

    The conditions are necessary ones: terms that name objects are left out, and `oid` stays in. Where
    `depends_on_object` is false, they are those of every object.
    """
    ids = _Ids(directory)

    def decided(term: Leaf) -> Condition:
        if isinstance(term.node, Spatial):
            condition = Const(True) if term.oids is not None else ids.condition(term.node)
            return _not(condition) if term.negated and term.oids is None else condition
        plain = term.node
        condition = plain if "oid" in names_in(plain) else _of_object(plain, Event(ts=0))
        return _not(condition) if term.negated else condition

    return _bindings(filters_of(selector), ids, decided)


def _bindings(filters: "Iterable[Filter]", ids: "_Ids", decided: "Callable[[Leaf], Condition]") -> tuple[Bound, ...]:
    found: dict[str, list[Condition]] = {}
    anchored: dict[int, tuple[Spatial, dict[tuple[int, ...], Condition]]] = {}
    # Terms are few, and may be long lists; filters repeat them. So each is decided and hashed once, and then a number.
    made: dict[int, int] = {}
    numbers: dict[Condition, int] = {}
    conditions: list[Condition] = []

    def number(term: Leaf) -> int:
        key = id(term)
        if key not in made:
            condition = decided(term)
            made[key] = numbers.setdefault(condition, len(conditions))
            if made[key] == len(conditions):
                conditions.append(condition)
        return made[key]

    for each in filters:
        key = distinct(number(term) for term in each.terms if term is not each.anchor)
        if each.anchor is None:
            found.setdefault("", []).append(_all(conditions[n] for n in key))
        else:
            anchor = cast("Spatial", each.anchor.node)
            rests = anchored.setdefault(id(anchor), (anchor, {}))[1]
            if key not in rests:
                rests[key] = _all(conditions[n] for n in key)
    # What else has to hold is joined once for each anchor, not for each of its targets, of which there may be many.
    for anchor, rests in anchored.values():
        rest = _any(distinct(rests.values()) if len(rests) > 1 else rests.values())
        for target in ids.targets(anchor):
            found.setdefault(target, []).append(_all((_at(anchor, (target,)), rest)))
    return tuple(Bound(target, _any(distinct(each) if len(each) > 1 else each)) for target, each in found.items())


class _Ids:
    """Resolves each reference once, however many filters name it."""

    def __init__(
        self,
        directory: ZoneDirectory,
        objects: ObjectDirectory | None = None,
        left: str = "",
        other: str | None = None,
    ) -> None:
        self._directory = directory
        self._objects = objects
        self._left = left  # folded: nobody is near themselves
        self._other = other  # folded
        self._known: dict[int, tuple[str, ...]] = {}
        self._incomplete: set[int] = set()  # terms that name objects which are not there

    def targets(self, anchor: Spatial) -> tuple[str, ...]:
        """What the anchor has bindings to."""
        if self._objects is None or self._other is None or not isinstance(anchor, Distance):
            return self._of(anchor)
        named = anchor.others is None or any(fold(oid) == self._other for oid in anchor.others)
        found = self._objects.other(self._other) if named and self._other != self._left else None
        return () if found is None else (found,)

    def condition(self, term: Spatial) -> Condition:
        """The term for its whole list."""
        condition = _at(term, self._of(term))
        return Or((condition, Const(None))) if id(term) in self._incomplete else condition

    def _of(self, term: Spatial) -> tuple[str, ...]:
        key = id(term)  # the selector is alive as long as this is
        if key not in self._known:
            if isinstance(term, Distance):
                self._known[key] = self._others(term)
            else:
                self._known[key] = distinct(zone for ref in term.zones for zone in self._resolve(ref))
        return self._known[key]

    def _others(self, term: Distance) -> tuple[str, ...]:
        if self._objects is None:
            return ()
        itself = self._objects.other(self._left)
        if term.others is None:
            return tuple(other for other in self._objects.others() if other != itself)
        found = [self._objects.other(oid) for oid in term.others if fold(oid) != self._left]
        if None in found:
            self._incomplete.add(id(term))
        return distinct(other for other in found if other is not None)

    def _resolve(self, ref: ZoneRef) -> tuple[str, ...]:
        return (inline_id(ref),) if isinstance(ref, InlineZone) else self._directory.resolve(ref)


# --- conditions --------------------------------------------------------------------------------------


def _at(term: Spatial, zones: tuple[str, ...]) -> Condition:
    """The term for these zones, or these other objects."""
    if isinstance(term, Distance):
        return Near(zones, term.metres)
    if isinstance(term, Relate) and (zones or term.relation is Relation.DISJOINT):
        return Related(term.attribute, term.relation, zones)
    return InZones(zones) if zones and isinstance(term, Within) else Const(False)


def _of_object(node: Plain, event: Event) -> Condition:
    """The term with `oid` put in; decided at once if nothing else is left to know."""
    if isinstance(node, Compare):
        node = Compare(node.op, _put_in(node.left, event), _put_in(node.right, event))
    elif isinstance(node, Between):
        operand, low, high = (_put_in(each, event) for each in (node.operand, node.low, node.high))
        node = Between(operand, low, high, node.negated)
    return node if any(name != "oid" for name in names_in(node)) else Const(truth(node, event, _Nowhere()))


def _put_in(operand: Operand, event: Event) -> Operand:
    if isinstance(operand, Name):
        return Literal(event.oid) if operand.name == "oid" else operand
    if isinstance(operand, Negative):
        return Negative(_put_in(operand.operand, event))
    if isinstance(operand, Arith):
        return Arith(operand.op, _put_in(operand.left, event), _put_in(operand.right, event))
    return operand


class _Nowhere:
    """No zones at all: a plain term asks about none."""

    def covers(self, zone: str, point: Point) -> bool:
        raise AssertionError(zone)

    def region(self, zone: str) -> PlanarRegion:
        raise AssertionError(zone)


def _not(condition: Condition) -> Condition:
    if isinstance(condition, Const):
        return Const(None if condition.value is None else not condition.value)
    return Not(condition)


def _all(conditions: Iterable[Condition]) -> Condition:
    return _joined(conditions, And)


def _any(conditions: Iterable[Condition]) -> Condition:
    return _joined(conditions, Or)


def _joined(conditions: Iterable[Condition], join: type[And] | type[Or]) -> Condition:
    """AND or OR of the conditions without what changes nothing, and decided if one of them decides."""
    decisive = join is Or
    items: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Const) and condition.value is decisive:
            return condition
        if isinstance(condition, Const) and condition.value is not None:
            continue
        if isinstance(condition, (And, Or)) and type(condition) is join:
            items.extend(cast("tuple[Condition, ...]", condition.items))
        else:
            items.append(condition)
    if not items:
        return Const(not decisive)
    return items[0] if len(items) == 1 else join(tuple(items))
