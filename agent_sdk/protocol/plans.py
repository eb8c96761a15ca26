"""Plans as wholes: what the server wants evaluated, how it changes, and what a device keeps of its own.

The etag names what is to be evaluated and not how far it has come: states change with every edge, and the device
knows its own better than the server does. So a device that reconnects with the same etag is sent nothing.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from agent_sdk.protocol.messages import Plan, PlanItem, PlanZone
from matcher.once import Instant, OnceState, interrupted

__all__ = ["FullPlan", "applied", "as_full", "difference", "etag", "merged_states"]

_UNTOUCHED = OnceState()
_encode = msgspec.msgpack.Encoder(order="sorted").encode


@dataclass(frozen=True, slots=True)
class FullPlan:
    """Everything one object's agent has to evaluate, by handle and by zone id."""

    generation: int = 0
    items: Mapping[str, PlanItem] = field(default_factory=dict)
    zones: Mapping[str, PlanZone] = field(default_factory=dict)


def etag(plan: FullPlan) -> str:
    """A name for what is to be evaluated: the same handles, conditions, services and zones give the same one."""
    digest = hashlib.blake2b(digest_size=16)
    for handle in sorted(plan.items):
        item = plan.items[handle]
        # Field by field: whether an encoder leaves a default out depends on how the struct was made.
        digest.update(
            _encode((handle, item.condition, msgspec.structs.astuple(item.service), item.precision, item.anchor))
        )
    digest.update(b"\0zones")
    for zone in sorted(plan.zones):
        digest.update(_encode(plan.zones[zone]))
    return digest.hexdigest()


def as_full(plan: FullPlan, *, lease_s: float, newest: Instant | None = None) -> Plan:
    """The message that says all of it."""
    return Plan(
        generation=plan.generation,
        etag=etag(plan),
        full=True,
        lease_s=lease_s,
        items=tuple(plan.items.values()),
        zones=tuple(plan.zones.values()),
        newest=newest,
    )


def difference(old: FullPlan, new: FullPlan, *, lease_s: float, newest: Instant | None = None) -> Plan | None:
    """The message that turns the old plan into the new one; None if they ask for the same.

    Within one generation it is a delta. A new generation discards states, so it is always said in full.
    """
    if old.generation != new.generation:
        return as_full(new, lease_s=lease_s, newest=newest)
    items = tuple(
        item for handle, item in new.items.items() if handle not in old.items or _is_news(old.items[handle], item)
    )
    zones = tuple(zone for key, zone in new.zones.items() if old.zones.get(key) != zone)
    drop = tuple(handle for handle in old.items if handle not in new.items)
    drop_zones = tuple(key for key in old.zones if key not in new.zones)
    if not (items or zones or drop or drop_zones):
        return None
    return Plan(
        generation=new.generation,
        etag=etag(new),
        full=False,
        lease_s=lease_s,
        items=items,
        zones=zones,
        drop=drop,
        drop_zones=drop_zones,
        newest=newest,
    )


def applied(message: Plan, old: FullPlan) -> FullPlan:
    """The plan after this message; the receiving end of `difference` and `as_full`."""
    items = {} if message.full else {key: item for key, item in old.items.items() if key not in message.drop}
    zones = {} if message.full else {key: zone for key, zone in old.zones.items() if key not in message.drop_zones}
    items.update((item.handle, item) for item in message.items)
    zones.update((zone.zone, zone) for zone in message.zones)
    return FullPlan(message.generation, items, zones)


def merged_states(message: Plan, old: FullPlan, own: Mapping[str, OnceState]) -> dict[str, OnceState]:
    """All states a device holds after this message.

    In the same generation its own state of a handle stands unless the plan knows of more edges, or of the same number
    with another outcome (the server did not tell the last one, and goes on from before it). The states of handles that
    went are kept, so that a pause does not restart n. A dwell does not run on where the condition
    went or became another. A new generation begins with the plan's states alone.
    """
    if message.generation != old.generation:
        return {item.handle: item.state for item in message.items if item.state != _UNTOUCHED}
    states = dict(own)
    new = applied(message, old)
    for handle, before in old.items.items():
        after = new.items.get(handle)
        if handle in states and (after is None or _differs(before, after)):
            states[handle] = interrupted(states[handle])
    for item in message.items:
        mine = states.get(item.handle)
        if mine is None or mine.n < item.state.n or (mine.n == item.state.n and mine.holds is not item.state.holds):
            states[item.handle] = item.state
    return {handle: state for handle, state in states.items() if state != _UNTOUCHED}


def _is_news(one: PlanItem, other: PlanItem) -> bool:
    return one.anchor != other.anchor or _differs(one, other)


def _differs(one: PlanItem, other: PlanItem) -> bool:
    return (one.condition, one.service, one.precision) != (other.condition, other.service, other.precision)
