"""Working with conditions as trees: whether they are any, which zones they speak of, and giving those other names."""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from matcher.selector.tree import And, Condition, InZones, Not, Or, Related

__all__ = ["is_condition", "leaves", "rename_zones", "zones_in"]


def is_condition(node: object) -> bool:
    """Whether it can be evaluated: no node in it is one of those that name objects and zones."""
    if isinstance(node, And | Or):
        return all(map(is_condition, node.items))
    return is_condition(node.item) if isinstance(node, Not) else isinstance(node, Condition)


def zones_in(condition: Condition) -> Iterator[str]:
    """The ids of all zones in it, repeats included."""
    for leaf in leaves(condition):
        if isinstance(leaf, InZones | Related):
            yield from leaf.zones


def leaves(condition: Condition) -> Iterator[Condition]:
    """Everything in it that joins nothing."""
    if isinstance(condition, And | Or):
        for item in condition.items:
            yield from leaves(cast(Condition, item))
    elif isinstance(condition, Not):
        yield from leaves(cast(Condition, condition.item))
    else:
        yield condition


def rename_zones(condition: Condition, names: Mapping[str, str]) -> Condition:
    """The same condition with other ids for its zones."""
    if isinstance(condition, InZones | Related):
        return msgspec.structs.replace(condition, zones=tuple(names[zone_id] for zone_id in condition.zones))
    if isinstance(condition, And | Or):
        items = tuple(rename_zones(cast(Condition, item), names) for item in condition.items)
        return msgspec.structs.replace(condition, items=items)
    if isinstance(condition, Not):
        return Not(rename_zones(cast(Condition, condition.item), names))
    return condition
