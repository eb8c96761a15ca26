"""Working with conditions as trees: whether they are any, what they speak of, and giving zones other names."""

from collections.abc import Iterator, Mapping
from typing import cast

import msgspec

from matcher.selector.tree import And, Condition, DeviceCondition, InZones, Near, Not, Or, Related

__all__ = ["depends_on_others", "is_condition", "leaves", "others_in", "rename_zones", "zones_in"]


def is_condition(node: object) -> bool:
    """Whether a device can evaluate it: no node in it is one of those that name objects and zones, or other objects."""
    if isinstance(node, And | Or):
        return all(map(is_condition, node.items))
    return is_condition(node.item) if isinstance(node, Not) else isinstance(node, DeviceCondition)


def depends_on_others(condition: Condition) -> bool:
    """Whether its truth can change with an event of another object."""
    return any(isinstance(leaf, Near) for leaf in leaves(condition))


def others_in(condition: Condition) -> Iterator[str]:
    """The ids of all other objects in it, repeats included."""
    for leaf in leaves(condition):
        if isinstance(leaf, Near):
            yield from leaf.others


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
