"""What a subscription does, for the subscriber who wonders: who evaluates it, what of it is over, why nothing came.

For an event that somebody brings, the bindings are folded as they would be if it were published, on a copy: the same
code decides here and there, and nothing is kept.

Asking must not tell more than being told does. An object of which a subscriber may know nothing is not there. Whether
it is inside is for those who are told of enters and of leaves; when it was last seen, whether it is waiting in a
dwell, and which way it came is for those who may know every position, or own it. For anybody else an event is judged
as if it were the object's next one, and a dwell as if it began with it. How far others are from a place that one makes
up is for the owner alone, who could go there as well.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice

import msgspec

from agent_sdk.protocol.evaluators import Evaluator, Why
from matcher.anchors import Counting, counts_as_inside
from matcher.compilation import compile_condition
from matcher.evaluation import Rule, fold
from matcher.events import Event
from matcher.instants import format_instant
from matcher.once import Edge, Instant, Mode, OnceState, Service, Tos, deadline, interrupted, is_finished, is_over
from matcher.places import Places
from matcher.proximity import Proximity, Tie
from matcher.selector.binding import distances, written_out, zone_refs
from matcher.selector.causes import causes, format_cause, is_about_places
from matcher.selector.conditions import depends_on_others, zones_in
from matcher.selector.format import format_selector, format_zone_ref
from matcher.selector.tree import Condition, NamedZone, Selector
from matcher.selector.truth import truth
from privacy.policies import Operation
from server.controller.plans import evaluation_of
from server.errors import ObjectNotFound
from server.pubsub.entries import (
    OPERATION_OF,
    BindingKey,
    ObjectEntry,
    SubscriptionEntry,
    distance_operations,
    operations_by_oid,
)
from server.pubsub.naming import names_of, target_name
from server.pubsub.pages import Page, after_of, cursor_of
from server.pubsub.publishing import refuse_future
from server.pubsub.subscriptions import find_subscription
from server.pubsub.work import Work
from server.pubsub.world import World
from server.store.accounts import Account
from zones.names import fold as fold_name
from zones.oids import parse_oid

__all__ = ["Explained", "ExplainedBinding", "ExplainedEvent", "Missing", "Part", "Reason", "Status", "Verdict",
           "explain_event", "explain_subscription"]  # fmt: skip

_START = OnceState()
_COUNTED_OBJECTS = 100  # a total is worked out for so many objects whose bindings differ
_MOST_CAUSES = 20


class Status(StrEnum):
    """Whether a binding can still tell something."""

    ACTIVE = "active"
    PAUSED = "paused"
    EXPIRED = "expired"
    FINISHED = "finished"  # `first` has told its one enter


class Reason(StrEnum):
    """Why an event was told, or was not."""

    FIRED = "fired"
    LATE = "late"
    DEAD_BAND = "dead_band"
    DWELL_RUNNING = "dwell_running"
    ALREADY_INSIDE = "already_inside"
    ALREADY_OUTSIDE = "already_outside"
    CONDITION_FALSE = "condition_false"
    CONDITION_UNKNOWN = "condition_unknown"
    MODE_NOT_ASKED = "mode_not_asked"
    NO_GRANT = "no_grant"
    NOT_EVALUATED = "not_evaluated"  # `nobody` evaluates it, see the other explanation
    NOT_SHOWN = "not_shown"  # it depends on what the subscriber's grants do not show
    PAUSED = "paused"
    EXPIRED = "expired"
    FINISHED = "finished"


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


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one event does to one binding."""

    target: str | None
    fires: bool
    reason: Reason
    modes: tuple[Mode, ...] = ()  # of the edges there would be, told or not
    parts: tuple[str, ...] = ()  # of the condition, that are false or unknown
    until: str | None = None  # when the dwell ends, if nothing else happens


class ExplainedEvent(msgspec.Struct, frozen=True):
    id: str
    oid: str | None
    verdicts: tuple[Verdict, ...]
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
            allowed[thing.owner_id] = world.allows_all(thing.owner_id, entry) or _may_know_distance(
                world, thing.owner_id, asker_id, entry.service
            )
        if allowed[thing.owner_id]:
            found.append(thing)
    return sorted(found, key=lambda thing: fold_name(thing.oid))


def _may_know_distance(world: World, owner_id: int, asker_id: int, service: Service) -> bool:
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
        return len(things) * sum(1 for _ in _rules(world, entry, things[0]))  # the same for everybody
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
        if owner_id is None or not _knows_of(world, owner_id, asker_id):
            yield Missing("object_not_found", oid=oid)
        elif needs := tuple(each for each in operations if not world.allows(owner_id, asker_id, each)):
            yield Missing("no_grant", oid=oid, needs=needs)
        elif world.object(oid) is None:
            yield Missing("no_event_yet", oid=oid)


def _knows_of(world: World, owner_id: int, asker_id: int) -> bool:
    """Whether there is any grant: else its objects are not there."""
    return any(world.allows(owner_id, asker_id, operation) for operation in Operation)


# --- why an event was told, or was not ----------------------------------------------------------------


def explain_event(work: Work, account: Account, name: str, event: Event, page: Page) -> ExplainedEvent:
    """What this event would do to each binding of its object, if it came now. Nothing is changed."""
    entry = find_subscription(work, account, name)
    refuse_future(event.ts, work.now, work.settings.clock_ahead_s)
    if not event.oid:
        made = _message_verdicts(work, entry, event)
    else:
        thing = work.world.object(event.oid)
        if thing is None or not _knows_of(work.world, thing.owner_id, account.user_id):
            raise ObjectNotFound(
                f"There is no object '{event.oid}' that you may know of.",
                hint="Its owner can grant it: POST /v1/privacy/grants.",
                oid=event.oid,
            )
        made = _object_verdicts(work, entry, thing, event)
    _, first = after_of(page.after)
    wanted = (
        (index, make)
        for index, (target, make) in enumerate(made)
        if index > first and (page.target is None or target_name(work.world, entry, target) == page.target)
    )
    rows = list(islice(wanted, page.limit + 1))
    shown = rows[: page.limit]
    return ExplainedEvent(
        id=entry.name,
        oid=event.oid or None,
        verdicts=tuple(make() for _, make in shown),
        next=cursor_of("", shown[-1][0]) if len(rows) > page.limit else None,
    )


_Made = Iterator[tuple[str, Callable[[], Verdict]]]  # a target, and how to get the verdict about it


def _object_verdicts(work: Work, entry: SubscriptionEntry, thing: ObjectEntry, event: Event) -> _Made:
    world = work.world
    asking = _Asking(work, entry, thing)
    # What a missing grant hides has bindings all the same: those of the selector, which is the subscriber's own.
    rules: Iterable[Rule[BindingKey]] = (
        world.rulebook.bindings_of(thing.id, entry)
        if entry.subjects is None or (fold_name(thing.oid) in entry.subjects)
        else ()
    )
    for rule in rules:
        yield rule.key.target, lambda rule=rule: asking.verdict(rule, event)  # type: ignore[misc]
    for rule in world.nearby.rules(thing.id):
        if rule.key.subscription_id == entry.id:
            yield rule.key.target, lambda rule=rule: asking.verdict(rule, event)  # type: ignore[misc]


class _Asking:
    """One subscriber's question about one object."""

    def __init__(self, work: Work, entry: SubscriptionEntry, thing: ObjectEntry) -> None:
        world, asker_id, owner_id = work.world, entry.subscriber_id, thing.owner_id
        self._work, self._world, self._entry, self._thing = work, world, entry, thing
        self._is_owner = owner_id == asker_id
        self._follows = world.allows(owner_id, asker_id, Operation.POSITION)
        self._knows_edges = self._follows or all(
            world.allows(owner_id, asker_id, operation) for operation in (Operation.ENTER, Operation.LEAVE)
        )

    def verdict(self, rule: Rule[BindingKey], event: Event) -> Verdict:
        work, entry, thing = self._work, self._entry, self._thing
        service, target = rule.service, target_name(self._world, entry, rule.key.target)
        state = self._world.states.get(rule.key, _START)
        if not self._may_be_told(rule):
            return Verdict(target, False, Reason.NO_GRANT)
        if entry.paused:
            return Verdict(target, False, Reason.PAUSED)
        if is_over(service, event.ts):
            return Verdict(target, False, Reason.EXPIRED)
        if is_finished(service, state):
            return Verdict(target, False, Reason.FINISHED)
        has_agent = self._world.agent_holding(thing.id, work.now) is not None
        if evaluation_of(self._world, thing, rule, has_agent=has_agent).evaluator is Evaluator.NOBODY:
            return Verdict(target, False, Reason.NOT_EVALUATED)
        if self._follows and thing.newest is not None and event.ts <= thing.newest:
            return Verdict(target, False, Reason.LATE)
        if depends_on_others(rule.condition):
            return self._verdict_on_pair(rule, target, state, event)
        if not self._follows:
            state = interrupted(state)
        last = thing.last if self._follows else None
        edges = [each.edge for each in fold([rule], {rule.key: state}, last, event, self._world).edges]
        return self._judged(rule, target, state, event, edges, self._world)

    def _may_be_told(self, rule: Rule[BindingKey]) -> bool:
        world, entry, owner_id = self._world, self._entry, self._thing.owner_id
        others = depends_on_others(rule.condition)
        by_place = any(True for _ in zones_in(rule.condition)) or not others
        return (not by_place or world.allows_all(owner_id, entry)) and (
            not others or _may_know_distance(world, owner_id, entry.subscriber_id, entry.service)
        )

    def _verdict_on_pair(self, rule: Rule[BindingKey], target: str | None, state: OnceState, event: Event) -> Verdict:
        tie = self._world.nearby.tie(rule.key)
        if not self._is_owner or tie is None:
            return Verdict(target, False, Reason.NOT_SHOWN)
        copied: Proximity[BindingKey] = Proximity(self._world)
        for mover in tie.objects:
            sighting = self._world.nearby.proximity.sighting(mover)
            if sighting is not None:
                copied.place(mover, sighting.event)
        again = Tie(tie.rule, tie.left, target=tie.target, views=tie.views)  # one remembers how it was judged
        copied.link(again)
        folded = copied.fold(tie.left, event, {rule.key: state})
        if folded is None:
            return Verdict(target, False, Reason.LATE)
        copied.judge(again, event.ts)
        return self._judged(rule, target, state, event, [each.edge for each in folded.edges], copied)

    def _judged(
        self,
        rule: Rule[BindingKey],
        target: str | None,
        state: OnceState,
        event: Event,
        edges: list[Edge],
        places: Places,
    ) -> Verdict:
        """The verdict after folding, which is all there is to decide: what follows only finds words for it."""
        service, condition = rule.service, rule.condition
        drawn, counted = truth(condition, event, places), places
        if rule.anchor is not None and service.has_dead_band and event.loc is not None:
            inside = counts_as_inside(rule.anchor, service, state.was_inside, event)
            counted = Counting(places, rule.anchor.zone, inside)
        value = truth(condition, event, counted)
        parts = self._parts(condition, event, counted) if not value else ()
        if value is None and not edges:
            return Verdict(target, False, Reason.CONDITION_UNKNOWN, parts=parts)
        if not self._knows_edges and service.tos is not Tos.EVERY:
            # Whether it is inside already is not known to somebody who is told of one kind of edge.
            return Verdict(target, False, Reason.NOT_SHOWN if value else Reason.CONDITION_FALSE, parts=parts)
        if edges:
            modes = tuple(edge.mode for edge in edges)
            told = any(service.tells(mode) for mode in modes)
            return Verdict(target, told, Reason.FIRED if told else Reason.MODE_NOT_ASKED, modes, parts)
        if value is not drawn:
            return Verdict(target, False, Reason.DEAD_BAND)
        if value:
            if state.holds:
                return Verdict(target, False, Reason.ALREADY_INSIDE)
            pending = state if state.pending is not None else msgspec.structs.replace(state, pending=event.ts)
            return Verdict(target, False, Reason.DWELL_RUNNING, until=_until(service, pending))
        found = causes(condition, event, counted)
        outside = service.tos is not Tos.EVERY and all(map(is_about_places, found))
        return Verdict(target, False, Reason.ALREADY_OUTSIDE if outside else Reason.CONDITION_FALSE, parts=parts)

    def _parts(self, condition: Condition, event: Event, places: Places) -> tuple[str, ...]:
        names = names_of(self._world, self._entry, self._thing.oid)
        return tuple(format_cause(each, names) for each in causes(condition, event, places)[:_MOST_CAUSES])


def _message_verdicts(work: Work, entry: SubscriptionEntry, event: Event) -> _Made:
    """A message without an object is nobody's: it is judged as if the subscriber had sent it."""
    if entry.subjects is None:
        for bound in work.world.rulebook.bounds_for_messages(entry):
            yield bound.target, lambda bound=bound: _of_message(work, entry, event, bound.target, bound.condition)  # type: ignore[misc]


def _of_message(work: Work, entry: SubscriptionEntry, event: Event, target: str, condition: Condition) -> Verdict:
    world, service, shown = work.world, entry.service, target_name(work.world, entry, target)
    if entry.paused:
        return Verdict(shown, False, Reason.PAUSED)
    if is_over(service, event.ts):
        return Verdict(shown, False, Reason.EXPIRED)
    value = truth(condition, event, world)
    if not value:
        names = names_of(world, entry, "")
        parts = tuple(format_cause(each, names) for each in causes(condition, event, world)[:_MOST_CAUSES])
        return Verdict(shown, False, Reason.CONDITION_UNKNOWN if value is None else Reason.CONDITION_FALSE, parts=parts)
    if service.dwell_s:
        return Verdict(shown, False, Reason.DWELL_RUNNING)
    mode = Mode.MATCH if service.tos is Tos.EVERY else Mode.ENTER
    told = service.tells(mode) and world.allows(entry.subscriber_id, entry.subscriber_id, OPERATION_OF[mode])
    return Verdict(shown, told, Reason.FIRED if told else Reason.MODE_NOT_ASKED, (mode,))


def _until(service: Service, state: OnceState) -> str | None:
    due: Instant | None = deadline(service, state)
    return None if due is None else format_instant(due)
