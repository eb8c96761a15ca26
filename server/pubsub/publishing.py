"""Events of objects without an agent: folded here, with the same code as on a device.

A batch is taken whole or not at all. An event that is not newer than the newest one of its object changes nothing
and is counted as late, so sending a batch again after a lost answer is harmless.

A message that names no object (a storm warning, say) is nobody's next event: it is a thing of its own, seen once. What
it makes true is told once, as an `enter` or a `match`, and there is nothing that could leave.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import insert, update

from matcher.evaluation import Folded, Rule, expire, fold
from matcher.events import Event
from matcher.once import Instant, Mode, OnceState, Tos, deadline
from matcher.selector.truth import truth
from server.errors import ObjectHasAgent, ObjectNotFound, TimestampAhead
from server.pubsub.delegations import is_published_by, owner_of
from server.pubsub.entries import BindingKey, ObjectEntry
from server.pubsub.fences import Here
from server.pubsub.meeting import expire_nearby, fold_nearby
from server.pubsub.work import Work
from server.store import models
from server.store.accounts import Account
from zones.names import fold as fold_name
from zones.oids import parse_oid

__all__ = ["Published", "expire_dwells", "next_deadline", "object_for_owner", "publish", "refuse_future"]


class Published(msgspec.Struct, frozen=True):
    accepted: int
    late: int


def publish(work: Work, account: Account, events: Sequence[Event]) -> Published:
    """Check all events, then fold them one by one in the order they came."""
    entries = [_checked(work, account, event) for event in events]
    late = 0
    work.tx.touch()
    places = work.world.rulebook.fences.zones_of_all(events)
    for event, entry, zones in zip(events, entries, places, strict=True):
        if not event.oid:
            _tell_message(work, account, event)
            continue
        if entry is None:
            entry = _object(work, account, event.oid)
        if entry.owner_id != account.user_id:
            event = msgspec.structs.replace(event, lpid=account.name)
        if entry.newest is not None and event.ts <= entry.newest:
            late += 1
        else:
            _take_over(work, entry)
            _fold(work, entry, event, zones)
    return Published(len(events) - late, late)


def expire_dwells(work: Work) -> None:
    """Let the dwells end whose time has come, on objects that the server evaluates."""
    for object_id in sorted({key.object_id for key in work.world.dwelling}):
        if work.world.agent_holding(object_id, work.now) is not None:
            continue
        entry = work.world.objects[object_id]
        rules = work.world.rulebook.rules_at(object_id)
        folded = expire(rules, _states(work, rules), entry.last, work.now)
        if folded.edges:
            work.tx.touch()
            _record(work, folded)
            # An event from before an edge that has been told would make a leave older than its enter.
            entry.newest = max(entry.newest or 0, folded.edges[-1].edge.ts)
            work.recorder.object_changed(entry)
    expire_nearby(work)


def next_deadline(work: Work) -> Instant | None:
    """When `expire_dwells` has something to do next."""
    dues = (
        deadline(work.world.subscriptions[key.subscription_id].service, work.world.states[key])
        for key in work.world.dwelling
        if work.world.agent_holding(key.object_id, work.now) is None or work.world.nearby.tie(key) is not None
    )
    return min((due for due in dues if due is not None), default=None)


def object_for_owner(work: Work, account: Account, oid: str) -> ObjectEntry:
    """The caller's own object, made when it is spoken of for the first time."""
    if fold_name(parse_oid(oid).owner) != fold_name(account.name):
        raise _not_found(account, oid)
    return _object(work, account, oid)


def _object(work: Work, account: Account, oid: str) -> ObjectEntry:
    """The object that the caller may publish for, made when it is spoken of for the first time."""
    entry = work.world.object(oid)
    if entry is None:
        owner_id = owner_of(work, account, oid)
        if owner_id is None:
            raise _not_found(account, oid)
        work.user_id(account.name)
        row = insert(models.Object).values(oid=oid, folded=fold_name(oid), owner_id=owner_id, generation=0)
        object_id = work.conn.execute(row.returning(models.Object.id)).scalar_one()
        entry = ObjectEntry(object_id, oid, owner_id, None, None, 0)
        work.world.put_object(entry)
    return entry


def refuse_future(ts: Instant, now: Instant, clock_ahead_s: float) -> None:
    if ts > now + clock_ahead_s * 1000:
        raise TimestampAhead(
            f"The event's ts is more than {clock_ahead_s:g} seconds ahead of the server's clock.",
            hint="Set the sender's clock, and send ts in UTC.",
        )


def _checked(work: Work, account: Account, event: Event) -> ObjectEntry | None:
    """The object of an event that may be published, if it has one that the server knows."""
    refuse_future(event.ts, work.now, work.settings.clock_ahead_s)
    if not event.oid:
        return None
    entry = work.world.object(event.oid)
    if entry is None:
        is_allowed = owner_of(work, account, event.oid) is not None
    else:
        is_allowed = is_published_by(work, account, entry.owner_id, event.oid)
    if not is_allowed:
        raise _not_found(account, event.oid)
    if entry is not None and work.world.agent_holding(entry.id, work.now) is not None:
        raise ObjectHasAgent(
            f"The object '{event.oid}' has an agent, which evaluates its position itself.",
            hint="Send fixes to the agent, or revoke it first: DELETE /v1/agents/{id}.",
            oid=event.oid,
        )
    return entry


def _not_found(account: Account, oid: str) -> ObjectNotFound:
    return ObjectNotFound(
        f"There is no object '{oid}' that you may publish for.",
        hint=f"Your objects are '{account.name}' and '{account.name}/...'; others can delegate theirs to you.",
        oid=oid,
    )


def _take_over(work: Work, entry: ObjectEntry) -> None:
    """The server evaluates from here on: an agent whose lease has ended must not go on where it stopped."""
    agent = work.world.agents.get(entry.id)
    if agent is not None and agent.lease_until != 0:
        agent.lease_until = 0
        entry.generation += 1
        work.forget_last(entry)
        work.conn.execute(update(models.Agent).where(models.Agent.id == agent.id).values(lease_until=0))


def _tell_message(work: Work, account: Account, event: Event) -> None:
    work.user_id(account.name)
    for subscription, bound in work.world.rulebook.bindings_of_message(account.user_id, event):
        service = subscription.service
        is_over = service.expires is not None and event.ts >= service.expires
        if is_over or service.dwell_s or not truth(bound.condition, event, work.world):
            continue
        mode = Mode.MATCH if service.tos is Tos.EVERY else Mode.ENTER
        work.recorder.message(subscription, bound.target, account.user_id, mode, event, work.conn)


def _fold(work: Work, entry: ObjectEntry, event: Event, zones: frozenset[str]) -> None:
    rules = work.world.rulebook.rules_at(entry.id, event, zones)
    if rules:
        places = Here(work.world, event, zones)
        _record(work, fold(rules, _states(work, rules), entry.last, event, places))
    fold_nearby(work, entry, event)
    entry.newest, entry.last = event.ts, event
    work.recorder.object_changed(entry)


def _states(work: Work, rules: Sequence[Rule[BindingKey]]) -> dict[BindingKey, OnceState]:
    known = work.world.states
    return {rule.key: known[rule.key] for rule in rules if rule.key in known}


def _record(work: Work, folded: Folded[BindingKey]) -> None:
    for key, state in folded.states.items():
        work.recorder.state(key, state)
    for happening in folded.edges:
        work.recorder.edge(happening.key, happening.edge, happening.event)
