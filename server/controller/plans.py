"""The plan of an object's agent: which bindings it evaluates, in words that tell it nothing else.

A device sees handles, geometry and conditions. Geometry goes to a device only if it is SYSTEM's, the device owner's
own, or its owner said `on_devices`; a binding that needs other geometry is not in the plan.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

import msgspec

from agent_sdk.protocol.evaluators import Evaluation, Evaluator, Situation, evaluator_of
from agent_sdk.protocol.messages import PlanAnchor, PlanItem, PlanZone
from agent_sdk.protocol.plans import FullPlan
from matcher.anchors import Anchor
from matcher.evaluation import Rule
from matcher.once import OnceState, Service, is_finished
from matcher.selector.conditions import rename_zones, zones_in
from matcher.selector.tree import DeviceCondition
from server.pubsub.entries import BindingKey, ObjectEntry
from server.pubsub.identifiers import binding_handle, zone_handle
from server.pubsub.world import World

__all__ = ["binding_of", "build_plan", "evaluation_of"]

_START = OnceState()
_ANY = Service()


def build_plan(world: World, entry: ObjectEntry) -> FullPlan:
    """Everything the object's agent is to evaluate, with the state of each binding as the server knows it."""
    items: dict[str, PlanItem] = {}
    zones: dict[str, PlanZone] = {}
    for rule in world.rulebook.rules(entry.id):
        state = world.states.get(rule.key, _START)
        if is_finished(rule.service, state) or evaluation_of(world, entry, rule).evaluator is not Evaluator.AGENT:
            continue
        names = {zone_id: _zone_handle(world, entry, zone_id) for zone_id in zones_in(rule.condition)}
        for zone_id, name in names.items():
            if name not in zones:
                zones[name] = PlanZone(name, world.shape(zone_id, world.subscriptions[rule.key.subscription_id]))
        handle = binding_handle(world.secret, entry.generation, rule.key)
        items[handle] = PlanItem(
            handle=handle,
            condition=cast("DeviceCondition", rename_zones(rule.condition, names)),  # see `Rulebook`
            service=_for_device(rule.service),
            state=state,
            precision=str(rule.precision),
            anchor=None if rule.anchor is None else _anchor(rule, rule.anchor, names),
        )
    return FullPlan(generation=entry.generation, items=items, zones=zones)


def _anchor(rule: Rule[BindingKey], anchor: Anchor, names: Mapping[str, str]) -> PlanAnchor:
    # Worked out here once and not on every device: it takes a while, and others may come to another result.
    widest_m = anchor.boundary.widest_band_m if rule.service.has_dead_band else 0.0
    return PlanAnchor(names[anchor.zone], widest_m, anchor.since or 0)


@lru_cache(maxsize=1024)
def _for_device(service: Service) -> Service:
    """With what a device needs to be told: not the age of places, nor what is so without being said."""
    given = msgspec.structs.asdict(service)
    return Service(**{name: given[name] for name in given if name != "stale_s" and given[name] != getattr(_ANY, name)})


def evaluation_of(world: World, entry: ObjectEntry, rule: Rule[BindingKey], *, has_agent: bool = True) -> Evaluation:
    """Who evaluates this binding, if the object has an agent, or if it has none."""
    subscriber_id = world.subscriptions[rule.key.subscription_id].subscriber_id
    agent = world.agents.get(entry.id)
    situation = Situation(
        has_agent=has_agent,
        capabilities=None if agent is None else agent.capabilities,
        geometry_travels=all(_may_travel(world, entry, zone, subscriber_id) for zone in zones_in(rule.condition)),
    )
    return evaluator_of(rule.condition, rule.service, situation)


def binding_of(world: World, entry: ObjectEntry, handle: str) -> BindingKey | None:
    """The binding a handle of the current generation stands for, unless it has ended."""
    key = world.rulebook.handles.get(entry.id, {}).get(handle)
    if key is None or binding_handle(world.secret, entry.generation, key) != handle:  # of an earlier generation
        keys = (rule.key for rule in world.rulebook.all_rules(entry.id))
        world.rulebook.handles[entry.id] = {binding_handle(world.secret, entry.generation, each): each for each in keys}
        key = world.rulebook.handles[entry.id].get(handle)
    return key


def _may_travel(world: World, entry: ObjectEntry, zone_id: str, subscriber_id: int) -> bool:
    zone = world.zones.get(zone_id)
    if zone is None:  # written inline: the subscriber's own geometry
        return subscriber_id == entry.owner_id
    return zone.owner_id in (world.system_id, entry.owner_id) or zone.zone.on_devices


def _zone_handle(world: World, entry: ObjectEntry, zone_id: str) -> str:
    return zone_handle(world.secret, entry.id, entry.generation, zone_id, world.zone_version(zone_id))
