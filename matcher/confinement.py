"""Where an object has to be for a condition to hold.

A fence is a binding that can hold only in certain zones. Of very many fences an event concerns those whose zones it is
in, and those that hold already; the others are false before it and after it, and need no look.
"""

from typing import cast

from matcher.once import Service
from matcher.selector.tree import And, Condition, Const, InZones, Or, Selector

__all__ = ["is_settled_by_position", "zones_around"]


def zones_around(condition: Condition | Selector) -> frozenset[str] | None:
    """Zones such that the condition can be true only in one of them; None if it may be true elsewhere."""
    if isinstance(condition, InZones):
        return frozenset(condition.zones)
    if isinstance(condition, And):
        confined = [zones for item in condition.items if (zones := zones_around(cast(Condition, item))) is not None]
        return min(confined, key=len, default=None)
    if isinstance(condition, Or):
        parts = [zones_around(cast(Condition, item)) for item in condition.items]
        return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
    return frozenset() if condition == Const(False) else None


def is_settled_by_position(service: Service) -> bool:
    """Whether where an event is says all; with `crossing` the way to it counts as well."""
    return not service.crossing
