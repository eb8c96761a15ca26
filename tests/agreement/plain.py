"""What subscribers must be told, worked out as simply as DESIGN says it, with nothing of the packages' own machinery.

Truth comes from the plain evaluator of the selector tests, point-in-zone from `zones`; bindings, edges, dwells and what
edits do to them are written down once more here. There is no device and no server in it: fixes go in, lists come out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from matcher.event_format import format_event
from matcher.events import Event
from matcher.globe import relate_on_globe
from matcher.instants import format_instant
from matcher.once import Instant, Mode, Tos
from matcher.planar import from_shape
from matcher.selector import tree as t
from matcher.selector.format import format_zone_ref
from matcher.selector.parser import parse_selector
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID
from tests.matcher.reference import anchor_of, evaluate, filters, is_anchor, speaks_of
from zones.boundaries import boundary_of
from zones.covers import prepare
from zones.crossings import along, stretches_in
from zones.shapes import Point, Shape
from zones.validation import check_shape

__all__ = ["Plain", "readable"]

Told = dict[tuple[str, str | None], list[dict[str, Any]]]


def readable(notifications: list[dict[str, Any]]) -> Told:
    """Notifications by subscription and target, in order, with `visit` as the place of the enter in its list."""
    lists: Told = {}
    for each in notifications:
        one = {name: value for name, value in each.items() if name != "offset"}
        found = lists.setdefault((one["subscription"], one["target"]), [])
        found.append(one)
    for found in lists.values():
        places = {one["id"]: place for place, one in enumerate(found)}
        assert len(places) == len(found), "an id is used twice"
        for one in found:
            del one["id"]
            if "visit" in one:
                one["visit"] = places.get(one["visit"])
    return lists


@dataclass
class _Points:
    """A zone as the plain evaluator asks for it."""

    shape: Shape

    def __post_init__(self) -> None:
        self.area, self.region = prepare(self.shape), from_shape(self.shape)
        self.boundary = boundary_of(self.shape)

    def __contains__(self, point: Point) -> bool:
        return self.area.covers(point)

    def relation_of(self, shape: Shape) -> str:
        return str(relate_on_globe(from_shape(shape), self.region))


@dataclass
class _Counted:
    """A zone that counts as entered, or not, wherever the point is."""

    points: _Points
    inside: bool

    def __contains__(self, point: Point) -> bool:
        return self.inside

    def relation_of(self, shape: Shape) -> str:
        return self.points.relation_of(shape)


@dataclass
class _Zone:
    uid: str
    version: int
    points: _Points
    tags: frozenset[str]
    changed: Instant = 0


@dataclass
class _Subscription:
    uid: int
    new: NewSubscription
    selector: Any
    inline: dict[t.ZoneRef, dict[str, _Points]]
    who: str
    changed: Instant

    @property
    def modes(self) -> tuple[Mode, ...]:
        if self.new.tos is Tos.ONCE:
            return self.new.modes or (Mode.ENTER, Mode.LEAVE)
        return (Mode.MATCH,) if self.new.tos is Tos.EVERY else (Mode.ENTER,)

    @property
    def needed(self) -> tuple[Mode, ...]:
        """What must be granted: with NOT an enter tells that somebody left, so it needs both."""
        negates = any(
            isinstance(node, t.Within | t.Relate) and (negated or not is_anchor(node))
            for terms in filters(self.selector)
            for node, negated in terms
        )
        return (Mode.ENTER, Mode.LEAVE) if negates and self.new.tos is not Tos.EVERY else self.modes


@dataclass
class _State:
    holds: bool = False
    edges: int = 0
    since: Instant = 0
    visit: int | None = None
    pending: Instant | None = None
    inside: bool | None = None  # as counted with a dead band; None: as the last edge says


@dataclass
class _Binding:
    """(subscription, target) now: it holds if one of the parts does."""

    subscription: _Subscription
    target: str
    parts: list[tuple[Any, Any]] = field(default_factory=list)  # (condition, its anchor)


@dataclass
class Plain:
    zones: dict[str, _Zone] = field(default_factory=dict)
    subscriptions: dict[str, _Subscription] = field(default_factory=dict)
    granted: frozenset[Mode] = frozenset(Mode)  # by alice, whose object it is, to anybody else
    clock: Callable[[], Instant] = lambda: 0
    granted_since: Instant = 0
    states: dict[tuple[int, str], _State] = field(default_factory=dict)
    told: Told = field(default_factory=dict)
    newest: Instant | None = None
    last: Event | None = None
    _uids: int = 0

    # --- edits ---------------------------------------------------------------------------------------

    def put_zone(self, name: str, shape: Shape, tags: tuple[str, ...] = ()) -> None:
        before = self._tasks()
        old = self.zones.get(name)
        points = _Points(check_shape(shape))
        uid, version = (f"zone {self._uid()}", 1) if old is None else (old.uid, old.version + 1)
        self.zones[name] = _Zone(uid, version, points, frozenset(tags), self.clock())
        self._end_dwells(before)

    def delete_zone(self, name: str) -> None:
        before = self._tasks()
        gone = self.zones.pop(name).uid
        self.states = {key: state for key, state in self.states.items() if key[1] != gone}
        self._end_dwells(before)

    def subscribe(self, new: NewSubscription, who: str) -> None:
        before = self._tasks()
        old = self.subscriptions.get(new.name)
        selector = parse_selector(new.selector)
        inline = {
            ref: {format_zone_ref(ref): _Points(check_shape(ref.shape))}
            for ref in _refs(selector)
            if isinstance(ref, t.InlineZone)
        }
        changed = old.changed if old is not None and old.new == new else self.clock()
        uid = old.uid if old else self._uid()
        self.subscriptions[new.name] = _Subscription(uid, new, selector, inline, who, changed)
        self._end_dwells(before)

    def unsubscribe(self, name: str) -> None:
        gone = self.subscriptions.pop(name).uid
        self.states = {key: state for key, state in self.states.items() if key[0] != gone}

    def grant(self, modes: frozenset[Mode]) -> None:
        before = self._tasks()
        if modes != self.granted:
            self.granted_since = self.clock()
        self.granted = modes
        self._end_dwells(before)

    # --- what happens --------------------------------------------------------------------------------

    def event(self, event: Event) -> bool:
        """Whether it was news."""
        if self.newest is not None and event.ts <= self.newest:
            return False
        self._time(event.ts)
        for binding in self._bindings():
            self._step(binding, event)
        self.newest, self.last = event.ts, event
        return True

    def let_time_pass(self, now: Instant) -> None:
        ended = self._time(now)
        if ended and self.newest is not None:
            self.newest = max(self.newest, *ended)

    def _time(self, now: Instant) -> list[Instant]:
        ended = []
        for binding in self._bindings():
            due = self._due(binding, now)
            if due is not None:
                assert self.last is not None
                state = self._state(binding)
                was = state.holds if state.inside is None else state.inside
                self._enter(binding, due, self.last)
                state.inside = was
                ended.append(due)
        return ended

    def _due(self, binding: _Binding, now: Instant) -> Instant | None:
        """When a dwell has ended by now."""
        new, pending = binding.subscription.new, self._state(binding).pending
        due = None if pending is None else pending + round(new.dwell_s * 1000)
        return due if due is not None and due <= now and (new.expires is None or due < new.expires) else None

    def _step(self, binding: _Binding, event: Event) -> None:
        new, state = binding.subscription.new, self._state(binding)
        inside = self._count_inside(binding, event)
        truth = self._truth(binding, event, inside)
        is_over = new.expires is not None and event.ts >= new.expires
        if new.crossing and truth is False and not (state.holds or state.inside) and state.pending is None:
            self._cross(binding, event)
        self._take(binding, event, truth)
        if inside is not None and not is_over:
            state.inside = inside

    def _take(self, binding: _Binding, event: Event, truth: bool | None) -> None:
        new, state = binding.subscription.new, self._state(binding)
        is_over = new.expires is not None and event.ts >= new.expires
        if truth is None or is_over or (new.tos is Tos.FIRST and state.edges > 0):
            return
        if new.tos is Tos.EVERY:
            if truth:
                state.edges += 1
                state.holds, state.pending = False, None
                self._tell(binding, Mode.MATCH, event.ts, event)
        elif truth and not state.holds:
            if new.dwell_s == 0:
                self._enter(binding, event.ts, event)
            elif state.pending is None:
                state.pending = event.ts
        elif not truth:
            state.pending = None
            if state.holds:
                state.holds = False
                state.edges += 1
                self._tell(
                    binding, Mode.LEAVE, event.ts, event, visit=state.visit, duration_s=(event.ts - state.since) / 1000
                )

    def _count_inside(self, binding: _Binding, event: Event) -> bool | None:
        """None if there is no dead band, or no place."""
        new, state, points = binding.subscription.new, self._state(binding), self._points(binding)
        if points is None or event.loc is None or not (new.hysteresis_m or new.unc_factor):
            return None
        depth_m, band_m = points.boundary.depth_m(event.loc), self._band_m(binding, event)
        if event.loc in points and depth_m >= band_m:
            return True
        if event.loc not in points and -depth_m >= band_m:
            return False
        return state.holds if state.inside is None else state.inside

    def _band_m(self, binding: _Binding, event: Event) -> float:
        new, points = binding.subscription.new, self._points(binding)
        assert points is not None
        return min(new.hysteresis_m + new.unc_factor * (event.unc or 0), points.boundary.widest_band_m)

    def _cross(self, binding: _Binding, event: Event) -> None:
        """Enter and leave for each stay on the way from the last event, both of them outside."""
        points, last, subscription = self._points(binding), self.last, binding.subscription
        zone_changed = max((zone.changed for zone in self.zones.values() if zone.uid == binding.target), default=0)
        granted_since = 0 if subscription.who == "alice" else self.granted_since
        since = max(subscription.changed, zone_changed, granted_since)
        if points is None or last is None or last.loc is None or event.loc is None or last.ts <= since:
            return
        gap_ms = event.ts - last.ts
        if gap_ms > 300_000 or last.loc in points or event.loc in points or not self._truth(binding, event, True):
            return
        for shares in stretches_in(points.boundary, last.loc, event.loc):
            if points.boundary.depth_m(along(last.loc, event.loc, sum(shares) / 2)) < self._band_m(binding, event):
                continue
            begin, end = (
                msgspec.structs.replace(
                    event, ts=last.ts + round(share * gap_ms), loc=along(last.loc, event.loc, share)
                )
                for share in shares
            )
            self._take(binding, begin, True)
            due = self._due(binding, end.ts)
            if due is not None:
                place = along(last.loc, event.loc, (due - last.ts) / gap_ms)
                self._enter(binding, due, msgspec.structs.replace(event, loc=place))
            self._take(binding, end, False)

    def _points(self, binding: _Binding) -> _Points | None:
        for zones in self._resolved(binding.subscription).values():
            if binding.target in zones:
                return zones[binding.target]
        return None

    def _enter(self, binding: _Binding, ts: Instant, event: Event) -> None:
        state = self._state(binding)
        state.holds, state.since, state.pending = True, ts, None
        state.edges += 1
        state.visit = self._tell(binding, Mode.ENTER, ts, event)

    def _tell(self, binding: _Binding, mode: Mode, ts: Instant, event: Event, **more: Any) -> int | None:
        """The place of the notification in its list, if there is one."""
        subscription = binding.subscription
        if mode not in subscription.modes:
            return None
        target = self._name(binding.target)
        body = {**format_event(msgspec.structs.replace(event, oid=OID)), **more}
        body |= {"ts": format_instant(ts), "subscription": subscription.new.name, "mode": str(mode), "target": target}
        told = self.told.setdefault((subscription.new.name, target), [])
        told.append(body)
        return len(told) - 1

    # --- bindings ------------------------------------------------------------------------------------

    def _bindings(self) -> list[_Binding]:
        """Those that are evaluated now."""
        return [
            binding
            for subscription in self.subscriptions.values()
            if not subscription.new.paused
            and (subscription.who == "alice" or self.granted.issuperset(subscription.needed))
            for binding in self._of(subscription).values()
        ]

    def _of(self, subscription: _Subscription) -> dict[str, _Binding]:
        found: dict[str, _Binding] = {}
        for terms in filters(subscription.selector):
            if not speaks_of(terms, OID):
                continue
            anchor = anchor_of(terms)
            signed = t.And(tuple(t.Not(node) if negated else node for node, negated in terms))
            known = self._resolved(subscription)
            targets = [key for ref in anchor.zones for key in known[ref]] if anchor else [""]
            for target in dict.fromkeys(targets):
                found.setdefault(target, _Binding(subscription, target)).parts.append((signed, anchor))
        return found

    def _truth(self, binding: _Binding, event: Event, inside: bool | None = None) -> bool | None:
        known = self._resolved(binding.subscription)
        if inside is not None:
            known = {
                ref: {key: _Counted(zone, inside) if key == binding.target else zone for key, zone in zones.items()}
                for ref, zones in known.items()
            }
        named = msgspec.structs.replace(event, oid=OID)
        values = [evaluate(part, named, known, binding.target or None, anchor) for part, anchor in binding.parts]
        return True if True in values else None if None in values else False

    def _resolved(self, subscription: _Subscription) -> dict[t.ZoneRef, dict[str, Any]]:
        known: dict[t.ZoneRef, dict[str, Any]] = dict(subscription.inline)
        for ref in _refs(subscription.selector):
            if isinstance(ref, t.NamedZone):
                zone = self.zones.get(f"{ref.owner}.{ref.local}")
                known[ref] = {} if zone is None else {zone.uid: zone.points}
            elif isinstance(ref, t.ZoneSet | t.ZoneTag):
                known[ref] = {
                    zone.uid: zone.points
                    for name, zone in self.zones.items()
                    if name.startswith(f"{ref.owner}.") and (isinstance(ref, t.ZoneSet) or ref.tag in zone.tags)
                }
        return known

    def _state(self, binding: _Binding) -> _State:
        return self.states.setdefault((binding.subscription.uid, binding.target), _State())

    def _name(self, target: str) -> str | None:
        names = [name for name, zone in self.zones.items() if zone.uid == target]
        return names[0] if names else target or None

    def _uid(self) -> int:
        self._uids += 1
        return self._uids

    # --- dwells --------------------------------------------------------------------------------------

    def _tasks(self) -> dict[tuple[int, str], object]:
        """What each binding with a running dwell waits for: when that becomes something else the dwell ends."""
        versions = {zone.uid: zone.version for zone in self.zones.values()}
        tasks = {}
        for binding in self._bindings():
            known = self._resolved(binding.subscription)
            terms = set()
            for part, anchor in binding.parts:
                signed = []
                for term in part.items:
                    node = term.item if isinstance(term, t.Not) else term
                    zones: list[str] = []
                    if isinstance(node, t.Within | t.Relate):
                        zones = (
                            [binding.target] if node is anchor else [key for ref in node.zones for key in known[ref]]
                        )
                    plain = node
                    if isinstance(node, t.Within):
                        plain = None
                    elif isinstance(node, t.Relate):
                        plain = (node.attribute, node.relation)
                    signed.append((isinstance(term, t.Not), plain, tuple((key, versions.get(key)) for key in zones)))
                terms.add(tuple(signed))
            new = binding.subscription.new
            boundary = (new.hysteresis_m, new.unc_factor, new.crossing)
            service = (new.tos, binding.subscription.modes, new.dwell_s, new.expires, boundary)
            tasks[binding.subscription.uid, binding.target] = (frozenset(terms), service)
        return tasks

    def _end_dwells(self, before: dict[tuple[int, str], object]) -> None:
        after = self._tasks()
        for key, task in before.items():
            if key in self.states and after.get(key) != task:
                self.states[key].pending = self.states[key].inside = None


def _refs(node: Any) -> Iterator[t.ZoneRef]:
    if isinstance(node, t.Within | t.Relate):
        yield from node.zones
    elif isinstance(node, t.And | t.Or):
        for item in node.items:
            yield from _refs(item)
    elif isinstance(node, t.Not):
        yield from _refs(node.item)
