"""Why a condition is not true for an event: the parts of it that make it so, in the words of a selector.

Each part is judged by `matcher.selector.truth`, as the whole is; there is no second evaluator. What decides alone is
named alone: of an AND that is false its first part that is, of an OR all of them.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from matcher.events import Event
from matcher.places import Places
from matcher.selector.format import format_selector
from matcher.selector.tree import (
    And,
    Condition,
    Const,
    Distance,
    InZones,
    Near,
    Not,
    Or,
    Relate,
    Related,
    Relation,
    Selector,
    Within,
    ZoneRef,
)
from matcher.selector.truth import truth

__all__ = ["Names", "causes", "format_cause", "is_about_places"]


class Names(NamedTuple):
    """How to speak of what conditions know by ids."""

    oid: str  # the object's own; "" for a message that has none
    zone: Callable[[str], ZoneRef]
    other: Callable[[str], str]


def causes(condition: Condition, event: Event, places: Places) -> tuple[Condition, ...]:
    """The leaves, negated where they are, that make the condition what it is for the event."""
    return tuple(dict.fromkeys(_causes(condition, event, places)))


def _causes(node: Condition, event: Event, places: Places) -> Iterator[Condition]:
    if isinstance(node, Not):
        for cause in _causes(cast("Condition", node.item), event, places):
            yield cast("Condition", cause.item) if isinstance(cause, Not) else Not(cause)
    elif isinstance(node, And | Or):
        value = truth(node, event, places)
        same = [item for item in cast("tuple[Condition, ...]", node.items) if truth(item, event, places) is value]
        decides = value is isinstance(node, Or)  # one TRUE makes an OR true, one FALSE an AND false
        for item in same[:1] if decides else same:
            yield from _causes(item, event, places)
    else:
        yield node


def is_about_places(cause: Condition) -> bool:
    """Whether the part speaks of where things are, and not of an event's pairs."""
    node = cause.item if isinstance(cause, Not) else cause
    return isinstance(node, InZones | Related | Near)


def format_cause(cause: Condition, names: Names) -> str:
    """The part as a subscriber would write it."""
    if isinstance(cause, Const):
        return {True: "TRUE", False: "FALSE", None: "UNKNOWN"}[cause.value]  # decided when it was bound
    if isinstance(cause, Not) and isinstance(cause.item, Const):
        return f"NOT {format_cause(cause.item, names)}"
    return format_selector(_named(cause, names))


def _named(node: Condition, names: Names) -> Selector:
    if isinstance(node, Not):
        return Not(_named(cast("Condition", node.item), names))
    oids = (names.oid,) if names.oid else None
    if isinstance(node, InZones):
        return Within(oids, tuple(map(names.zone, node.zones)))
    if isinstance(node, Related):
        zones = tuple(map(names.zone, node.zones))
        return Relate(node.attribute, None if node.attribute else oids, Relation(node.relation), zones)
    if isinstance(node, Near):
        return Distance(names.oid, node.metres, tuple(map(names.other, node.others)))
    return cast("Selector", node)
