"""What a subscription does, for the subscriber who wonders: who evaluates it, and what of it is over or missing.

Asking must not tell more than being told does: an object of which a subscriber may know nothing is not there.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice

import msgspec

from agent_sdk.protocol.evaluators import Evaluator, Why
from matcher.compilation import compile_condition
from matcher.evaluation import Rule
from matcher.once import OnceState, Service, is_finished, is_over
from matcher.selector.format import format_selector, format_zone_ref
from matcher.selector.mentions import distances, written_out, zone_refs
from matcher.selector.tree import NamedZone, Selector
from privacy.policies import Operation
from server.controller.plans import evaluation_of
from server.pubsub.entries import (
    BindingKey,
    ObjectEntry,
    SubscriptionEntry,
    distance_operations,
    operations_by_oid,
)
from server.pubsub.naming import target_name
from server.pubsub.pages import Page, after_of, cursor_of
from server.pubsub.subscriptions import find_subscription
from server.pubsub.work import Work
from server.pubsub.world import World
from server.store.accounts import Account
from zones.names import fold as fold_name
from zones.oids import parse_oid

__all__ = [
    "Explained",
    "ExplainedBinding",
    "Missing",
    "Part",
    "Status",
    "explain_subscription",
    "knows_of",
    "may_know_distance",
]

_START = OnceState()
_COUNTED_OBJECTS = 100  # a total is worked out for so many objects whose bindings differ


class Status(StrEnum):
    """Whether a binding can still tell something."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXPIRED = "expired"
    FINISHED = "finished"  # `first` has told its one enter


class Part(msgspec.Struct, frozen=True):
    """One filter of the selector, and who evaluates it where there is a choice."""

    filter: str
    evaluator: Evaluator
    reason: Why


class ExplainedBinding(msgspec.Struct, frozen=True, omit_defaults=True):
    oid: str
    target: str | None
    status: Status
    evaluator: Evaluator
    reason: str
    dropped: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET  # what simplification left out, on the server


class Missing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the selector names and has no bindings: because it is not there, or not for this subscriber."""

    reason: str
    oid: str | None = None
    zone: str | None = None
    needs: tuple[Operation, ...] = ()


class Explained(msgspec.Struct, frozen=True):
    id: str
    paused: bool
    expired: bool
    parts: tuple[Part, ...]
    bindings: tuple[ExplainedBinding, ...]
    missing: tuple[Missing, ...]
    total: int | None  # None if counting would take long
    next: str | None


# --- who evaluates what -------------------------------------------------------------------------------


def explain_subscription(work: Work, account: Account, name: str, page: Page) -> Explained:
    """Everything about a subscription that its subscriber may know; its bindings a page at a time."""
    entry = find_subscription(work, account, name)
    world = work.world
    things = _visible(world, entry)
    rows = list(islice(_listed(world, entry, things, page), page.limit + 1))
    shown = rows[: page.limit]
    return Explained(
        id=entry.name,
        paused=entry.paused,
        expired=is_over(entry.service, work.now),
        parts=tuple(map(_part, written_out(entry.selector))),
        bindings=tuple(_explained(work, entry, thing, rule) for thing, _, rule in shown),
        missing=tuple(_missing(work, entry)),
        total=_total(world, entry, things, page),
        next=cursor_of(fold_name(shown[-1][0].oid), shown[-1][1]) if len(rows) > page.limit else None,
    )


def _part(each: Selector) -> Part:
    own = not distances(each)
    evaluator, why = (Evaluator.AGENT, Why.OFFLOADED) if own else (Evaluator.SERVER, Why.DEPENDS_ON_OTHERS)
    return Part(format_selector(each), evaluator, why)


def _visible(world: World, entry: SubscriptionEntry) -> list[ObjectEntry]:
    """The objects that the subscription has bindings of, as far as the subscriber may know, by name."""
    asker_id, allowed = entry.subscriber_id, {}
    found = []
    for object_id in world.objects_meant(entry):
        thing = world.objects[object_id]
        if thing.owner_id not in allowed:
            allowed[thing.owner_id] = world.allows_all(thing.owner_id, entry) or may_know_distance(
                world, thing.owner_id, asker_id, entry.service
            )
        if allowed[thing.owner_id]:
            found.append(thing)
    return sorted(found, key=lambda thing: fold_name(thing.oid))


def may_know_distance(world: World, owner_id: int, asker_id: int, service: Service) -> bool:
    return all(world.allows(owner_id, asker_id, operation) for operation in distance_operations(service))


def _rules(world: World, entry: SubscriptionEntry, thing: ObjectEntry) -> Iterator[Rule[BindingKey]]:
    """All bindings of one object that the subscriber may know of."""
    if world.allows_all(thing.owner_id, entry):
        yield from world.rulebook.bindings_of(thing.id, entry)
    yield from (rule for rule in world.nearby.rules(thing.id) if rule.key.subscription_id == entry.id)


def _listed(
    world: World, entry: SubscriptionEntry, things: Iterable[ObjectEntry], page: Page
) -> Iterator[tuple[ObjectEntry, int, Rule[BindingKey]]]:
    """Bindings with their objects and their places among those of the object, from the cursor on."""
    first_oid, first = after_of(page.after)
    for thing in things:
        folded = fold_name(thing.oid)
        if folded < first_oid or page.oid not in (None, folded):
            continue
        for index, rule in enumerate(_rules(world, entry, thing)):
            if folded == first_oid and index <= first:
                continue
            if page.target is None or target_name(world, entry, rule.key.target) == page.target:
                yield thing, index, rule


def _total(world: World, entry: SubscriptionEntry, things: list[ObjectEntry], page: Page) -> int | None:
    if page.oid is not None or page.target is not None:
        return None
    if entry.subjects is None and not entry.depends_on_object and things and not distances(entry.selector):
        return len(things) * sum(1 for _ in world.rulebook.bounds_for_messages(entry))  # the same for everybody
    if len(things) > _COUNTED_OBJECTS:
        return None
    return sum(1 for thing in things for _ in _rules(world, entry, thing))


def _explained(work: Work, entry: SubscriptionEntry, thing: ObjectEntry, rule: Rule[BindingKey]) -> ExplainedBinding:
    world = work.world
    target = target_name(world, entry, rule.key.target)
    status = _status(work, entry, rule)
    if status is not Status.ACTIVE:
        return ExplainedBinding(thing.oid, target, status, Evaluator.NOBODY, status)
    has_agent = world.agent_holding(thing.id, work.now) is not None
    evaluation = evaluation_of(world, thing, rule, has_agent=has_agent)
    dropped: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    if evaluation.evaluator is Evaluator.SERVER:
        dropped = tuple(each.why for each in compile_condition(rule.condition, world.region).dropped)
    return ExplainedBinding(thing.oid, target, status, evaluation.evaluator, evaluation.why, dropped)


def _status(work: Work, entry: SubscriptionEntry, rule: Rule[BindingKey]) -> Status:
    if entry.paused:
        return Status.PAUSED
    if is_over(entry.service, work.now):
        return Status.EXPIRED
    return Status.FINISHED if is_finished(entry.service, work.world.states.get(rule.key, _START)) else Status.ACTIVE


def _missing(work: Work, entry: SubscriptionEntry) -> Iterator[Missing]:
    world, asker_id = work.world, entry.subscriber_id
    for ref in zone_refs(entry.selector):
        if isinstance(ref, NamedZone):
            zone = world.zone(ref.owner, ref.local)
            if zone is None or not world.may_read_zone(zone, asker_id):
                yield Missing("zone_not_found", zone=format_zone_ref(ref))
    for oid, operations in operations_by_oid(entry.service, entry.selector).items():
        owner_id = work.user_id(parse_oid(oid).owner)
        if owner_id is None or not knows_of(world, owner_id, asker_id):
            yield Missing("object_not_found", oid=oid)
        elif needs := tuple(each for each in operations if not world.allows(owner_id, asker_id, each)):
            yield Missing("no_grant", oid=oid, needs=needs)
        elif world.object(oid) is None:
            yield Missing("no_event_yet", oid=oid)


def knows_of(world: World, owner_id: int, asker_id: int) -> bool:
    """Whether there is any grant: else its objects are not there."""
    return any(world.allows(owner_id, asker_id, operation) for operation in Operation)
