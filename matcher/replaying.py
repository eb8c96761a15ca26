"""Recorded fixes through the code that decides: what a subscription would have done.

Bindings come from `matcher.selector.binding`, edges from `matcher.evaluation.fold`, as on the server and on a device.
What is added is where not to look: a binding that can only hold inside its zone is folded when the fix is near that
zone, or while the binding is live (it holds, or a dwell runs). Anywhere else its condition is FALSE, which changes
nothing about a binding that is not live. What begins otherwise, with NOT or a relation, is looked at with every fix.

Fixes come in the order in which they were recorded. One that is not newer than the newest of its object is late: it is
counted and changes nothing, as it would have been then.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import shapely

from matcher.errors import SelectorNotSupported
from matcher.evaluation import Folded, Rule, expire, fold
from matcher.events import Event
from matcher.once import Instant, Mode, OnceState, Service
from matcher.places import Place
from matcher.planar import PlanarRegion
from matcher.selector.binding import bind, depends_on_object, inline_zones
from matcher.selector.conditions import leaves
from matcher.selector.format import format_zone_ref
from matcher.selector.tree import And, Condition, Const, Distance, InZones, NamedZone, Or, Selector, ZoneSet, ZoneTag
from zones.covers import prepare
from zones.names import SYSTEM, is_system
from zones.names import fold as fold_name
from zones.shapes import Point, Shape

__all__ = ["Counts", "Messages", "Replay", "ReplayZones", "Told"]


class Told(msgspec.Struct, frozen=True):
    """What the subscriber would have been told; `target` is None where the binding speaks of a whole list."""

    oid: str
    ts: Instant
    target: str | None
    mode: Mode
    loc: Point | None


class Messages(msgspec.Struct, frozen=True):
    """What would have been sent: to a server that evaluates, or by agents that do, and to them."""

    server: int  # a fix each
    device: int  # a report for each edge, also for one that `modes` hides: the server keeps count of them
    dispatch: int  # a plan for each object that has bindings


class Counts(msgspec.Struct, frozen=True):
    samples: int
    objects: int
    late: int
    enters: int
    leaves: int
    matches: int
    messages: Messages


class ReplayZones:
    """The zones that a selector names, all of them SYSTEM's, by their local names."""

    def __init__(self, shapes: Mapping[str, Shape], selector: Selector) -> None:
        inline = inline_zones(selector)
        self._shapes: dict[str, Shape] = {str(number): shape for number, shape in enumerate(shapes.values())}
        self._names = {str(number): f"{SYSTEM}.{local}" for number, local in enumerate(shapes)}
        self._by_name = {fold_name(local): str(number) for number, local in enumerate(shapes)}
        self._all = tuple(self._shapes)
        self._shapes |= {key: zone.shape for key, zone in inline.items()}
        self._names |= {key: format_zone_ref(zone) for key, zone in inline.items()}
        self._places: dict[str, Place] = {}

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        """The ids of the zones (`matcher.selector.binding`); features have no tags."""
        if not is_system(ref.owner) or isinstance(ref, ZoneTag):
            return ()
        if isinstance(ref, ZoneSet):
            return self._all
        found = self._by_name.get(fold_name(ref.local))
        return () if found is None else (found,)

    def name(self, zone: str) -> str | None:
        return self._names[zone] if zone else None

    def shape(self, zone: str) -> Shape:
        return self._shapes[zone]

    def covers(self, zone: str, point: Point) -> bool:
        return self._place(zone).covers(point)

    def region(self, zone: str) -> PlanarRegion:
        return self._place(zone).region

    def _place(self, zone: str) -> Place:
        place = self._places.get(zone)
        if place is None:
            place = self._places[zone] = Place(self._shapes[zone])
        return place


class Replay:
    """Everything that the subscription remembers while fixes pass."""

    def __init__(self, selector: Selector, service: Service, zones: ReplayZones) -> None:
        _refuse_distance(selector)
        self._selector, self._service, self._zones = selector, service, zones
        self._shared = None if depends_on_object(selector) else self._bound("")
        self._near = _Near(zones)
        self._things: dict[str, _Thing] = {}
        self._by_oid: dict[str, _Thing] = {}
        self._samples = self._late = self._reports = 0
        self._told: Counter[Mode] = Counter()
        self._newest: Instant | None = None

    def take(self, events: Sequence[Event]) -> list[Told]:
        """The next fixes; many at once are quicker."""
        told: list[Told] = []
        things = [self._by_oid.get(event.oid) or self._thing(event.oid) for event in events]
        for event, thing, near in zip(events, things, self._near.of(events), strict=True):
            if thing.newest is not None and event.ts <= thing.newest:
                self._late += 1
                continue
            rules = thing.bindings.at(near, thing.live)
            if rules:
                self._accept(thing, fold(rules, thing.states, thing.last, event, self._zones), told)
            thing.newest, thing.last = event.ts, event
            if self._newest is None or event.ts > self._newest:
                self._newest = event.ts
        self._samples += len(events)
        return told

    def end(self) -> list[Told]:
        """Let time pass for every object up to the newest fix of all: a dwell that ends by then brings its enter."""
        told: list[Told] = []
        if self._newest is not None:
            for thing in self._things.values():
                rules = thing.bindings.at((), thing.live)
                self._accept(thing, expire(rules, thing.states, thing.last, self._newest), told)
        return told

    @property
    def counts(self) -> Counts:
        bound = sum(not thing.bindings.is_empty for thing in self._things.values())
        return Counts(
            samples=self._samples,
            objects=len(self._things),
            late=self._late,
            enters=self._told[Mode.ENTER],
            leaves=self._told[Mode.LEAVE],
            matches=self._told[Mode.MATCH],
            messages=Messages(server=self._samples, device=self._reports, dispatch=bound),
        )

    def _accept(self, thing: "_Thing", folded: Folded[str], told: list[Told]) -> None:
        for zone, state in folded.states.items():
            thing.states[zone] = state
            if state.holds or state.pending is not None:
                thing.live.add(zone)
            else:
                thing.live.discard(zone)
        self._reports += len(folded.edges)
        for happening in folded.edges:
            edge = happening.edge
            if self._service.tells(edge.mode):
                self._told[edge.mode] += 1
                target = self._zones.name(happening.key)
                told.append(Told(thing.oid, edge.ts, target, edge.mode, happening.event.loc))

    def _thing(self, oid: str) -> "_Thing":
        """The object, known by the way in which its oid was first written."""
        folded = fold_name(oid)
        thing = self._things.get(folded)
        if thing is None:
            bindings = self._bound(oid) if self._shared is None else self._shared
            thing = self._things[folded] = _Thing(oid, bindings)
            self._near.add(bindings)
        self._by_oid[oid] = thing
        return thing

    def _bound(self, oid: str) -> "_Bindings":
        bounds = bind(self._selector, oid, self._zones)
        return _Bindings([Rule(each.target, each.condition, self._service) for each in bounds])


@dataclass
class _Thing:
    oid: str
    bindings: "_Bindings"
    states: dict[str, OnceState] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    newest: Instant | None = None
    last: Event | None = None


class _Bindings:
    """The bindings of an object, or of all alike: those that hold only inside their zones, and the others."""

    def __init__(self, rules: Sequence[Rule[str]]) -> None:
        able = [rule for rule in rules if rule.condition != Const(False)]
        self.inside = {rule.key: rule for rule in able if rule.key and _is_inside(rule.condition, rule.key)}
        self._always = [rule for rule in able if rule.key not in self.inside]
        self._order = {rule.key: place for place, rule in enumerate(able)}

    @property
    def is_empty(self) -> bool:
        return not self._order

    def at(self, near: Iterable[str], live: set[str]) -> Sequence[Rule[str]]:
        """Those to be looked at, in the order in which the selector names them."""
        inside = self.inside
        wanted = {zone for zone in near if zone in inside} | (live & inside.keys() if self._always else live)
        if not wanted:
            return self._always
        rules = [*self._always, *(inside[zone] for zone in wanted)]
        if len(rules) > 1:
            rules.sort(key=self._place)
        return rules

    def _place(self, rule: Rule[str]) -> int:
        return self._order[rule.key]


class _Near:
    """Which zones a fix may be in: an index of the boxes around those that bindings are about."""

    def __init__(self, zones: ReplayZones) -> None:
        self._zones = zones
        self._known: dict[str, None] = {}
        self._keys: list[str] = []
        self._tree: shapely.STRtree | None = None

    def add(self, bindings: _Bindings) -> None:
        if not bindings.inside.keys() <= self._known.keys():
            self._known |= dict.fromkeys(bindings.inside)
            self._tree = None

    def of(self, events: Sequence[Event]) -> list[Sequence[str]]:
        """At least the zones that cover each of them."""
        near: list[Sequence[str]] = [() for _ in events]
        placed = [(row, event.loc) for row, event in enumerate(events) if event.loc is not None]
        if not placed or not self._known:
            return near
        if self._tree is None:
            self._build()
        points = shapely.points([loc for _, loc in placed])
        rows, slots = cast("shapely.STRtree", self._tree).query(points)
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            place = placed[row][0]
            near[place] = (*near[place], self._keys[slot])
        return near

    def _build(self) -> None:
        boxes = [(zone, box) for zone in self._known for box in prepare(self._zones.shape(zone)).boxes]
        self._keys = [zone for zone, _ in boxes]
        self._tree = shapely.STRtree([shapely.box(*box) for _, box in boxes])


def _refuse_distance(selector: Selector) -> None:
    if any(isinstance(leaf, Distance) for leaf in leaves(cast(Condition, selector))):
        raise SelectorNotSupported(
            "The selector uses 'distance', which is not replayed: it depends on other objects' events and their age.",
            hint="Use within or one of the eight relations.",
            word="distance",
        )


def _is_inside(condition: Condition, zone: str) -> bool:
    """Whether it is FALSE, not merely UNKNOWN, wherever an object is that is not in the zone."""
    if isinstance(condition, InZones):
        return condition.zones == (zone,)
    if isinstance(condition, And):
        return any(_is_inside(cast(Condition, item), zone) for item in condition.items)
    return isinstance(condition, Or) and all(_is_inside(cast(Condition, item), zone) for item in condition.items)
