"""From a selector, which names objects and zones, to conditions for one object, which name zone ids only.

A spatial term speaks of the event's own object: it is TRUE if that object is in its list and its place is in one of
its zones, UNKNOWN if it is in the list and has no place, FALSE if it is not in the list. A selector has one truth
per *binding*: (object, zone) for each zone of a filter's anchor, so that "in A" and "in B" are two visits and not one.
docs/decisions/0003 has the reasons. Where the anchor is a `distance`, its bindings are (object, other object), and
bound they are only for those who say which objects there are (`ObjectDirectory`). An object that a list names and that
is not there, or not to be seen, is one whose distance is UNKNOWN.

The disjunctive normal form is right in three-valued logic as well: De Morgan's laws, distribution and double
negation hold there, and nothing else is used. (`x OR NOT x` is not TRUE there, and is not made so.)

The object is known here, so `oid` in a condition is replaced by its value: a device need not know its own name.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeVar, cast

import msgspec

from matcher.errors import SelectorTooComplex
from matcher.events import Event
from matcher.planar import PlanarRegion
from matcher.selector.tree import (
    And,
    Arith,
    Between,
    Compare,
    Condition,
    Const,
    Distance,
    In,
    InlineZone,
    InZones,
    IsNull,
    Like,
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
    Truth,
    Within,
    ZoneRef,
    ZoneSet,
    ZoneTag,
)
from matcher.selector.truth import truth
from zones.names import fold
from zones.shapes import Point

__all__ = [
    "MAX_FILTERS",
    "Bound",
    "ObjectDirectory",
    "ZoneDirectory",
    "bind",
    "bind_anybody",
    "check_filters",
    "depends_on_object",
    "distances",
    "inline_zones",
    "is_anchored_within",
    "named_oids",
    "negates_places",
    "placed_oids",
    "subjects",
    "written_out",
    "zone_refs",
]

MAX_FILTERS = 256
# Filters repeat terms: 8 kB of text could be written out as 60,000 of them, for each object. This bounds the work.
_MAX_WRITTEN_OUT = 4096

_Spatial = Within | Distance | Relate
_K = TypeVar("_K")


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

    def decided(term: _Leaf) -> Condition:
        if isinstance(term.node, _Spatial):
            condition = ids.condition(term.node) if _speaks_of(term, folded) else Const(False)
        else:
            condition = _of_object(term.node, event)
        return _not(condition) if term.negated else condition

    return _bindings((each for each in _filters(selector) if _speaks_of(each, folded)), ids, decided)


def bind_anybody(selector: Selector, directory: ZoneDirectory) -> tuple[Bound, ...]:
    """The bindings the selector may have for whatever object.

    The conditions are necessary ones: terms that name objects are left out, and `oid` stays in. Where
    `depends_on_object` is false, they are those of every object.
    """
    ids = _Ids(directory)

    def decided(term: _Leaf) -> Condition:
        if isinstance(term.node, _Spatial):
            condition = Const(True) if term.oids is not None else ids.condition(term.node)
            return _not(condition) if term.negated and term.oids is None else condition
        plain = term.node
        condition = plain if "oid" in _names(plain) else _of_object(plain, Event(ts=0))
        return _not(condition) if term.negated else condition

    return _bindings(_filters(selector), ids, decided)


def written_out(selector: Selector) -> tuple[Selector, ...]:
    """The filters of its disjunctive normal form, as selectors of their own."""
    found = ([Not(term.node) if term.negated else term.node for term in each.terms] for each in _filters(selector))
    return tuple(terms[0] if len(terms) == 1 else And(tuple(terms)) for terms in found)


def depends_on_object(selector: Selector) -> bool:
    """Whether bindings of two objects differ in more than whose they are."""
    terms = (term for each in _filters(selector) for term in each.terms)
    return any(
        term.oids is not None if isinstance(term.node, _Spatial) else "oid" in _names(term.node) for term in terms
    )


def _bindings(filters: "Iterable[_Filter]", ids: "_Ids", decided: "Callable[[_Leaf], Condition]") -> tuple[Bound, ...]:
    found: dict[str, list[Condition]] = {}
    anchored: dict[int, tuple[_Spatial, dict[tuple[int, ...], Condition]]] = {}
    # Terms are few, and may be long lists; filters repeat them. So each is decided and hashed once, and then a number.
    made: dict[int, int] = {}
    numbers: dict[Condition, int] = {}
    conditions: list[Condition] = []

    def number(term: _Leaf) -> int:
        key = id(term)
        if key not in made:
            condition = decided(term)
            made[key] = numbers.setdefault(condition, len(conditions))
            if made[key] == len(conditions):
                conditions.append(condition)
        return made[key]

    for each in filters:
        key = _distinct(number(term) for term in each.terms if term is not each.anchor)
        if each.anchor is None:
            found.setdefault("", []).append(_all(conditions[n] for n in key))
        else:
            anchor = cast("_Spatial", each.anchor.node)
            rests = anchored.setdefault(id(anchor), (anchor, {}))[1]
            if key not in rests:
                rests[key] = _all(conditions[n] for n in key)
    # What else has to hold is joined once for each anchor, not for each of its targets, of which there may be many.
    for anchor, rests in anchored.values():
        rest = _any(_distinct(rests.values()) if len(rests) > 1 else rests.values())
        for target in ids.targets(anchor):
            found.setdefault(target, []).append(_all((_at(anchor, (target,)), rest)))
    return tuple(Bound(target, _any(_distinct(each) if len(each) > 1 else each)) for target, each in found.items())


def inline_zones(selector: Selector) -> dict[str, InlineZone]:
    """The zones written out in the selector, by the ids that bindings know them by."""
    return {_inline_id(ref): ref for ref in zone_refs(selector) if isinstance(ref, InlineZone)}


def subjects(selector: Selector) -> frozenset[str] | None:
    """The folded oids of the objects that the selector can speak of; None for every object there is."""
    found: set[str] = set()
    for each in _filters(selector):
        if each.oids is None:
            return None
        found |= each.oids
    return frozenset(found)


def zone_refs(selector: Selector) -> tuple[ZoneRef, ...]:
    """Every zone reference in the selector, in the order of writing."""
    terms = (term for term in _spatial_terms(selector) if not isinstance(term, Distance))
    return _distinct(ref for term in terms for ref in term.zones)


def named_oids(selector: Selector) -> tuple[str, ...]:
    """Every object named in a spatial term, as written, in the order of writing."""
    return _distinct(oid for term in _spatial_terms(selector) for oid in _written_oids(term))


def placed_oids(selector: Selector) -> tuple[str, ...]:
    """Every object named in a term about zones, as written, in the order of writing."""
    terms = (term for term in _spatial_terms(selector) if not isinstance(term, Distance))
    return _distinct(oid for term in terms for oid in _written_oids(term))


def is_anchored_within(selector: Selector) -> bool:
    """Whether some binding is about being in a zone, and so has a boundary to look at."""
    return any(each.anchor is not None and isinstance(each.anchor.node, Within) for each in _filters(selector))


def negates_places(selector: Selector) -> bool:
    """Whether a binding can become true because its object is no longer somewhere."""
    terms = (term for each in _filters(selector) for term in each.terms)
    return any(isinstance(term.node, _Spatial) and not _can_anchor(term) for term in terms)


def distances(selector: Selector) -> tuple[Distance, ...]:
    """Every `distance` term in the selector, in the order of writing."""
    return _distinct(term for term in _spatial_terms(selector) if isinstance(term, Distance))


def check_filters(selector: Selector) -> None:
    """Refuse a selector whose disjunctive normal form is too large, without writing it out."""
    filters, terms = _size(selector, negated=False)
    if filters > MAX_FILTERS or terms > _MAX_WRITTEN_OUT:
        what = f"{filters} filters" if filters > MAX_FILTERS else f"{filters} filters of {terms} terms in all"
        raise SelectorTooComplex(
            f"The selector comes to {what} when every OR is written out; {MAX_FILTERS} filters and "
            f"{_MAX_WRITTEN_OUT} terms are allowed.",
            hint="ANDs of many ORs multiply: use IN, a list of zones, or several subscriptions.",
            filters=filters,
        )


# --- filters: the disjunctive normal form ------------------------------------------------------------


class _Leaf(NamedTuple):
    """A term of a filter, and the folded oids of the objects it speaks of (None for all)."""

    node: _Spatial | Plain
    negated: bool
    oids: frozenset[str] | None


class _Filter(NamedTuple):
    """Terms that have to hold together, and the objects they speak of together."""

    terms: tuple[_Leaf, ...]
    anchor: _Leaf | None
    oids: frozenset[str] | None


@lru_cache(maxsize=1024)
def _filters(selector: Selector) -> tuple[_Filter, ...]:
    check_filters(selector)
    numbers: dict[_Leaf, int] = {}  # a term is hashed once, however many filters have it
    numbered = _distinct(_distinct(terms) for terms in _disjuncts(selector, numbers, negated=False))
    leaves = tuple(numbers)
    return tuple(_filter(tuple(leaves[number] for number in terms)) for terms in numbered)


def _filter(terms: tuple[_Leaf, ...]) -> _Filter:
    spatial = [term for term in terms if isinstance(term.node, _Spatial)]
    anchor = next((term for term in spatial if _can_anchor(term)), None)
    if anchor is not None:
        return _Filter(terms, anchor, anchor.oids)
    named = [term.oids for term in spatial if term.oids is not None]
    everything = not spatial or len(named) < len(spatial)
    return _Filter(terms, None, None if everything else frozenset().union(*named))


def _can_anchor(term: _Leaf) -> bool:
    return not (term.negated or (isinstance(term.node, Relate) and term.node.relation is Relation.DISJOINT))


def _disjuncts(node: Selector, numbers: dict[_Leaf, int], *, negated: bool) -> list[tuple[int, ...]]:
    """The filters, as numbers of terms."""
    if isinstance(node, Not):
        return _disjuncts(cast("Selector", node.item), numbers, negated=not negated)
    if not isinstance(node, (And, Or)):
        return [(numbers.setdefault(_Leaf(node, negated, _folded_oids(node)), len(numbers)),)]
    parts = [_disjuncts(cast("Selector", item), numbers, negated=negated) for item in node.items]
    if isinstance(node, Or) is not negated:
        return [each for part in parts for each in part]
    product: list[tuple[int, ...]] = [()]
    for part in parts:
        product = [left + right for left in product for right in part]
    return product


def _size(node: Selector, *, negated: bool) -> tuple[int, int]:
    """How many filters `_disjuncts` would give, and how many terms in all of them."""
    if isinstance(node, Not):
        return _size(cast("Selector", node.item), negated=not negated)
    if not isinstance(node, (And, Or)):
        return 1, 1
    sizes = [_size(cast("Selector", item), negated=negated) for item in node.items]
    if isinstance(node, Or) is not negated:
        return sum(filters for filters, _ in sizes), sum(terms for _, terms in sizes)
    filters, terms = 1, 0
    for more, their_terms in sizes:
        filters, terms = filters * more, terms * more + their_terms * filters
    return filters, terms


# --- what terms speak of -----------------------------------------------------------------------------


def _spatial_terms(node: Selector) -> Iterator[_Spatial]:
    if isinstance(node, (And, Or)):
        for item in node.items:
            yield from _spatial_terms(cast("Selector", item))
    elif isinstance(node, Not):
        yield from _spatial_terms(cast("Selector", node.item))
    elif isinstance(node, (Within, Distance, Relate)):
        yield node


def _written_oids(term: _Spatial) -> tuple[str, ...]:
    if isinstance(term, Distance):
        return (term.oid, *(term.others or ()))
    return term.oids or ()


def _folded_oids(term: _Spatial | Plain) -> frozenset[str] | None:
    if isinstance(term, (Within, Relate)):
        return None if term.oids is None else frozenset(map(fold, term.oids))
    return frozenset({fold(term.oid)}) if isinstance(term, Distance) else None  # a distance is its left object's


def _speaks_of(one: _Leaf | _Filter, folded: str) -> bool:
    return one.oids is None or folded in one.oids


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

    def targets(self, anchor: _Spatial) -> tuple[str, ...]:
        """What the anchor has bindings to."""
        if self._objects is None or self._other is None or not isinstance(anchor, Distance):
            return self._of(anchor)
        named = anchor.others is None or any(fold(oid) == self._other for oid in anchor.others)
        found = self._objects.other(self._other) if named and self._other != self._left else None
        return () if found is None else (found,)

    def condition(self, term: _Spatial) -> Condition:
        """The term for its whole list."""
        condition = _at(term, self._of(term))
        return Or((condition, Const(None))) if id(term) in self._incomplete else condition

    def _of(self, term: _Spatial) -> tuple[str, ...]:
        key = id(term)  # the selector is alive as long as this is
        if key not in self._known:
            if isinstance(term, Distance):
                self._known[key] = self._others(term)
            else:
                self._known[key] = _distinct(zone for ref in term.zones for zone in self._resolve(ref))
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
        return _distinct(other for other in found if other is not None)

    def _resolve(self, ref: ZoneRef) -> tuple[str, ...]:
        return (_inline_id(ref),) if isinstance(ref, InlineZone) else self._directory.resolve(ref)


@lru_cache(maxsize=1024)
def _inline_id(ref: InlineZone) -> str:
    return "i" + blake2b(msgspec.json.encode(ref.shape), digest_size=8).hexdigest()


# --- conditions --------------------------------------------------------------------------------------


def _at(term: _Spatial, zones: tuple[str, ...]) -> Condition:
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
    return node if any(name != "oid" for name in _names(node)) else Const(truth(node, event, _Nowhere()))


def _put_in(operand: Operand, event: Event) -> Operand:
    if isinstance(operand, Name):
        return Literal(event.oid) if operand.name == "oid" else operand
    if isinstance(operand, Negative):
        return Negative(_put_in(operand.operand, event))
    if isinstance(operand, Arith):
        return Arith(operand.op, _put_in(operand.left, event), _put_in(operand.right, event))
    return operand


def _names(node: Plain | Operand) -> Iterator[str]:
    if isinstance(node, (Name, In, Like, IsNull)):
        yield node.name
    elif isinstance(node, (Compare, Arith)):
        yield from _names(node.left)
        yield from _names(node.right)
    elif isinstance(node, Between):
        for operand in (node.operand, node.low, node.high):
            yield from _names(operand)
    elif isinstance(node, (Negative, Truth)):
        yield from _names(node.operand)


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


def _distinct(items: Iterable[_K]) -> tuple[_K, ...]:
    return tuple(dict.fromkeys(items))
