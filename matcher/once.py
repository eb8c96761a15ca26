"""Which changes of a binding's truth are worth telling.

There is no clock and no storage in here: the state is a value and time is an argument. So one trace gives the
same edges on a device, on the server and in a simulation, and surviving a restart is only a matter of saving the
value. Late events never come this far: the object's log has dropped them.

Every edge is numbered, n = 1, 2, ..., also one that `modes` hides from the subscriber: an evaluator that takes
over has to know about it. Whether it may be told is `Service.tells`.
"""

from enum import StrEnum

import msgspec

__all__ = [
    "Edge",
    "Instant",
    "Mode",
    "OnceState",
    "Service",
    "Tos",
    "advance",
    "deadline",
    "follow",
    "interrupted",
    "is_finished",
    "is_over",
    "remember_inside",
    "step",
]

Instant = int  # milliseconds since 1970-01-01T00:00:00Z


class Tos(StrEnum):
    """Type of service."""

    ONCE = "once"
    EVERY = "every"
    FIRST = "first"


class Mode(StrEnum):
    ENTER = "enter"
    LEAVE = "leave"
    MATCH = "match"


class Service(msgspec.Struct, frozen=True, omit_defaults=True):
    """The type of service of a subscription with the options that decide on edges."""

    tos: Tos = Tos.ONCE
    modes: tuple[Mode, ...] = (Mode.ENTER, Mode.LEAVE)
    dwell_s: float = 0.0
    expires: Instant | None = None
    stale_s: float = 300.0  # a place older than this says nothing about a distance; of no meaning to a device
    hysteresis_m: float = 0.0  # the dead band around the boundary of the binding's zone
    unc_factor: float = 0.0  # and how many times the event's `unc` widens it
    crossing: bool = False  # the way between two events counts

    @property
    def has_dead_band(self) -> bool:
        return self.hysteresis_m > 0 or self.unc_factor > 0

    def tells(self, mode: Mode) -> bool:
        """Whether the subscriber asked for edges of this mode."""
        return mode in self.modes or mode is Mode.MATCH

    @property
    def dwell_ms(self) -> int:
        return round(self.dwell_s * 1000)

    @property
    def stale_ms(self) -> int:
        return round(self.stale_s * 1000)


class OnceState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is remembered of a binding between two events."""

    holds: bool = False
    n: int = 0  # numbers the edges; part of each notification's id
    since: Instant | None = None  # when `holds` became true, as dated by its enter
    visit: int | None = None  # the n of that enter
    pending: Instant | None = None  # a dwell has been running since then
    inside: bool | None = None  # with a dead band: whether the zone counts as entered, if that is not what `holds` says

    @property
    def was_inside(self) -> bool:
        """Whether the zone of a binding with a dead band counted as entered."""
        return self.holds if self.inside is None else self.inside

    @property
    def is_live(self) -> bool:
        """Whether an event far away, or the passing of time, can change it."""
        return self.holds or self.pending is not None or self.inside is not None


class Edge(msgspec.Struct, frozen=True):
    """One change worth numbering; `visit` and `since` tell a leave about its enter."""

    n: int
    mode: Mode
    ts: Instant
    visit: int | None = None
    since: Instant | None = None


def step(service: Service, state: OnceState, truth: bool | None, ts: Instant) -> tuple[OnceState, tuple[Edge, ...]]:
    """Fold the truth at one event into the state; UNKNOWN changes nothing.

    Time that has passed since the last event is not looked at: call `advance` up to `ts` first, with the event
    that held until then, because a dwell that ended in between belongs to that event.
    """
    if truth is None or is_over(service, ts) or is_finished(service, state):
        return state, ()
    if service.tos is Tos.EVERY:
        return _remembering(service, state, _matched(state, truth, ts))
    if state.holds:
        return (state, ()) if truth else _remembering(service, state, _left(state, ts))
    if not truth:
        return (state if state.pending is None else _without_dwell(state)), ()
    if service.dwell_ms == 0:
        return _remembering(service, state, _entered(state, ts))
    if state.pending is None:
        return msgspec.structs.replace(state, pending=ts), ()
    return state, ()


def advance(service: Service, state: OnceState, now: Instant) -> tuple[OnceState, tuple[Edge, ...]]:
    """Let time pass up to and including `now`: a dwell whose deadline has come ends in an enter dated then."""
    due = deadline(service, state)
    if due is None or due > now:
        return state, ()
    return _remembering(service, state, _entered(state, due))


def deadline(service: Service, state: OnceState) -> Instant | None:
    """When `advance` has something to do next, if nothing else happens."""
    if state.pending is None:
        return None
    due = state.pending + service.dwell_ms
    return None if is_over(service, due) else due


def follow(service: Service, state: OnceState, mode: Mode, ts: Instant) -> tuple[OnceState, Edge]:
    """Repeat an edge that another evaluator decided, so that its state is known here too.

    What counts as inside is not known here then; it is taken to be what the edge says.
    """
    if mode is Mode.ENTER:
        state, (edge,) = _entered(state, ts)
    elif mode is Mode.LEAVE:
        state, (edge,) = _left(state, ts)
    else:
        state, (edge,) = _matched(state, True, ts)
    return state, edge


def remember_inside(state: OnceState, inside: bool) -> OnceState:
    """The same state, from now on with the zone counted like this."""
    differs = None if inside is state.holds else inside
    return state if differs is state.inside else msgspec.structs.replace(state, inside=differs)


def interrupted(state: OnceState) -> OnceState:
    """The state to keep when a binding is paused, dropped, handed over or given another condition.

    A dwell that ran on would end in an edge that no event caused under the new condition. And what counted as inside
    was measured at another boundary, or is no longer followed: what is left of it is the last edge.
    """
    if state.pending is None and state.inside is None:
        return state
    return msgspec.structs.replace(state, pending=None, inside=None)


def is_finished(service: Service, state: OnceState) -> bool:
    """`first` has nothing more to say after its one enter."""
    return service.tos is Tos.FIRST and state.n > 0


def is_over(service: Service, ts: Instant) -> bool:
    """Whether the subscription has expired by then."""
    return service.expires is not None and ts >= service.expires


def _entered(state: OnceState, ts: Instant) -> tuple[OnceState, tuple[Edge, ...]]:
    n = state.n + 1
    return OnceState(holds=True, n=n, since=ts, visit=n), (Edge(n, Mode.ENTER, ts),)


def _left(state: OnceState, ts: Instant) -> tuple[OnceState, tuple[Edge, ...]]:
    n = state.n + 1
    return OnceState(holds=False, n=n), (Edge(n, Mode.LEAVE, ts, state.visit, state.since),)


def _matched(state: OnceState, truth: bool, ts: Instant) -> tuple[OnceState, tuple[Edge, ...]]:
    if not truth:
        return state, ()
    n = state.n + 1
    return OnceState(n=n), (Edge(n, Mode.MATCH, ts),)


def _remembering(
    service: Service, before: OnceState, stepped: tuple[OnceState, tuple[Edge, ...]]
) -> tuple[OnceState, tuple[Edge, ...]]:
    """An edge says nothing about what counts as inside: other terms may have caused it."""
    after, edges = stepped
    return remember_inside(after, before.was_inside) if service.has_dead_band else after, edges


def _without_dwell(state: OnceState) -> OnceState:
    return msgspec.structs.replace(state, pending=None)
