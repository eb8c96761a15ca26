"""What a node keeps in memory to match: zones, subscriptions, objects, agents, grants and once-states.

Only the writer's thread touches it, inside the transaction that makes the same change in the database. If that
transaction is rolled back the world is loaded anew, so memory never runs ahead of the store.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from matcher.compilation import compile_condition
from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import Instant, Mode, OnceState, Service, Tos
from matcher.places import Place
from matcher.planar import PlanarRegion
from matcher.selector.binding import (
    Bound,
    bind,
    bind_anybody,
    depends_on_object,
    inline_zones,
    negates_places,
    subjects,
    zone_refs,
)
from matcher.selector.tree import Const, InlineZone, NamedZone, Selector, ZoneSet, ZoneTag
from privacy.decisions import decide
from privacy.policies import Grant, Operation, Request
from server.pubsub.candidates import Candidates
from zones.names import fold
from zones.shapes import Point, Shape
from zones.zone import Zone

__all__ = [
    "OPERATION_OF",
    "AgentEntry",
    "BindingKey",
    "ObjectEntry",
    "SubscriptionEntry",
    "World",
    "ZoneEntry",
    "needed_operations",
]


class BindingKey(msgspec.Struct, frozen=True):
    """Immutable ids, never names. `target` is a zone's id, or empty for "the whole list"."""

    subscription_id: int
    object_id: int
    target: str


@dataclass
class ZoneEntry:
    zone: Zone
    owner_id: int
    place: Place


@dataclass
class SubscriptionEntry:
    id: int
    subscriber_id: int
    name: str
    text: str
    selector: Selector
    service: Service
    purpose: str
    paused: bool
    changed: Instant
    subjects: frozenset[str] | None = None
    inline: dict[str, InlineZone] = field(default_factory=dict)
    needed: tuple[Operation, ...] = ()
    zone_owners: frozenset[str] = frozenset()  # folded
    depends_on_object: bool = False

    def __post_init__(self) -> None:
        self.subjects = subjects(self.selector)
        self.inline = inline_zones(self.selector)
        self.needed = needed_operations(self.service, self.selector)
        refs = zone_refs(self.selector)
        self.zone_owners = frozenset(fold(ref.owner) for ref in refs if not isinstance(ref, InlineZone))
        self.depends_on_object = depends_on_object(self.selector)


@dataclass
class ObjectEntry:
    id: int
    oid: str
    owner_id: int
    newest: Instant | None
    last: Event | None
    generation: int


@dataclass
class AgentEntry:
    """An object's one active agent."""

    id: int
    object_id: int
    lease_until: Instant
    capabilities: frozenset[str] | None = None  # as its last hello said; None before its first since our start


def needed_operations(service: Service, selector: Selector) -> tuple[Operation, ...]:
    """What a grant has to allow for a subscription with this type of service.

    With NOT an enter tells that the object has left, and a leave that it has come: who may know one of them does not
    get the other one that way.
    """
    if service.tos is Tos.EVERY:
        return (Operation.POSITION,)
    if negates_places(selector):
        return (Operation.ENTER, Operation.LEAVE)
    if service.tos is Tos.FIRST:
        return (Operation.ENTER,)
    return tuple(OPERATION_OF[mode] for mode in service.modes)


_NEVER = Const(False)
OPERATION_OF = {Mode.ENTER: Operation.ENTER, Mode.LEAVE: Operation.LEAVE, Mode.MATCH: Operation.POSITION}


class World:
    """See the module's docstring. Loaded by `server.pubsub.loading`."""

    def __init__(self) -> None:
        self.secret = b""
        self.system_id = 0
        self.users: dict[int, str] = {}
        self.offsets: dict[int, int] = {}
        self.zones: dict[str, ZoneEntry] = {}
        self.objects: dict[int, ObjectEntry] = {}
        self.subscriptions: dict[int, SubscriptionEntry] = {}
        self.agents: dict[int, AgentEntry] = {}
        self.grants: dict[int, dict[int, Grant]] = {}
        self.states: dict[BindingKey, OnceState] = {}
        self.dwelling: set[BindingKey] = set()  # those of them in which a dwell is running
        self._user_ids: dict[str, int] = {}
        self._zone_ids: dict[tuple[int, str], str] = {}
        self._zones_of: dict[int, set[str]] = {}
        self._object_ids: dict[str, int] = {}
        self._objects_of: dict[int, set[int]] = {}
        self._named: dict[str, set[int]] = {}  # subscriptions by the folded oids they name
        self._unnamed: set[int] = set()  # subscriptions that speak of every object
        self._subscription_ids: dict[tuple[int, str], int] = {}
        self._inline: dict[str, Place] = {}  # inline zones by id; the id is a hash of the shape
        self._rules: dict[int, list[Rule[BindingKey]]] = {}
        self._standing_rules: dict[int, list[Rule[BindingKey]]] = {}
        self._live: dict[int, set[BindingKey]] = {}  # by object: those that hold, or in which a dwell is running
        self.candidates = Candidates()
        self._standing: set[int] = set()  # of the unnamed, those with bindings that are not among the candidates
        self._indexed: dict[int, dict[str, Bound]] = {}  # of the unnamed, the bindings that are
        self._stale: set[int] = set()  # subscriptions for which these two are to be worked out anew
        self._stale_owners: set[str] = set()  # and all that name zones of these users
        self.handles: dict[int, dict[str, BindingKey]] = {}  # of objects with agents; kept by the controller

    # --- users and grants --------------------------------------------------------------------------

    def put_user(self, user_id: int, name: str, last_offset: int) -> None:
        self.users[user_id] = name
        self._user_ids[fold(name)] = user_id
        self.offsets.setdefault(user_id, last_offset)

    def user_id(self, name: str) -> int | None:
        return self._user_ids.get(fold(name))

    def put_grant(self, grant: Grant) -> None:
        self.grants.setdefault(grant.owner_id, {})[grant.id] = grant
        self._forget_rules(self.objects_of(grant.owner_id))

    def remove_grant(self, owner_id: int, grant_id: int) -> None:
        self.grants[owner_id].pop(grant_id)
        self._forget_rules(self.objects_of(owner_id))

    def allows(self, owner_id: int, asker_id: int, operation: Operation) -> bool:
        grants = self.grants.get(owner_id, {}).values()
        return decide(Request(owner_id, asker_id, operation), grants).allowed

    # --- zones -------------------------------------------------------------------------------------

    def put_zone(self, zone: Zone, owner_id: int) -> None:
        key = str(zone.id)
        self.zones[key] = ZoneEntry(zone, owner_id, Place(zone.shape))
        self._zone_ids[owner_id, fold(zone.local)] = key
        self._zones_of.setdefault(owner_id, set()).add(key)
        self._zones_changed(owner_id)

    def remove_zone(self, zone_id: int) -> None:
        entry = self.zones.pop(str(zone_id))
        del self._zone_ids[entry.owner_id, fold(entry.zone.local)]
        self._zones_of[entry.owner_id].discard(str(zone_id))
        self._drop_states(key for key in self.states if key.target == str(zone_id))
        self._zones_changed(entry.owner_id)

    def zone(self, owner: str, local: str) -> ZoneEntry | None:
        owner_id = self.user_id(owner)
        key = None if owner_id is None else self._zone_ids.get((owner_id, fold(local)))
        return None if key is None else self.zones[key]

    def zone_version(self, zone_id: str) -> int:
        """0 for one that is written in a selector: such a zone never changes."""
        entry = self.zones.get(zone_id)
        return 0 if entry is None else entry.zone.version

    def may_read_zone(self, entry: ZoneEntry, user_id: int) -> bool:
        return entry.owner_id in (user_id, self.system_id)

    # --- objects and agents ------------------------------------------------------------------------

    def put_object(self, entry: ObjectEntry) -> None:
        self.objects[entry.id] = entry
        self._object_ids[fold(entry.oid)] = entry.id
        self._objects_of.setdefault(entry.owner_id, set()).add(entry.id)

    def object(self, oid: str) -> ObjectEntry | None:
        object_id = self._object_ids.get(fold(oid))
        return None if object_id is None else self.objects[object_id]

    def objects_of(self, owner_id: int) -> list[int]:
        return sorted(self._objects_of.get(owner_id, ()))

    def agent_holding(self, object_id: int, now: Instant) -> AgentEntry | None:
        """The agent whose lease makes it the object's evaluator, if there is one."""
        agent = self.agents.get(object_id)
        return agent if agent is not None and agent.lease_until > now else None

    # --- subscriptions -----------------------------------------------------------------------------

    def put_subscription(self, entry: SubscriptionEntry) -> None:
        old = self.subscriptions.get(entry.id)
        if old is not None:
            self._unlink(old)
        self.subscriptions[entry.id] = entry
        self._subscription_ids[entry.subscriber_id, entry.name] = entry.id
        self._inline.update({key: Place(zone.shape) for key, zone in entry.inline.items()})
        if entry.subjects is None:
            self._unnamed.add(entry.id)
            self._stale.add(entry.id)
        else:
            for oid in entry.subjects:
                self._named.setdefault(oid, set()).add(entry.id)
        self._forget_rules(self._objects_meant(entry))

    def remove_subscription(self, subscription_id: int) -> None:
        entry = self.subscriptions.pop(subscription_id)
        del self._subscription_ids[entry.subscriber_id, entry.name]
        self._unlink(entry)
        self._drop_states(key for key in self.states if key.subscription_id == subscription_id)

    def subscription(self, subscriber_id: int, name: str) -> SubscriptionEntry | None:
        found = self._subscription_ids.get((subscriber_id, name))
        return None if found is None else self.subscriptions[found]

    def objects_meant(self, entry: SubscriptionEntry) -> list[int]:
        """Objects that have, or could have, bindings of this subscription."""
        return list(self._objects_meant(entry))

    def _objects_meant(self, entry: SubscriptionEntry) -> Iterator[int]:
        if entry.subjects is None:
            yield from self.objects
        else:
            for oid in entry.subjects:
                if oid in self._object_ids:
                    yield self._object_ids[oid]

    def _unlink(self, entry: SubscriptionEntry) -> None:
        self._forget_rules(self._objects_meant(entry))
        self._unnamed.discard(entry.id)
        self._forget_candidates(entry.id)
        for oid in entry.subjects or ():
            self._named[oid].discard(entry.id)

    # --- states ------------------------------------------------------------------------------------

    def put_state(self, key: BindingKey, state: OnceState) -> None:
        self.states[key] = state
        if state.pending is None:
            self.dwelling.discard(key)
        else:
            self.dwelling.add(key)
        if state.holds or state.pending is not None:
            self._live.setdefault(key.object_id, set()).add(key)
        else:
            self._no_longer_live(key)

    def _drop_states(self, keys: Iterable[BindingKey]) -> None:
        for key in list(keys):
            del self.states[key]
            self.dwelling.discard(key)
            self._no_longer_live(key)

    def _no_longer_live(self, key: BindingKey) -> None:
        live = self._live.get(key.object_id)
        if live is not None:
            live.discard(key)
            if not live:
                del self._live[key.object_id]

    # --- bindings ----------------------------------------------------------------------------------

    def rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """The bindings of an object that are to be evaluated now, whoever does it."""
        rules = self._rules.get(object_id)
        if rules is None:
            rules = self._rules[object_id] = [
                rule
                for subscription in self._subscriptions_about(object_id)
                if self._is_evaluated(object_id, subscription)
                for rule in self._bindings(object_id, subscription)
                if self._can_change(rule)
            ]
        return rules

    def rules_at(self, object_id: int, event: Event | None = None) -> list[Rule[BindingKey]]:
        """Those of `rules` that can change something now: with this event, or without one by the passing of time."""
        self._refresh_candidates()
        standing = self._standing_rules.get(object_id)
        if standing is None:
            standing = self._standing_rules[object_id] = [
                rule
                for subscription in self._subscriptions_about(object_id, self._standing)
                if self._is_evaluated(object_id, subscription)
                for rule in self._bindings(object_id, subscription)
                if rule.key.target not in self._indexed.get(subscription.id, ()) and self._can_change(rule)
            ]
        live = (
            key for key in self._live.get(object_id, ()) if key.target in self._indexed.get(key.subscription_id, ())
        )
        wanted = {(key.subscription_id, key.target) for key in live}
        if event is not None:
            wanted.update(self.candidates.of(event))
        if not wanted:
            return standing
        targets: dict[int, set[str]] = {}
        for subscription_id, target in wanted:
            targets.setdefault(subscription_id, set()).add(target)
        more = [
            rule
            for subscription_id in targets
            if self._is_evaluated(object_id, self.subscriptions[subscription_id])
            for rule in self._bindings(object_id, self.subscriptions[subscription_id], targets[subscription_id])
        ]
        return sorted((*standing, *more), key=_subscription_id)

    def bindings_of_message(self, owner_id: int, event: Event) -> Iterator[tuple[SubscriptionEntry, Bound]]:
        """What a message without an object may match: bindings of subscriptions that speak of everybody."""
        self._refresh_candidates()
        wanted = set(self.candidates.of(event))
        for subscription_id in sorted(self._standing.union(key for key, _ in wanted)):
            subscription = self.subscriptions[subscription_id]
            if subscription.paused or not self.allows_all(owner_id, subscription):
                continue
            indexed = self._indexed.get(subscription_id, ())
            for bound in self._bounds(subscription, ""):
                if bound.target not in indexed or (subscription_id, bound.target) in wanted:
                    yield subscription, bound

    def all_rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """Every binding of an object, also of subscriptions that are paused or no longer permitted."""
        about = self._subscriptions_about(object_id)
        return [rule for subscription in about for rule in self._bindings(object_id, subscription)]

    def allows_all(self, owner_id: int, subscription: SubscriptionEntry) -> bool:
        """Whether the owner permits everything that this subscription's type of service needs."""
        asker_id = subscription.subscriber_id
        return all(self.allows(owner_id, asker_id, op) for op in subscription.needed)

    def covers(self, zone_id: str, point: Point) -> bool:
        return self._place(zone_id).covers(point)

    def region(self, zone_id: str) -> PlanarRegion:
        return self._place(zone_id).region

    def _place(self, zone_id: str) -> Place:
        inline = self._inline.get(zone_id)
        return self.zones[zone_id].place if inline is None else inline

    def shape(self, zone_id: str, subscription: SubscriptionEntry) -> Shape:
        inline = subscription.inline.get(zone_id)
        return self.zones[zone_id].zone.shape if inline is None else inline.shape

    def _subscriptions_about(self, object_id: int, unnamed: set[int] | None = None) -> list[SubscriptionEntry]:
        named = self._named.get(fold(self.objects[object_id].oid), set())
        return [self.subscriptions[key] for key in sorted((self._unnamed if unnamed is None else unnamed) | named)]

    def _is_evaluated(self, object_id: int, subscription: SubscriptionEntry) -> bool:
        return not subscription.paused and self.allows_all(self.objects[object_id].owner_id, subscription)

    def _can_change(self, rule: Rule[BindingKey]) -> bool:
        """Not if it never holds, and has nothing to leave."""
        return rule.condition != _NEVER or rule.key in self._live.get(rule.key.object_id, ())

    def _bindings(
        self, object_id: int, subscription: SubscriptionEntry, targets: Container[str] | None = None
    ) -> Iterator[Rule[BindingKey]]:
        for bound in self._bounds(subscription, self.objects[object_id].oid):
            if targets is None or bound.target in targets:
                key = BindingKey(subscription.id, object_id, bound.target)
                yield Rule(key, bound.condition, subscription.service)

    def _bounds(self, subscription: SubscriptionEntry, oid: str) -> Iterable[Bound]:
        indexed = self._indexed.get(subscription.id, {})
        if indexed and not subscription.depends_on_object and subscription.id not in self._standing:
            return indexed.values()  # all there are, and the same for everybody
        return bind(subscription.selector, oid, _Directory(self, subscription.subscriber_id))

    # --- what is remembered of bindings --------------------------------------------------------------

    def _refresh_candidates(self) -> None:
        if self._stale_owners:
            changed = self._stale_owners
            self._stale.update(key for key in self._unnamed if self.subscriptions[key].zone_owners & changed)
            self._stale_owners = set()
        for subscription_id in self._stale:
            subscription = self.subscriptions[subscription_id]
            bounds = bind_anybody(subscription.selector, _Directory(self, subscription.subscriber_id))
            compiled = {bound.target: compile_condition(bound.condition, self.region) for bound in bounds}
            known = {target: each for target, each in compiled.items() if not each.is_always}
            self.candidates.put(subscription_id, known)
            self._indexed[subscription_id] = {bound.target: bound for bound in bounds if bound.target in known}
            if len(known) < len(bounds):
                self._standing.add(subscription_id)
            else:
                self._standing.discard(subscription_id)
        self._stale.clear()

    def _forget_candidates(self, subscription_id: int) -> None:
        self.candidates.remove(subscription_id)
        self._indexed.pop(subscription_id, None)
        self._standing.discard(subscription_id)
        self._stale.discard(subscription_id)

    def _forget_rules(self, object_ids: Iterable[int]) -> None:
        for object_id in list(object_ids):
            self._rules.pop(object_id, None)
            self._standing_rules.pop(object_id, None)
            self.handles.pop(object_id, None)

    def _zones_changed(self, owner_id: int) -> None:
        """Zones of this owner are others now, or have another shape."""
        self._rules.clear()
        self._standing_rules.clear()
        self.handles.clear()
        self._stale_owners.add(fold(self.users[owner_id]))


def _subscription_id(rule: Rule[BindingKey]) -> int:
    return rule.key.subscription_id


class _Directory:
    """Zones as one subscriber may name them: SYSTEM's and their own."""

    def __init__(self, world: World, subscriber_id: int) -> None:
        self._world = world
        self._subscriber_id = subscriber_id

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        world = self._world
        owner_id = world.user_id(ref.owner)
        if owner_id is None or owner_id not in (self._subscriber_id, world.system_id):
            return ()
        if isinstance(ref, NamedZone):
            key = world._zone_ids.get((owner_id, fold(ref.local)))
            return () if key is None else (key,)
        keys = world._zones_of.get(owner_id, set())
        if isinstance(ref, ZoneTag):
            keys = {key for key in keys if ref.tag in world.zones[key].zone.tags}
        return tuple(sorted(keys, key=int))
