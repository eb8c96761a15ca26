"""The disjunctive normal form of a selector: filters, each a list of terms that have to hold together.

It is right in three-valued logic as well: De Morgan's laws, distribution and double negation hold there, and nothing
else is used. (`x OR NOT x` is not TRUE there, and is not made so.)
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast

from matcher.errors import SelectorTooComplex
from matcher.selector.tree import And, Distance, Not, Or, Plain, Relate, Relation, Selector, Within
from zones.names import fold

__all__ = [
    "MAX_FILTERS", "Filter", "Leaf", "Spatial", "can_anchor", "check_filters", "distinct", "filters_of", "speaks_of",
]  # fmt: skip

MAX_FILTERS = 256
# Filters repeat terms: 8 kB of text could be written out as 60,000 of them, for each object. This bounds the work.
_MAX_WRITTEN_OUT = 4096

Spatial = Within | Distance | Relate
_K = TypeVar("_K")


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


class Leaf(NamedTuple):
    """A term of a filter, and the folded oids of the objects it speaks of (None for all)."""

    node: Spatial | Plain
    negated: bool
    oids: frozenset[str] | None


class Filter(NamedTuple):
    """Terms that have to hold together, and the objects they speak of together."""

    terms: tuple[Leaf, ...]
    anchor: Leaf | None
    oids: frozenset[str] | None


@lru_cache(maxsize=1024)
def filters_of(selector: Selector) -> tuple[Filter, ...]:
    check_filters(selector)
    numbers: dict[Leaf, int] = {}  # a term is hashed once, however many filters have it
    numbered = distinct(distinct(terms) for terms in _disjuncts(selector, numbers, negated=False))
    leaves = tuple(numbers)
    return tuple(_filter(tuple(leaves[number] for number in terms)) for terms in numbered)


def _filter(terms: tuple[Leaf, ...]) -> Filter:
    spatial = [term for term in terms if isinstance(term.node, Spatial)]
    anchor = next((term for term in spatial if can_anchor(term)), None)
    if anchor is not None:
        return Filter(terms, anchor, anchor.oids)
    named = [term.oids for term in spatial if term.oids is not None]
    everything = not spatial or len(named) < len(spatial)
    return Filter(terms, None, None if everything else frozenset().union(*named))


def can_anchor(term: Leaf) -> bool:
    return not (term.negated or (isinstance(term.node, Relate) and term.node.relation is Relation.DISJOINT))


def _disjuncts(node: Selector, numbers: dict[Leaf, int], *, negated: bool) -> list[tuple[int, ...]]:
    """The filters, as numbers of terms."""
    if isinstance(node, Not):
        return _disjuncts(cast("Selector", node.item), numbers, negated=not negated)
    if not isinstance(node, (And, Or)):
        return [(numbers.setdefault(Leaf(node, negated, _folded_oids(node)), len(numbers)),)]
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


def _folded_oids(term: Spatial | Plain) -> frozenset[str] | None:
    if isinstance(term, (Within, Relate)):
        return None if term.oids is None else frozenset(map(fold, term.oids))
    return frozenset({fold(term.oid)}) if isinstance(term, Distance) else None  # a distance is its left object's


def speaks_of(one: Leaf | Filter, folded: str) -> bool:
    return one.oids is None or folded in one.oids


def distinct(items: Iterable[_K]) -> tuple[_K, ...]:
    return tuple(dict.fromkeys(items))
