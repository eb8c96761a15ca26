"""What a node keeps in memory to match: zones, subscriptions, objects, agents, grants and once-states.

Only the writer's thread touches it, inside the transaction that makes the same change in the database. If that
transaction is rolled back the world is loaded anew, so memory never runs ahead of the store.
"""

from collections.abc import Iterable, Iterator

from matcher.once import Instant, OnceState
from matcher.places import Place
from matcher.planar import PlanarRegion
from privacy.decisions import decide
from privacy.delegations import Delegation
from privacy.policies import Grant, Operation, Request
from server.pubsub.entries import AgentEntry, BindingKey, ObjectEntry, SubscriptionEntry, ZoneEntry
from server.pubsub.nearby import Nearby
from server.pubsub.rules import Rulebook
from zones.boundaries import Boundary
from zones.names import fold
from zones.shapes import Point, Shape
from zones.zone import Zone

__all__ = ["World"]


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
        self.delegations: dict[tuple[int, int], Delegation] = {}  # by owner and provider
        self.states: dict[BindingKey, OnceState] = {}
        self.dwelling: set[BindingKey] = set()  # those of them in which a dwell is running
        self.unsettled: set[BindingKey] = set()  # and those with anything else that an edit ends
        self._user_ids: dict[str, int] = {}
        self._zone_ids: dict[tuple[int, str], str] = {}
        self.zones_of: dict[int, set[str]] = {}
        self._object_ids: dict[str, int] = {}
        self._objects_of: dict[int, set[int]] = {}
        self.named: dict[str, set[int]] = {}  # subscriptions by the folded oids they name
        self.unnamed: set[int] = set()  # subscriptions that speak of every object
        self._subscription_ids: dict[tuple[int, str], int] = {}
        self._inline: dict[str, Place] = {}  # inline zones by id; the id is a hash of the shape
        self.live: dict[int, set[BindingKey]] = {}  # by object: those that an event anywhere can change
        self.rulebook = Rulebook(self)
        self.nearby = Nearby(self)

    # --- users and grants --------------------------------------------------------------------------

    def put_user(self, user_id: int, name: str, last_offset: int) -> None:
        self.users[user_id] = name
        self._user_ids[fold(name)] = user_id
        self.offsets.setdefault(user_id, last_offset)

    def user_id(self, name: str) -> int | None:
        return self._user_ids.get(fold(name))

    def put_grant(self, grant: Grant) -> None:
        self.grants.setdefault(grant.owner_id, {})[grant.id] = grant
        self.rulebook.forget(self.objects_of(grant.owner_id))
        self.nearby.grants_changed(grant.who_id)

    def remove_grant(self, owner_id: int, grant_id: int) -> None:
        grant = self.grants[owner_id].pop(grant_id)
        self.rulebook.forget(self.objects_of(owner_id))
        self.nearby.grants_changed(grant.who_id)

    def allows(self, owner_id: int, asker_id: int, operation: Operation) -> bool:
        grants = self.grants.get(owner_id, {}).values()
        return decide(Request(owner_id, asker_id, operation), grants).allowed

    def permitted_since(self, owner_id: int, asker_id: int) -> Instant:
        """When what the owner permits this asker last changed; 0 if nothing was ever granted, as to oneself."""
        grants = self.grants.get(owner_id, {}).values()
        return max((grant.created for grant in grants if grant.who_id == asker_id), default=0)

    # --- zones -------------------------------------------------------------------------------------

    def put_zone(self, zone: Zone, owner_id: int, changed: Instant = 0) -> None:
        key = str(zone.id)
        self.zones[key] = ZoneEntry(zone, owner_id, Place(zone.shape), changed)
        self._zone_ids[owner_id, fold(zone.local)] = key
        self.zones_of.setdefault(owner_id, set()).add(key)
        self.rulebook.fences.put_zone(key, zone.shape)
        self.rulebook.zones_changed(owner_id)
        self.nearby.zones_changed(owner_id)

    def remove_zone(self, zone_id: int) -> None:
        entry = self.zones.pop(str(zone_id))
        del self._zone_ids[entry.owner_id, fold(entry.zone.local)]
        self.zones_of[entry.owner_id].discard(str(zone_id))
        self._drop_states(key for key in self.states if key.target == str(zone_id))
        self.rulebook.fences.remove_zone(str(zone_id))
        self.rulebook.zones_changed(entry.owner_id)
        self.nearby.zones_changed(entry.owner_id)

    def zone(self, owner: str, local: str) -> ZoneEntry | None:
        owner_id = self.user_id(owner)
        key = None if owner_id is None else self._zone_ids.get((owner_id, fold(local)))
        return None if key is None else self.zones[key]

    def boundary(self, zone_id: str) -> Boundary:
        return self._place(zone_id).boundary

    def zone_version(self, zone_id: str) -> int:
        """0 for one that is written in a selector: such a zone never changes."""
        entry = self.zones.get(zone_id)
        return 0 if entry is None else entry.zone.version

    def zone_changed(self, zone_id: str) -> Instant:
        """When the zone last became what it is; 0 for one that is written in a selector."""
        entry = self.zones.get(zone_id)
        return 0 if entry is None else entry.changed

    def may_read_zone(self, entry: ZoneEntry, user_id: int) -> bool:
        return entry.owner_id in (user_id, self.system_id)

    # --- objects and agents ------------------------------------------------------------------------

    def put_object(self, entry: ObjectEntry) -> None:
        self.objects[entry.id] = entry
        self._object_ids[fold(entry.oid)] = entry.id
        self._objects_of.setdefault(entry.owner_id, set()).add(entry.id)
        self.nearby.put_object(entry)

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
        for key, zone in entry.inline.items():
            self._inline[key] = Place(zone.shape)
            self.rulebook.fences.put_zone(key, zone.shape)
        if entry.subjects is None:
            self.unnamed.add(entry.id)
            self.rulebook.subscription_changed(entry.id)
        else:
            for oid in entry.subjects:
                self.named.setdefault(oid, set()).add(entry.id)
        self.rulebook.forget(self._objects_meant(entry))
        self.nearby.put_subscription(entry)

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
        self.rulebook.forget(self._objects_meant(entry))
        self.unnamed.discard(entry.id)
        self.rulebook.forget_subscription(entry.id)
        self.nearby.remove_subscription(entry)
        for oid in entry.subjects or ():
            self.named[oid].discard(entry.id)

    # --- states ------------------------------------------------------------------------------------

    def put_state(self, key: BindingKey, state: OnceState) -> None:
        self.states[key] = state
        if state.pending is None:
            self.dwelling.discard(key)
        else:
            self.dwelling.add(key)
        if state.pending is None and state.inside is None:
            self.unsettled.discard(key)
        else:
            self.unsettled.add(key)
        if state.is_live:
            self.live.setdefault(key.object_id, set()).add(key)
        else:
            self._no_longer_live(key)

    def _drop_states(self, keys: Iterable[BindingKey]) -> None:
        for key in list(keys):
            del self.states[key]
            self.dwelling.discard(key)
            self.unsettled.discard(key)
            self._no_longer_live(key)

    def _no_longer_live(self, key: BindingKey) -> None:
        live = self.live.get(key.object_id)
        if live is not None:
            live.discard(key)
            if not live:
                del self.live[key.object_id]

    # --- what evaluating asks ------------------------------------------------------------------------

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
