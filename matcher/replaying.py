"""Recorded fixes through the code that decides: what a subscription would have done.

Bindings come from `matcher.selector.binding`, edges from `matcher.evaluation.fold`, as on the server and on a device.
What is added is where not to look: a binding that can only hold in certain zones is folded when the fix, or with
`crossing` the way to it, is near one of them, or while the binding is live (it holds, say, or a dwell runs). Anywhere
else its condition is FALSE, which changes nothing about a binding that is not live. What begins otherwise, with NOT or
a relation, is looked at with every fix.

Fixes come in the order in which they were recorded. One that is not newer than the newest of its object is late: it is
counted and changes nothing, as it would have been then.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import shapely

from matcher.anchors import Anchor, anchor_zone
from matcher.confinement import zones_around
from matcher.evaluation import Folded, Rule, expire, fold
from matcher.events import Event
from matcher.once import Instant, Mode, OnceState, Service
from matcher.places import Place
from matcher.planar import PlanarRegion
from matcher.proximity import Nearing
from matcher.replayed_distances import ReplayedDistances
from matcher.selector.binding import bind
from matcher.selector.conditions import depends_on_others
from matcher.selector.format import format_zone_ref
from matcher.selector.mentions import depends_on_object, inline_zones
from matcher.selector.tree import Condition, Const, NamedZone, Selector, ZoneSet, ZoneTag
from zones.boundaries import Boundary
from zones.covers import prepare
from zones.names import SYSTEM, is_system
from zones.names import fold as fold_name
from zones.shapes import Point, Shape

__all__ = ["Counts", "Messages", "Replay", "ReplayZones", "Told"]


class Told(msgspec.Struct, frozen=True):
    """What the subscriber would have been told; `target` is a zone's name, of a distance the other oid, and None where
    the binding speaks of a whole list."""

    oid: str
    ts: Instant
    target: str | None
    mode: Mode
    loc: Point | None


class Messages(msgspec.Struct, frozen=True):
    """What would have been sent: to a server that evaluates, or by agents that do, and to them."""

    server: int  # a fix each
    # A report for each edge that devices find, also for one that `modes` hides: the server keeps count of them. And
    # each fix of an object to which somebody wants to know a distance: no device knows where another one is.
    device: int
    dispatch: int  # a plan for each object that has bindings, or the wish to hear where it is


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

    def boundary(self, zone: str) -> Boundary:
        return self._place(zone).boundary

    def _place(self, zone: str) -> Place:
        place = self._places.get(zone)
        if place is None:
            place = self._places[zone] = Place(self._shapes[zone])
        return place


class Replay:
    """Everything that the subscription remembers while fixes pass.

    If the selector speaks of distances, `oids` are those of all objects that will come.
    """

    def __init__(self, selector: Selector, service: Service, zones: ReplayZones, oids: Iterable[str] = ()) -> None:
        self._distances = ReplayedDistances(selector, service, zones, zones, oids)
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
        self._samples += len(events)
        told: list[Told] = []
        taken = [step for event in events if (step := self._step(event)) is not None]
        for step, near in zip(taken, self._near.of(taken, ways=self._service.crossing), strict=True):
            thing = step.thing
            rules = thing.bindings.at(near, thing.live)
            if rules:
                self._accept(thing, fold(rules, thing.states, step.before, step.event, self._zones), told)
            if thing.is_linked:
                self._reports += 1
                self._tell_distances(self._distances.fold(thing.folded, step.event), told)
        return told

    def _step(self, event: Event) -> "_Step | None":
        """The fix and what held before it; None if it is late."""
        thing = self._by_oid.get(event.oid) or self._thing(event.oid)
        before = thing.last
        if before is not None and event.ts <= before.ts:
            self._late += 1
            return None
        thing.last = event
        if self._newest is None or event.ts > self._newest:
            self._newest = event.ts
        return _Step(thing, before, event)

    def end(self) -> list[Told]:
        """Let time pass for every object up to the newest fix of all: a dwell that ends by then brings its enter."""
        told: list[Told] = []
        if self._newest is not None:
            for thing in self._things.values():
                rules = thing.bindings.at((), thing.live)
                self._accept(thing, expire(rules, thing.states, thing.last, self._newest), told)
            self._tell_distances(self._distances.expire(self._newest), told)
        return told

    @property
    def counts(self) -> Counts:
        bound = sum(thing.is_linked or not thing.bindings.is_empty for thing in self._things.values())
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
            if state.is_live:
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

    def _tell_distances(self, nearings: Iterable[Nearing[tuple[str, str]]], told: list[Told]) -> None:
        for nearing in nearings:
            key, edge = nearing.key, nearing.edge
            if self._service.tells(edge.mode):
                self._told[edge.mode] += 1
                other = self._distances.other_of(key)
                target = self._zones.name(key[1]) if other is None else other
                told.append(Told(self._distances.left_of(key), edge.ts, target, edge.mode, nearing.event.loc))

    def _thing(self, oid: str) -> "_Thing":
        """The object, known by the way in which its oid was first written."""
        folded = fold_name(oid)
        thing = self._things.get(folded)
        if thing is None:
            bindings = self._bound(oid) if self._shared is None else self._shared
            is_linked = self._distances.is_linked(folded)
            thing = self._things[folded] = _Thing(oid, folded, is_linked, bindings)
            self._near.add(bindings)
        self._by_oid[oid] = thing
        return thing

    def _bound(self, oid: str) -> "_Bindings":
        bounds = bind(self._selector, oid, self._zones)
        able = (each for each in bounds if each.condition != Const(False) and not depends_on_others(each.condition))
        return _Bindings([self._rule(bound.target, bound.condition) for bound in able])

    def _rule(self, target: str, condition: Condition) -> Rule[str]:
        zone = anchor_zone(target, condition, self._service)
        anchor = None if zone is None else Anchor(zone, self._zones.boundary(zone))
        return Rule(target, condition, self._service, anchor=anchor)


@dataclass
class _Thing:
    oid: str
    folded: str
    is_linked: bool
    bindings: "_Bindings"
    states: dict[str, OnceState] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    last: Event | None = None


@dataclass(frozen=True)
class _Step:
    thing: _Thing
    before: Event | None
    event: Event


class _Bindings:
    """The bindings of an object, or of all alike: those that hold only in certain zones, and the others."""

    def __init__(self, rules: Sequence[Rule[str]]) -> None:
        self._rules = {rule.key: rule for rule in rules}
        self._order = {rule.key: place for place, rule in enumerate(rules)}
        self._always: list[Rule[str]] = []
        self.by_zone: dict[str, list[str]] = {}
        for rule in rules:
            around = zones_around(rule.condition)
            if around is None:
                self._always.append(rule)
            for zone in around or ():
                self.by_zone.setdefault(zone, []).append(rule.key)

    @property
    def is_empty(self) -> bool:
        return not self._rules

    def at(self, near: Iterable[str], live: set[str]) -> Sequence[Rule[str]]:
        """Those to be looked at, in the order in which the selector names them."""
        wanted = live.union(*(self.by_zone.get(zone, ()) for zone in near))
        if not wanted:
            return self._always
        wanted.update(rule.key for rule in self._always)
        if len(wanted) == 1:
            return [self._rules[key] for key in wanted]
        return [self._rules[key] for key in sorted(wanted, key=self._order.__getitem__)]


class _Near:
    """Which zones a fix may be in: an index of the boxes around those that bindings are about."""

    def __init__(self, zones: ReplayZones) -> None:
        self._zones = zones
        self._known: dict[str, None] = {}
        self._keys: list[str] = []
        self._tree: shapely.STRtree | None = None

    def add(self, bindings: _Bindings) -> None:
        if not bindings.by_zone.keys() <= self._known.keys():
            self._known |= dict.fromkeys(bindings.by_zone)
            self._tree = None

    def of(self, steps: Sequence[_Step], *, ways: bool) -> list[Sequence[str]]:
        """At least the zones that cover each fix, or with `ways` those that the way to it meets."""
        near: list[Sequence[str]] = [() for _ in steps]
        placed = [row for row, step in enumerate(steps) if step.event.loc is not None]
        if not placed or not self._known:
            return near
        if self._tree is None:
            self._build()
        if ways:
            looked = shapely.box(*zip(*(_way(steps[row]) for row in placed), strict=True))
        else:
            looked = shapely.points([steps[row].event.loc for row in placed])
        rows, slots = cast("shapely.STRtree", self._tree).query(looked)
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            place = placed[row]
            near[place] = (*near[place], self._keys[slot])
        return near

    def _build(self) -> None:
        boxes = [(zone, box) for zone in self._known for box in prepare(self._zones.shape(zone)).boxes]
        self._keys = [zone for zone, _ in boxes]
        self._tree = shapely.STRtree([shapely.box(*box) for _, box in boxes])


def _way(step: _Step) -> tuple[float, float, float, float]:
    """The box around the way to a fix; one across the antimeridian is taken to go all around."""
    lon, lat = cast(Point, step.event.loc)
    from_lon, from_lat = (lon, lat) if step.before is None or step.before.loc is None else step.before.loc
    west, east = (-180.0, 180.0) if abs(lon - from_lon) > 180 else (min(lon, from_lon), max(lon, from_lon))
    return west, min(lat, from_lat), east, max(lat, from_lat)
