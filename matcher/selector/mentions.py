"""What a selector speaks of, before any of it is resolved: objects, zones, distances, and what these are asked for."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import cast

import msgspec

from matcher.selector.filters import Spatial, can_anchor, distinct, filters_of
from matcher.selector.tree import (
    And,
    Arith,
    Between,
    Compare,
    Distance,
    In,
    InlineZone,
    IsNull,
    Like,
    Name,
    Negative,
    Not,
    Operand,
    Or,
    Plain,
    Selector,
    Truth,
    Within,
    ZoneRef,
)

__all__ = [
    "depends_on_object", "distances", "inline_id", "inline_zones", "is_anchored_within", "named_oids", "names_in",
    "negates_places", "placed_oids", "subjects", "written_out", "zone_refs",
]  # fmt: skip


def inline_zones(selector: Selector) -> dict[str, InlineZone]:
    """The zones written out in the selector, by the ids that bindings know them by."""
    return {inline_id(ref): ref for ref in zone_refs(selector) if isinstance(ref, InlineZone)}


def subjects(selector: Selector) -> frozenset[str] | None:
    """The folded oids of the objects that the selector can speak of; None for every object there is."""
    found: set[str] = set()
    for each in filters_of(selector):
        if each.oids is None:
            return None
        found |= each.oids
    return frozenset(found)


def zone_refs(selector: Selector) -> tuple[ZoneRef, ...]:
    """Every zone reference in the selector, in the order of writing."""
    terms = (term for term in _spatial_terms(selector) if not isinstance(term, Distance))
    return distinct(ref for term in terms for ref in term.zones)


def named_oids(selector: Selector) -> tuple[str, ...]:
    """Every object named in a spatial term, as written, in the order of writing."""
    return distinct(oid for term in _spatial_terms(selector) for oid in _written_oids(term))


def placed_oids(selector: Selector) -> tuple[str, ...]:
    """Every object named in a term about zones, as written, in the order of writing."""
    terms = (term for term in _spatial_terms(selector) if not isinstance(term, Distance))
    return distinct(oid for term in terms for oid in _written_oids(term))


def is_anchored_within(selector: Selector) -> bool:
    """Whether some binding is about being in a zone, and so has a boundary to look at."""
    return any(each.anchor is not None and isinstance(each.anchor.node, Within) for each in filters_of(selector))


def negates_places(selector: Selector) -> bool:
    """Whether a binding can become true because its object is no longer somewhere."""
    terms = (term for each in filters_of(selector) for term in each.terms)
    return any(isinstance(term.node, Spatial) and not can_anchor(term) for term in terms)


def distances(selector: Selector) -> tuple[Distance, ...]:
    """Every `distance` term in the selector, in the order of writing."""
    return distinct(term for term in _spatial_terms(selector) if isinstance(term, Distance))


def written_out(selector: Selector) -> tuple[Selector, ...]:
    """The filters of its disjunctive normal form, as selectors of their own."""
    found = ([Not(term.node) if term.negated else term.node for term in each.terms] for each in filters_of(selector))
    return tuple(terms[0] if len(terms) == 1 else And(tuple(terms)) for terms in found)


def depends_on_object(selector: Selector) -> bool:
    """Whether bindings of two objects differ in more than whose they are."""
    terms = (term for each in filters_of(selector) for term in each.terms)
    return any(
        term.oids is not None if isinstance(term.node, Spatial) else "oid" in names_in(term.node) for term in terms
    )


@lru_cache(maxsize=1024)
def inline_id(ref: InlineZone) -> str:
    return "i" + blake2b(msgspec.json.encode(ref.shape), digest_size=8).hexdigest()


def names_in(node: Plain | Operand) -> Iterator[str]:
    if isinstance(node, (Name, In, Like, IsNull)):
        yield node.name
    elif isinstance(node, (Compare, Arith)):
        yield from names_in(node.left)
        yield from names_in(node.right)
    elif isinstance(node, Between):
        for operand in (node.operand, node.low, node.high):
            yield from names_in(operand)
    elif isinstance(node, (Negative, Truth)):
        yield from names_in(node.operand)


def _spatial_terms(node: Selector) -> Iterator[Spatial]:
    if isinstance(node, (And, Or)):
        for item in node.items:
            yield from _spatial_terms(cast("Selector", item))
    elif isinstance(node, Not):
        yield from _spatial_terms(cast("Selector", node.item))
    elif isinstance(node, Spatial):
        yield node


def _written_oids(term: Spatial) -> tuple[str, ...]:
    if isinstance(term, Distance):
        return (term.oid, *(term.others or ()))
    return term.oids or ()
