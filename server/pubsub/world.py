"""What a node keeps in memory to match: zones, subscriptions, objects, agents, grants and once-states.

Only the writer's thread touches it, inside the transaction that makes the same change in the database. If that
transaction is rolled back the world is loaded anew, so memory never runs ahead of the store.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import Instant, Mode, OnceState, Service, Tos
from matcher.selector.binding import bind, inline_zones, negates_places, subjects
from matcher.selector.tree import InlineZone, NamedZone, Selector, ZoneSet, ZoneTag
from privacy.decisions import decide
from privacy.policies import Grant, Operation, Request
from zones.covers import Area, prepare
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
    area: Area


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

    def __post_init__(self) -> None:
        self.subjects = subjects(self.selector)
        self.inline = inline_zones(self.selector)
        self.needed = needed_operations(self.service, self.selector)


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
        self._inline: dict[str, Area] = {}  # inline zones by id; the id is a hash of the shape
        self._rules: dict[int, list[Rule[BindingKey]]] = {}
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
        self.zones[key] = ZoneEntry(zone, owner_id, prepare(zone.shape))
        self._zone_ids[owner_id, fold(zone.local)] = key
        self._zones_of.setdefault(owner_id, set()).add(key)
        self._forget_all_rules()

    def remove_zone(self, zone_id: int) -> None:
        entry = self.zones.pop(str(zone_id))
        del self._zone_ids[entry.owner_id, fold(entry.zone.local)]
        self._zones_of[entry.owner_id].discard(str(zone_id))
        self._drop_states(key for key in self.states if key.target == str(zone_id))
        self._forget_all_rules()

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
        self._inline.update({key: prepare(zone.shape) for key, zone in entry.inline.items()})
        if entry.subjects is None:
            self._unnamed.add(entry.id)
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
        for oid in entry.subjects or ():
            self._named[oid].discard(entry.id)

    # --- states ------------------------------------------------------------------------------------

    def put_state(self, key: BindingKey, state: OnceState) -> None:
        self.states[key] = state
        if state.pending is None:
            self.dwelling.discard(key)
        else:
            self.dwelling.add(key)

    def _drop_states(self, keys: Iterable[BindingKey]) -> None:
        for key in list(keys):
            del self.states[key]
            self.dwelling.discard(key)

    # --- bindings ----------------------------------------------------------------------------------

    def rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """The bindings of an object that are to be evaluated now, whoever does it."""
        rules = self._rules.get(object_id)
        if rules is None:
            owner_id = self.objects[object_id].owner_id
            rules = self._rules[object_id] = [
                rule
                for subscription in self._subscriptions_about(object_id)
                if not subscription.paused and self.allows_all(owner_id, subscription)
                for rule in self._bindings(object_id, subscription)
            ]
        return rules

    def all_rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """Every binding of an object, also of subscriptions that are paused or no longer permitted."""
        about = self._subscriptions_about(object_id)
        return [rule for subscription in about for rule in self._bindings(object_id, subscription)]

    def allows_all(self, owner_id: int, subscription: SubscriptionEntry) -> bool:
        """Whether the owner permits everything that this subscription's type of service needs."""
        asker_id = subscription.subscriber_id
        return all(self.allows(owner_id, asker_id, op) for op in subscription.needed)

    def covers(self, zone_id: str, point: Point) -> bool:
        inline = self._inline.get(zone_id)
        return (self.zones[zone_id].area if inline is None else inline).covers(point)

    def shape(self, zone_id: str, subscription: SubscriptionEntry) -> Shape:
        inline = subscription.inline.get(zone_id)
        return self.zones[zone_id].zone.shape if inline is None else inline.shape

    def _subscriptions_about(self, object_id: int) -> list[SubscriptionEntry]:
        named = self._named.get(fold(self.objects[object_id].oid), set())
        return [self.subscriptions[key] for key in sorted(self._unnamed | named)]

    def _bindings(self, object_id: int, subscription: SubscriptionEntry) -> Iterator[Rule[BindingKey]]:
        directory = _Directory(self, subscription.subscriber_id)
        for bound in bind(subscription.selector, self.objects[object_id].oid, directory):
            key = BindingKey(subscription.id, object_id, bound.target)
            yield Rule(key, bound.condition, subscription.service)

    def _forget_rules(self, object_ids: Iterable[int]) -> None:
        for object_id in list(object_ids):
            self._rules.pop(object_id, None)
            self.handles.pop(object_id, None)

    def _forget_all_rules(self) -> None:
        self._rules.clear()
        self.handles.clear()


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
