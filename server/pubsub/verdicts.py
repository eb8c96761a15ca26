"""Why an event was told, or was not.

For an event that somebody brings, the bindings are folded as they would be if it were published, on a copy: the same
code decides here and there, and nothing is kept.

Asking must not tell more than being told does. An object of which a subscriber may know nothing is not there. Whether
it is inside is for those who are told of enters and of leaves; when it was last seen, whether it is waiting in a
dwell, and which way it came is for those who may know every position, or own it. For anybody else an event is judged
as if it were the object's next one, and a dwell as if it began with it. How far others are from a place that one makes
up is for the owner alone, who could go there as well.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from itertools import chain, islice

import msgspec

from agent_sdk.protocol.evaluators import Evaluator
from matcher.anchors import Counting, counts_as_inside
from matcher.evaluation import Rule, fold
from matcher.events import Event
from matcher.instants import format_instant
from matcher.once import Edge, Instant, Mode, OnceState, Service, Tos, deadline, interrupted, is_finished, is_over
from matcher.places import Places
from matcher.proximity import Proximity, Tie
from matcher.selector.causes import causes, format_cause, is_about_places
from matcher.selector.conditions import depends_on_others, zones_in
from matcher.selector.tree import Condition
from matcher.selector.truth import truth
from privacy.policies import Operation
from server.controller.plans import evaluation_of
from server.errors import ObjectNotFound
from server.pubsub.entries import (
    OPERATION_OF,
    BindingKey,
    ObjectEntry,
    SubscriptionEntry,
)
from server.pubsub.explaining import knows_of, may_know_distance
from server.pubsub.naming import names_of, target_name
from server.pubsub.pages import Page, after_of, cursor_of
from server.pubsub.publishing import refuse_future
from server.pubsub.subscriptions import find_subscription
from server.pubsub.work import Work
from server.store.accounts import Account
from zones.names import fold as fold_name

__all__ = ["ExplainedEvent", "Reason", "Verdict", "explain_event"]

_START = OnceState()
_MOST_CAUSES = 20


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


def explain_event(work: Work, account: Account, name: str, event: Event, page: Page) -> ExplainedEvent:
    """What this event would do to each binding of its object, if it came now. Nothing is changed."""
    entry = find_subscription(work, account, name)
    refuse_future(event.ts, work.now, work.settings.clock_ahead_s)
    if not event.oid:
        made = _message_verdicts(work, entry, event)
    else:
        thing = work.world.object(event.oid)
        if thing is None or not knows_of(work.world, thing.owner_id, account.user_id):
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
    is_meant = entry.subjects is None or fold_name(thing.oid) in entry.subjects
    by_place = world.rulebook.bindings_of(thing.id, entry) if is_meant else ()
    for rule in chain(by_place, world.nearby.rules(thing.id)):
        if rule.key.subscription_id == entry.id:
            yield rule.key.target, partial(asking.verdict, rule, event)


class _Asking:
    """One subscriber's question about one object."""

    def __init__(self, work: Work, entry: SubscriptionEntry, thing: ObjectEntry) -> None:
        world, asker_id, owner_id = work.world, entry.subscriber_id, thing.owner_id
        self._work, self._world, self._entry, self._thing = work, world, entry, thing
        self._is_owner = owner_id == asker_id
        self._follows = world.allows(owner_id, asker_id, Operation.POSITION)
        # `first` has one edge, which was told if there was one.
        self._knows_edges = (
            self._follows
            or entry.service.tos is Tos.FIRST
            or all(world.allows(owner_id, asker_id, operation) for operation in (Operation.ENTER, Operation.LEAVE))
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
            state = interrupted(state) if self._knows_edges else _START
        last = thing.last if self._follows else None
        edges = [each.edge for each in fold([rule], {rule.key: state}, last, event, self._world).edges]
        return self._judged(rule, target, state, event, edges, self._world)

    def _may_be_told(self, rule: Rule[BindingKey]) -> bool:
        world, entry, owner_id = self._world, self._entry, self._thing.owner_id
        others = depends_on_others(rule.condition)
        by_place = any(True for _ in zones_in(rule.condition)) or not others
        return (not by_place or world.allows_all(owner_id, entry)) and (
            not others or may_know_distance(world, owner_id, entry.subscriber_id, entry.service)
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
            yield bound.target, partial(_of_message, work, entry, event, bound.target, bound.condition)


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
