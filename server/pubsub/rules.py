"""Which bindings an event, or the passing of time, can change: the part of the world that is worked out.

A selector is bound to an object when somebody asks, and that is remembered until a subscription, a zone or a grant
changes. Subscriptions that name objects are found by the oid. Those that speak of everybody are found by the
matching engine (`server.pubsub.candidates`), as far as it knows something about them; what holds already is always
looked at, because it may have to leave.
"""

from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING

from matcher.compilation import compile_condition
from matcher.evaluation import Rule
from matcher.events import Event
from matcher.selector.binding import Bound, bind, bind_anybody
from matcher.selector.tree import Const, NamedZone, ZoneSet, ZoneTag
from server.pubsub.candidates import Candidates
from server.pubsub.entries import BindingKey, SubscriptionEntry
from zones.names import fold

if TYPE_CHECKING:
    from server.pubsub.world import World

__all__ = ["Rulebook"]

_NEVER = Const(False)


class Rulebook:
    """See the module's docstring. The world tells it what has changed."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.candidates = Candidates()
        self._rules: dict[int, list[Rule[BindingKey]]] = {}
        self._standing_rules: dict[int, list[Rule[BindingKey]]] = {}
        self._standing: set[int] = set()  # of the unnamed, those with bindings that are not among the candidates
        self._indexed: dict[int, dict[str, Bound]] = {}  # of the unnamed, the bindings that are
        self._stale: set[int] = set()  # subscriptions for which these two are to be worked out anew
        self._stale_owners: set[str] = set()  # and all that name zones of these users
        self.handles: dict[int, dict[str, BindingKey]] = {}  # of objects with agents; kept by the controller

    def rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """The bindings of an object that are to be evaluated now, whoever does it."""
        rules = self._rules.get(object_id)
        if rules is None:
            self._refresh_candidates()
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
        live = ((key.subscription_id, key.target) for key in self._world.live.get(object_id, ()))
        wanted = {(number, target) for number, target in live if target in self._indexed.get(number, ())}
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
            if self._is_evaluated(object_id, self._world.subscriptions[subscription_id])
            for rule in self._bindings(object_id, self._world.subscriptions[subscription_id], targets[subscription_id])
        ]
        return sorted((*standing, *more), key=_subscription_id)

    def bindings_of_message(self, owner_id: int, event: Event) -> Iterator[tuple[SubscriptionEntry, Bound]]:
        """What a message without an object may match: bindings of subscriptions that speak of everybody."""
        self._refresh_candidates()
        wanted = set(self.candidates.of(event))
        for subscription_id in sorted(self._standing.union(key for key, _ in wanted)):
            subscription = self._world.subscriptions[subscription_id]
            if subscription.paused or not self._world.allows_all(owner_id, subscription):
                continue
            indexed = self._indexed.get(subscription_id, ())
            for bound in self._bounds(subscription, ""):
                if bound.target not in indexed or (subscription_id, bound.target) in wanted:
                    yield subscription, bound

    def all_rules(self, object_id: int) -> list[Rule[BindingKey]]:
        """Every binding of an object, also of subscriptions that are paused or no longer permitted."""
        self._refresh_candidates()
        about = self._subscriptions_about(object_id)
        return [rule for subscription in about for rule in self._bindings(object_id, subscription)]

    def _subscriptions_about(self, object_id: int, unnamed: set[int] | None = None) -> list[SubscriptionEntry]:
        named = self._world.named.get(fold(self._world.objects[object_id].oid), set())
        unnamed = self._world.unnamed if unnamed is None else unnamed
        return [self._world.subscriptions[key] for key in sorted(unnamed | named)]

    def _is_evaluated(self, object_id: int, subscription: SubscriptionEntry) -> bool:
        return not subscription.paused and self._world.allows_all(self._world.objects[object_id].owner_id, subscription)

    def _can_change(self, rule: Rule[BindingKey]) -> bool:
        """Not if it never holds, and has nothing to leave."""
        return rule.condition != _NEVER or rule.key in self._world.live.get(rule.key.object_id, ())

    def _bindings(
        self, object_id: int, subscription: SubscriptionEntry, targets: Container[str] | None = None
    ) -> Iterator[Rule[BindingKey]]:
        for bound in self._bounds(subscription, self._world.objects[object_id].oid):
            if targets is None or bound.target in targets:
                key = BindingKey(subscription.id, object_id, bound.target)
                yield Rule(key, bound.condition, subscription.service)

    def _bounds(self, subscription: SubscriptionEntry, oid: str) -> Iterable[Bound]:
        indexed = self._indexed.get(subscription.id, {})
        if indexed and not subscription.depends_on_object and subscription.id not in self._standing:
            return indexed.values()  # all there are, and the same for everybody
        return bind(subscription.selector, oid, _Directory(self._world, subscription.subscriber_id))

    # --- what is remembered of bindings --------------------------------------------------------------

    def _refresh_candidates(self) -> None:
        if self._stale_owners:
            changed, subscriptions = self._stale_owners, self._world.subscriptions
            self._stale.update(key for key in self._world.unnamed if subscriptions[key].zone_owners & changed)
            self._stale_owners = set()
        for subscription_id in self._stale:
            subscription = self._world.subscriptions[subscription_id]
            bounds = bind_anybody(subscription.selector, _Directory(self._world, subscription.subscriber_id))
            compiled = {bound.target: compile_condition(bound.condition, self._world.region) for bound in bounds}
            known = {target: each for target, each in compiled.items() if not each.is_always}
            self.candidates.put(subscription_id, known)
            self._indexed[subscription_id] = {bound.target: bound for bound in bounds if bound.target in known}
            if len(known) < len(bounds):
                self._standing.add(subscription_id)
            else:
                self._standing.discard(subscription_id)
        self._stale.clear()

    def subscription_changed(self, subscription_id: int) -> None:
        """One that speaks of everybody is new, or another."""
        self._stale.add(subscription_id)

    def forget_subscription(self, subscription_id: int) -> None:
        self.candidates.remove(subscription_id)
        self._indexed.pop(subscription_id, None)
        self._standing.discard(subscription_id)
        self._stale.discard(subscription_id)

    def forget(self, object_ids: Iterable[int]) -> None:
        """What was bound to these objects is no longer right."""
        for object_id in list(object_ids):
            self._rules.pop(object_id, None)
            self._standing_rules.pop(object_id, None)
            self.handles.pop(object_id, None)

    def zones_changed(self, owner_id: int) -> None:
        """Zones of this owner are others now, or have another shape."""
        self._rules.clear()
        self._standing_rules.clear()
        self.handles.clear()
        self._stale_owners.add(fold(self._world.users[owner_id]))


def _subscription_id(rule: Rule[BindingKey]) -> int:
    return rule.key.subscription_id


class _Directory:
    """Zones as one subscriber may name them: SYSTEM's and their own."""

    def __init__(self, world: "World", subscriber_id: int) -> None:
        self._world = world
        self._subscriber_id = subscriber_id

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        world = self._world
        owner_id = world.user_id(ref.owner)
        if owner_id is None or owner_id not in (self._subscriber_id, world.system_id):
            return ()
        if isinstance(ref, NamedZone):
            entry = world.zone(ref.owner, ref.local)
            return () if entry is None else (str(entry.zone.id),)
        keys = world.zones_of.get(owner_id, set())
        if isinstance(ref, ZoneTag):
            keys = {key for key in keys if ref.tag in world.zones[key].zone.tags}
        return tuple(sorted(keys, key=int))
