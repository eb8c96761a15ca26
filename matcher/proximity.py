"""Bindings that depend on where other objects are: the location cache and the object trigger graph.

The cache has the newest event of each object. The graph has an edge between two objects for each binding that speaks of
both, so an event is compared with the places of those it shares an edge with and of nobody else: what it costs depends
on the edges of the one that moves.

A binding belongs to its left object. It is evaluated at each event of that object and of the others, always on the left
object's newest event, dated the instant of the event that came. A place older than the subscription's `stale_s` at that
instant is not known any more. An event that is dated before the newest one of its binding's other objects moves its
object and decides nothing: the past of a pair is not looked at, or a leave could be older than its enter.

Nearly every binding is nothing but one pair and one distance, and stays as it is. Those are passed over by a comparison
of two numbers (`zones.nearness`); the rest goes through `truth` and the state machine as everything does.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import Edge, Instant, OnceState, Tos, advance, deadline, is_finished, step
from matcher.places import Places
from matcher.planar import PlanarRegion
from matcher.selector.conditions import others_in
from matcher.selector.tree import Near
from matcher.selector.truth import truth
from matcher.views import see
from zones.coarsen import Precision
from zones.nearness import Limit, Spot
from zones.shapes import Point

__all__ = ["Nearing", "Nearings", "Proximity", "Sighting", "Tie"]

K = TypeVar("K")

_UNTOUCHED = OnceState()
_NO_VIEWS: Mapping[str, Precision] = {}


class Sighting(Spot):
    """The newest event of an object, as it is seen at one precision."""

    __slots__ = ("event", "ts")

    def __init__(self, event: Event) -> None:
        super().__init__(event.loc)
        self.event = event
        self.ts = event.ts

    def at(self, precision: Precision) -> "Sighting":
        return self if precision is Precision.EXACT else Sighting(see(self.event, precision))


class Tie(Generic[K]):
    """A binding with its objects. `target` is the other object whose place goes with what is told, "" if none does.

    `views` has the precisions of others that are not seen exactly; that of the left object is the rule's.
    """

    __slots__ = ("is_idle", "is_quiet", "key", "left", "limit", "others", "rule", "stale_ms", "target", "views")

    def __init__(
        self, rule: Rule[K], left: str, *, target: str = "", views: Mapping[str, Precision] = _NO_VIEWS
    ) -> None:
        self.rule = rule
        self.key = rule.key
        self.left = left
        self.target = target
        self.views = views
        self.others = tuple(dict.fromkeys((*others_in(rule.condition), *((target,) if target else ()))))
        self.stale_ms = rule.service.stale_ms
        condition = rule.condition
        is_exact = rule.precision is Precision.EXACT and not views
        is_pair = isinstance(condition, Near) and self.others == condition.others and len(self.others) == 1
        # Only for one pair and nothing else; everything else is decided by `truth`.
        self.limit = Limit(condition.metres) if isinstance(condition, Near) and is_pair and is_exact else None
        self.is_quiet = rule.service.tos is not Tos.EVERY  # nothing is told while the truth stays
        self.is_idle = False  # it is known not to hold, and no dwell is running: being far away changes nothing

    @property
    def objects(self) -> tuple[str, ...]:
        """Everybody whose events it is evaluated at."""
        return (self.left, *self.others)


@dataclass(frozen=True, slots=True)
class Nearing(Generic[K]):
    """An edge, the left object's event that goes with it, and where the target was."""

    key: K
    edge: Edge
    event: Event
    target_loc: Point | None


@dataclass(frozen=True, slots=True)
class Nearings(Generic[K]):
    """The states that changed, and the edges in the order in which they happened."""

    states: dict[K, OnceState] = field(default_factory=dict)
    edges: list[Nearing[K]] = field(default_factory=list)


class _Node(Generic[K]):
    """An object in the graph: where it was seen last, and its ties with the other side of each (of a pair)."""

    __slots__ = ("here", "ties")

    def __init__(self) -> None:
        self.here: Sighting | None = None
        self.ties: dict[K, tuple[Tie[K], _Node[K]]] = {}


class Proximity(Generic[K]):
    """The cache and the graph. States are the caller's, as they are for `matcher.evaluation`, but what `fold` and
    `expire` answer has to be taken over before the next call.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._nodes: dict[str, _Node[K]] = {}
        self._dwells = 0  # how many of all ties have one
        self._limits: dict[float, Limit] = {}
        self._judged: tuple[Tie[K], Instant] | None = None

    # --- the graph -----------------------------------------------------------------------------------

    def link(self, tie: Tie[K]) -> None:
        """Add the edges of a binding. It replaces none: unlink that first."""
        self._dwells += bool(tie.rule.service.dwell_s)
        tie.is_idle = False
        for mover in tie.objects:
            partner = tie.others[0] if mover == tie.left and tie.others else tie.left
            self._node(mover).ties[tie.key] = (tie, self._node(partner))

    def unlink(self, tie: Tie[K]) -> None:
        """Remove its edges. Where somebody was whom nobody is compared with any more is forgotten."""
        self._dwells -= bool(tie.rule.service.dwell_s)
        for mover in tie.objects:
            ties = self._nodes[mover].ties
            del ties[tie.key]
            if not ties:
                del self._nodes[mover]

    def ties(self, mover: str) -> Iterator[Tie[K]]:
        """The bindings that an event of this object can change."""
        node = self._nodes.get(mover)
        return iter(()) if node is None else (tie for tie, _ in node.ties.values())

    def is_linked(self, mover: str) -> bool:
        """Whether it shares an edge with anybody."""
        node = self._nodes.get(mover)
        return node is not None and bool(node.ties)

    def _node(self, mover: str) -> _Node[K]:
        node = self._nodes.get(mover)
        if node is None:
            node = self._nodes[mover] = _Node()
        return node

    # --- the cache -----------------------------------------------------------------------------------

    def place(self, mover: str, event: Event) -> None:
        """Where the object was last, with nothing evaluated: what a restart begins with."""
        self._node(mover).here = Sighting(event)

    def sighting(self, mover: str) -> Sighting | None:
        node = self._nodes.get(mover)
        return None if node is None else node.here

    # --- events and time -----------------------------------------------------------------------------

    def fold(self, mover: str, event: Event, states: Mapping[K, OnceState]) -> Nearings[K] | None:
        """Fold one event of one object into the states of its bindings; None if the event is late."""
        node, ts = self._node(mover), event.ts
        if node.here is not None and ts <= node.here.ts:
            return None
        folded = self.expire(self.ties(mover), states, ts) if self._dwells else Nearings()
        here = node.here = Sighting(event)
        x, y, z = here.x, here.y, here.z
        known = states.get
        for tie, partner in node.ties.values():
            limit = tie.limit
            if limit is None:
                self._step(tie, ts, self._truth(tie, ts), states, folded)
                continue
            there = partner.here
            if there is None:
                continue
            age = ts - there.ts
            if age < 0 or age > tie.stale_ms:
                continue
            dx, dy, dz = x - there.x, y - there.y, z - there.z
            chord = dx * dx + dy * dy + dz * dz
            if chord >= limit.far:
                if tie.is_idle:
                    continue
                verdict: bool | None = False
            elif chord < limit.near:
                verdict = True
            else:
                verdict = limit.holds_exactly(here, there)
                if verdict is None:
                    continue
            state = known(tie.key, _UNTOUCHED)
            tie.is_idle = not state.holds and state.pending is None
            if verdict is state.holds and state.pending is None and tie.is_quiet:
                continue
            self._step(tie, ts, verdict, states, folded)
        return folded

    def expire(self, ties: Iterable[Tie[K]], states: Mapping[K, OnceState], now: Instant) -> Nearings[K]:
        """Let time pass up to and including `now` with no new event: dwells that end bring their enters."""
        folded: Nearings[K] = Nearings()
        for tie in ties:
            state = states.get(tie.key)
            if state is None or state.pending is None:
                continue
            after, edges = advance(tie.rule.service, state, now)
            if after is not state:
                tie.is_idle = False
                folded.states[tie.key] = after
                folded.edges.extend(self._told(tie, edge) for edge in edges)
        folded.edges.sort(key=_instant)
        return folded

    def next_deadline(self, ties: Iterable[Tie[K]], states: Mapping[K, OnceState]) -> Instant | None:
        """When `expire` has something to do next, if no event comes before."""
        dues = (deadline(tie.rule.service, states[tie.key]) for tie in ties if tie.key in states)
        return min((due for due in dues if due is not None), default=None)

    def _step(
        self,
        tie: Tie[K],
        ts: Instant,
        verdict: bool | None,
        states: Mapping[K, OnceState],
        folded: Nearings[K],
    ) -> None:
        state = folded.states.get(tie.key) or states.get(tie.key, _UNTOUCHED)
        service = tie.rule.service
        if verdict is None or is_finished(service, state) or (state.since is not None and ts < state.since):
            return
        after, edges = step(service, state, verdict, ts)
        if after is not state:
            tie.is_idle = False  # looked up again when it matters
            folded.states[tie.key] = after
            folded.edges.extend(self._told(tie, edge) for edge in edges)

    def _told(self, tie: Tie[K], edge: Edge) -> Nearing[K]:
        left, other = self.sighting(tie.left), self.sighting(tie.target)
        event = Event(ts=edge.ts) if left is None else left.at(tie.rule.precision).event
        place = None if other is None else other.at(tie.views.get(tie.target, Precision.EXACT)).point
        return Nearing(tie.key, edge, event, place)

    # --- truth ---------------------------------------------------------------------------------------

    def judge(self, tie: Tie[K], ts: Instant) -> bool | None:
        """What a binding's condition is at that instant; from then on `is_near` speaks of this binding."""
        return self._truth(tie, ts)

    def _truth(self, tie: Tie[K], ts: Instant) -> bool | None:
        left = self.sighting(tie.left)
        if left is None or any(self._is_ahead(mover, ts) for mover in tie.objects):
            return None
        event = left.at(tie.rule.precision).event
        self._judged = (tie, ts)
        return truth(tie.rule.condition, event if event.ts == ts else msgspec.structs.replace(event, ts=ts), self)

    def _is_ahead(self, mover: str, ts: Instant) -> bool:
        sighting = self.sighting(mover)
        return sighting is not None and sighting.ts > ts

    def is_near(self, others: tuple[str, ...], metres: float) -> bool | None:
        """Whether the left object of the binding in question is that near to one of these (`matcher.places`)."""
        assert self._judged is not None
        tie, ts = self._judged
        left = self._fresh(tie, tie.left, tie.rule.precision, ts)
        limit = self._limits.get(metres)
        if limit is None:
            limit = self._limits[metres] = Limit(metres)
        result: bool | None = False
        for each in others:
            other = self._fresh(tie, each, tie.views.get(each, Precision.EXACT), ts)
            verdict = None if left is None or other is None else limit.holds(left, other)
            if verdict:
                return True
            if verdict is None:
                result = None
        return result

    def _fresh(self, tie: Tie[K], mover: str, precision: Precision, ts: Instant) -> Sighting | None:
        sighting = self.sighting(mover)
        return None if sighting is None or ts - sighting.ts > tie.stale_ms else sighting.at(precision)

    def covers(self, zone: str, point: Point) -> bool:
        """Whether the point is in that zone (`matcher.places`)."""
        return self._places.covers(zone, point)

    def region(self, zone: str) -> PlanarRegion:
        """That zone as relations see it (`matcher.places`)."""
        return self._places.region(zone)


def _instant(nearing: Nearing[K]) -> Instant:
    return nearing.edge.ts
