"""What one event, or the passing of time, does to the bindings of one object.

The device runs this for itself and the server for objects without an agent, so that a subscriber can't tell who
evaluated. Nothing is changed in place: what comes back is the changed states and the edges, to be stored in one
transaction, and only then to be believed.

Two rules are the caller's. An event that is not newer than the newest one of its object never comes here. And when
`expire` has brought an edge, its instant counts as the newest: an event from before it would make a leave older
than its enter.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from matcher.anchors import Anchor, Counting, counts_as_inside, passages
from matcher.events import Event
from matcher.once import (
    Edge,
    Instant,
    OnceState,
    Service,
    Tos,
    advance,
    deadline,
    is_finished,
    is_over,
    remember_inside,
    step,
)
from matcher.places import Places
from matcher.selector.tree import Condition
from matcher.selector.truth import truth
from matcher.views import see
from zones.coarsen import Precision

__all__ = ["Folded", "Happening", "Rule", "expire", "fold", "next_deadline"]

K = TypeVar("K", bound=Hashable)

_ONCE = Service()
_UNTOUCHED = OnceState()


@dataclass(frozen=True, slots=True)
class Rule(Generic[K]):
    """A binding with everything needed to evaluate it; `key` is whatever the caller knows it by.

    It has an `anchor` if its service looks closer at the boundary of its zone.
    """

    key: K
    condition: Condition
    service: Service = _ONCE
    precision: Precision = Precision.EXACT
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Happening(Generic[K]):
    """An edge of one binding and the event that goes with it, as the binding's view shows it.

    A dwell's enter goes with the event that held when the dwell ended. If that one is not known (the dwell was
    begun by another evaluator), the event has no loc. The edges of a crossing go with the later event, at the place
    where the object was then.
    """

    key: K
    edge: Edge
    event: Event


@dataclass(frozen=True, slots=True)
class Folded(Generic[K]):
    """The states that changed, and the edges in the order in which they happened."""

    states: dict[K, OnceState] = field(default_factory=dict)
    edges: list[Happening[K]] = field(default_factory=list)


def fold(
    rules: Iterable[Rule[K]], states: Mapping[K, OnceState], last: Event | None, event: Event, places: Places
) -> Folded[K]:
    """Fold one event into the states: first the time up to it, in which `last` held, then the event itself.

    A binding whose truth stays as it was costs one call of `truth`.
    """
    rules = rules if isinstance(rules, (list, tuple)) else list(rules)
    folded = expire(rules, states, last, event.ts)
    ts = event.ts
    shown, precision, is_sorted = event, Precision.EXACT, True
    for rule in rules:
        key, service = rule.key, rule.service
        state = folded.states.get(key) or states.get(key, _UNTOUCHED)
        if is_finished(service, state):
            continue
        if rule.precision is not precision:
            shown, precision = see(event, rule.precision), rule.precision
        if rule.anchor is not None:
            before = None if last is None else see(last, precision)
            after, happenings = _fold_at_boundary(rule, rule.anchor, state, before, shown, places)
            if after != state:
                folded.states[key] = after
                folded.edges.extend(happenings)
                is_sorted = is_sorted and all(happening.edge.ts == ts for happening in happenings)
            continue
        verdict = truth(rule.condition, shown, places)
        if verdict is None:
            continue
        if verdict is state.holds and state.pending is None and service.tos is not Tos.EVERY:
            continue
        after, edges = step(service, state, verdict, ts)
        if after is not state:
            folded.states[key] = after
            folded.edges.extend(Happening(key, edge, shown) for edge in edges)
    if not is_sorted:
        folded.edges.sort(key=_instant)
    return folded


def expire(rules: Iterable[Rule[K]], states: Mapping[K, OnceState], last: Event | None, now: Instant) -> Folded[K]:
    """Let time pass up to and including `now` with no new event: dwells that end bring their enters."""
    folded: Folded[K] = Folded()
    for rule in rules:
        state = states.get(rule.key)
        if state is None or state.pending is None:
            continue
        after, edges = advance(rule.service, state, now)
        if after is not state:
            folded.states[rule.key] = after
            for edge in edges:
                held = Event(ts=edge.ts) if last is None else see(last, rule.precision)
                folded.edges.append(Happening(rule.key, edge, held))
    folded.edges.sort(key=_instant)
    return folded


def next_deadline(rules: Iterable[Rule[K]], states: Mapping[K, OnceState]) -> Instant | None:
    """When `expire` has something to do next, if no event comes before."""
    dues = []
    for rule in rules:
        state = states.get(rule.key)
        if state is not None and state.pending is not None:
            due = deadline(rule.service, state)
            if due is not None:
                dues.append(due)
    return min(dues, default=None)


def _fold_at_boundary(
    rule: Rule[K], anchor: Anchor, state: OnceState, before: Event | None, event: Event, places: Places
) -> tuple[OnceState, list[Happening[K]]]:
    """One event for a binding with a dead band, or with crossings; both events as the view shows them."""
    key, service, after = rule.key, rule.service, state
    inside, seen = None, places
    if service.has_dead_band and event.loc is not None:
        inside = counts_as_inside(anchor, service, state.was_inside, event)
        seen = Counting(places, anchor.zone, inside)
    verdict = truth(rule.condition, event, seen)
    happenings: list[Happening[K]] = []
    was_outside = not state.is_live and service.tos is not Tos.EVERY
    if service.crossing and before is not None and was_outside and verdict is False:
        for passage in passages(anchor, service, before, event):
            if not truth(rule.condition, event, Counting(places, anchor.zone, True)):
                break  # outside or inside, the other terms do not hold
            after, entered = step(service, after, True, passage.begin)
            after, dwelt = advance(service, after, passage.end)
            after, left = step(service, after, False, passage.end)
            happenings += [Happening(key, edge, passage.entering) for edge in entered]
            happenings += [Happening(key, edge, passage.at(edge.ts)) for edge in dwelt]
            happenings += [Happening(key, edge, passage.leaving) for edge in left]
    after, edges = step(service, after, verdict, event.ts)
    happenings += [Happening(key, edge, event) for edge in edges]
    if inside is not None and not is_finished(service, after) and not is_over(service, event.ts):
        after = remember_inside(after, inside)
    return after, happenings


def _instant(happening: Happening[K]) -> Instant:
    return happening.edge.ts
