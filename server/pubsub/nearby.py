"""Which bindings speak of two objects, and so are touched by the events of both: the trigger graph of the world.

Kept up with subscriptions, grants, zones and objects: what they change is worked out anew before the next event. An
object that appears adds its own edges and leaves the others alone, so that "every object I may see" stays payable.

Privacy: both owners must allow `distance` to the subscriber. Where one of them does not, there is no edge; where a
condition names somebody who is not to be seen, that distance is UNKNOWN. What a grant allows is asked when edges are
made (a change of grants makes them anew), when an edge is recorded, and before each delivery.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from matcher.evaluation import Rule
from matcher.once import Instant, Mode
from matcher.proximity import Proximity, Tie
from matcher.selector.binding import Bound, bind
from matcher.selector.conditions import depends_on_others, leaves, zones_in
from matcher.selector.mentions import distances
from matcher.selector.tree import Near
from privacy.policies import Operation
from server.pubsub.entries import (
    OPERATION_OF,
    BindingKey,
    ObjectEntry,
    SubscriptionEntry,
    distance_operations,
    object_key,
)
from server.pubsub.rules import Directory
from zones.names import fold

if TYPE_CHECKING:
    from server.pubsub.world import World

__all__ = ["Need", "Nearby"]

Need = tuple[int, Operation]  # of an owner


class Nearby:
    """See the module's docstring. The world tells it what has changed."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.proximity: Proximity[BindingKey] = Proximity(world)
        self._named: dict[str, set[int]] = {}  # subscriptions by the folded oids in their distances
        self._starred: set[int] = set()  # those that speak of the distance to everybody
        self._whole: set[int] = set()  # those with conditions on several others: an object more changes what was bound
        self._ties: dict[int, dict[BindingKey, Tie[BindingKey]]] = {}
        self._expiring: dict[int, Instant] = {}
        self._next_expiry: Instant | None = None
        self._stale: set[int] = set()
        self._stale_owners: set[str] = set()  # and all that name zones of these users,
        self._stale_askers: set[int] = set()  # and all of these subscribers
        self._touched: set[int] = set()  # objects that may have got their first edge, or lost their last one

    # --- what evaluating asks --------------------------------------------------------------------------

    def tie(self, key: BindingKey) -> Tie[BindingKey] | None:
        """The binding of this key, if it is one that depends on others and is evaluated now."""
        return self._ties.get(key.subscription_id, {}).get(key)

    def rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """The bindings of this object that depend on others."""
        ties = self.proximity.ties(object_key(object_id))
        return [tie.rule for tie in ties if tie.key.object_id == object_id]

    def is_watched(self, object_id: int) -> bool:
        """Whether somebody is told of a distance to this object."""
        return bool(self._ties) and self.proximity.is_linked(object_key(object_id))

    def needs(self, tie: Tie[BindingKey], mode: Mode) -> tuple[Need, ...]:
        """What has to be allowed for an edge of this binding to be told."""
        world, key = self._world, tie.key
        operations = [Operation.DISTANCE, *([Operation.POSITION] if mode is Mode.MATCH else [])]
        left = world.objects[key.object_id].owner_id
        found = [(left, operation) for operation in operations]
        if any(True for _ in zones_in(tie.rule.condition)):
            found.append((left, OPERATION_OF[mode]))
        for other in tie.others:
            owner_id = world.objects[_object_id(other)].owner_id
            found += [(owner_id, operation) for operation in operations]
        return tuple(dict.fromkeys(found))

    # --- what changes ----------------------------------------------------------------------------------

    def refresh(self, now: Instant) -> None:
        """Make the edges of what has changed. Cheap if nothing has."""
        if self._next_expiry is not None and self._next_expiry <= now:
            self._stale.update(key for key, instant in self._expiring.items() if instant <= now)
        if self._stale_owners or self._stale_askers:
            self._stale.update(filter(self._is_stale, self._ties))
            self._stale_owners, self._stale_askers = set(), set()
        if self._stale:
            for subscription_id in sorted(self._stale):
                self._unlink(subscription_id)
                self._link(self._world.subscriptions[subscription_id], now)
            self._stale.clear()

    def changed_objects(self) -> set[int]:
        """Objects whose edges have changed since this was asked last."""
        touched, self._touched = self._touched, set()
        return touched

    def put_subscription(self, entry: SubscriptionEntry) -> None:
        terms = distances(entry.selector)
        if not terms:
            return
        for term in terms:
            for oid in (term.oid, *(term.others or ())):
                self._named.setdefault(fold(oid), set()).add(entry.id)
            if term.others is None:
                self._starred.add(entry.id)
        self._stale.add(entry.id)

    def remove_subscription(self, entry: SubscriptionEntry) -> None:
        for term in distances(entry.selector):
            for oid in (term.oid, *(term.others or ())):
                self._named.get(fold(oid), set()).discard(entry.id)
        self._starred.discard(entry.id)
        self._unlink(entry.id)
        self._stale.discard(entry.id)

    def grants_changed(self, who_id: int) -> None:
        """Somebody has granted something to this subscriber, or revoked it."""
        self._stale_askers.add(who_id)

    def zones_changed(self, owner_id: int) -> None:
        """Zones of this owner are others now, or have another shape."""
        self._stale_owners.add(fold(self._world.users[owner_id]))

    def put_object(self, entry: ObjectEntry) -> None:
        """An object is there that was not."""
        folded = fold(entry.oid)
        for subscription_id in self._named.get(folded, set()) | self._starred:
            if subscription_id in self._stale:
                continue
            subscription = self._world.subscriptions[subscription_id]
            is_left = any(fold(term.oid) == folded for term in distances(subscription.selector))
            if is_left or subscription_id in self._whole:
                self._stale.add(subscription_id)
            else:
                self._link_to(subscription, entry)

    # --- edges -----------------------------------------------------------------------------------------

    def _is_stale(self, subscription_id: int) -> bool:
        subscription = self._world.subscriptions[subscription_id]
        return subscription.subscriber_id in self._stale_askers or bool(subscription.zone_owners & self._stale_owners)

    def _link(self, subscription: SubscriptionEntry, now: Instant) -> None:
        self._ties[subscription.id] = {}
        expires = subscription.service.expires
        if expires is not None and now < expires:
            self._expiring[subscription.id] = expires
            self._next_expiry = min(self._expiring.values())
        if subscription.paused or (expires is not None and expires <= now):
            return
        for left in self._lefts(subscription):
            for bound in self._bounds(subscription, left):
                self._add(subscription, left, bound)

    def _link_to(self, subscription: SubscriptionEntry, other: ObjectEntry) -> None:
        is_over = subscription.service.expires is not None and subscription.id not in self._expiring
        if subscription.paused or is_over:
            return
        for left in self._lefts(subscription):
            for bound in self._bounds(subscription, left, other.oid):
                if bound.target == object_key(other.id):
                    self._add(subscription, left, bound)

    def _add(self, subscription: SubscriptionEntry, left: ObjectEntry, bound: Bound) -> None:
        is_pair = bound.target.startswith("o:")
        if not is_pair and not depends_on_others(bound.condition):
            return  # the agent's affair, or the rulebook's
        if any(True for _ in zones_in(bound.condition)) and not self._world.allows_all(left.owner_id, subscription):
            return
        key = BindingKey(subscription.id, left.id, bound.target)
        rule = Rule(key, bound.condition, subscription.service)
        tie = Tie(rule, object_key(left.id), target=bound.target if is_pair else "")
        if not is_pair or sum(isinstance(leaf, Near) for leaf in leaves(bound.condition)) > 1:
            self._whole.add(subscription.id)
        self._ties[subscription.id][key] = tie
        for mover in tie.objects:
            self._place(mover)
        self.proximity.link(tie)
        self._touched.update(map(_object_id, tie.objects))

    def _place(self, mover: str) -> None:
        """Where it was last: the cache follows those with edges only."""
        last = self._world.objects[_object_id(mover)].last
        known = self.proximity.sighting(mover)
        if last is not None and (known is None or known.ts < last.ts):
            self.proximity.place(mover, last)

    def _unlink(self, subscription_id: int) -> None:
        for tie in self._ties.pop(subscription_id, {}).values():
            self.proximity.unlink(tie)
            self._touched.update(map(_object_id, tie.objects))
        self._whole.discard(subscription_id)
        if self._expiring.pop(subscription_id, None) is not None:
            self._next_expiry = min(self._expiring.values(), default=None)

    def _lefts(self, subscription: SubscriptionEntry) -> Iterator[ObjectEntry]:
        """The objects on the left of its distances, if they are there and to be seen."""
        seen = _Seen(self._world, subscription)
        for folded in dict.fromkeys(fold(term.oid) for term in distances(subscription.selector)):
            entry = self._world.object(folded)
            if entry is not None and seen.is_seen(entry):
                yield entry

    def _bounds(
        self, subscription: SubscriptionEntry, left: ObjectEntry, other: str | None = None
    ) -> tuple[Bound, ...]:
        directory = Directory(self._world, subscription.subscriber_id)
        return bind(subscription.selector, left.oid, directory, _Seen(self._world, subscription), other=other)


class _Seen:
    """The objects whose distances a subscriber may know."""

    def __init__(self, world: "World", subscription: SubscriptionEntry) -> None:
        self._world = world
        self._asker_id = subscription.subscriber_id
        self._operations = distance_operations(subscription.service)
        self._owners: dict[int, bool] = {}

    def other(self, oid: str) -> str | None:
        entry = self._world.object(oid)
        return object_key(entry.id) if entry is not None and self.is_seen(entry) else None

    def others(self) -> tuple[str, ...]:
        return tuple(object_key(entry.id) for entry in self._world.objects.values() if self.is_seen(entry))

    def is_seen(self, entry: ObjectEntry) -> bool:
        owner_id = entry.owner_id
        if owner_id not in self._owners:
            allows, asker_id = self._world.allows, self._asker_id
            self._owners[owner_id] = all(allows(owner_id, asker_id, operation) for operation in self._operations)
        return self._owners[owner_id]


def _object_id(key: str) -> int:
    return int(key[2:])
