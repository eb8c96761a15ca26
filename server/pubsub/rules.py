"""Which bindings an event, or the passing of time, can change: the part of the world that is worked out.

A selector is bound to an object when somebody asks, and that is remembered until a subscription, a zone or a grant
changes. Subscriptions that name objects are found by the oid, those that speak of everybody by the zones an event is in
(`server.pubsub.fences`) and by the matching engine (`server.pubsub.candidates`), as far as these know something about
them. What holds already is always looked at, because it may have to leave. Bindings that depend on other objects are
`server.pubsub.nearby`'s.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matcher.compilation import Compiled, compile_condition
from matcher.confinement import is_settled_by_position, zones_around
from matcher.evaluation import Rule
from matcher.events import Event
from matcher.selector.binding import Bound, bind, bind_anybody
from matcher.selector.conditions import depends_on_others
from matcher.selector.tree import Condition, Const, NamedZone, ZoneSet, ZoneTag
from server.pubsub.anchoring import anchor_of
from server.pubsub.candidates import Candidates
from server.pubsub.entries import BindingKey, SubscriptionEntry
from server.pubsub.fences import Fences, Key
from zones.names import fold

if TYPE_CHECKING:
    from server.pubsub.world import World

__all__ = ["Directory", "Rulebook"]

_NEVER = Const(False)
_MOST_MADE = 256


@dataclass
class _Watch:
    """What is bound to one object: to be looked at for each of its events, or only in certain zones."""

    standing: list[Rule[BindingKey]] = field(default_factory=list)
    fenced: dict[str, list[Rule[BindingKey]]] = field(default_factory=dict)  # by zone; of subscriptions that name it
    fences: dict[BindingKey, Rule[BindingKey]] = field(default_factory=dict)  # the same by their keys
    made: dict[Key, Rule[BindingKey] | None] = field(default_factory=dict)  # of those that speak of everybody


class Rulebook:
    """See the module's docstring. The world tells it what has changed."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.candidates = Candidates()
        self.fences = Fences()
        self._rules: dict[int, list[Rule[BindingKey]]] = {}
        self._watches: dict[int, _Watch] = {}
        self._standing: set[int] = set()  # of the unnamed, those with bindings that nothing is known about
        self._indexed: dict[int, dict[str, Bound]] = {}  # of the unnamed, those of candidates and of fences
        self._stale: set[int] = set()  # subscriptions for which these two are to be worked out anew
        self._stale_owners: set[str] = set()  # and all that name zones of these users
        self.handles: dict[int, dict[str, BindingKey]] = {}  # of objects with agents; kept by the controller

    @property
    def wants_engine(self) -> bool:
        """Whether compiled code would be of use."""
        return len(self.candidates) > 0 or self.fences.is_asked

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

    def rules_at(
        self, object_id: int, event: Event | None = None, zones: frozenset[str] = frozenset()
    ) -> list[Rule[BindingKey]]:
        """Those of `rules` that can change something now: with this event, which is in these zones, or without one by
        the passing of time."""
        self._refresh_candidates()
        watch = self._watches.get(object_id)
        if watch is None:
            watch = self._watches[object_id] = self._watch(object_id)
        live = self._world.live.get(object_id, ())
        if not live and not zones and not len(self.candidates):
            return watch.standing  # as most fixes are: in no zone, and never were
        chosen: dict[Key, Rule[BindingKey] | None] = {}
        for key in live:
            rule = watch.fences.get(key)
            at = (key.subscription_id, key.target)
            chosen[at] = self._made(watch, object_id, at) if rule is None else rule
        if event is not None:
            for zone_id in zones:
                for rule in watch.fenced.get(zone_id, ()):
                    chosen[rule.key.subscription_id, rule.key.target] = rule
                for at in self.fences.of(zone_id):
                    if at not in chosen:
                        chosen[at] = self._made(watch, object_id, at)
            if len(self.candidates):
                for at in self.candidates.of(event):
                    if at not in chosen:
                        chosen[at] = self._made(watch, object_id, at)
        more = [rule for rule in chosen.values() if rule is not None]
        if not more:
            return watch.standing
        if len(more) == 1 and not watch.standing:
            return more
        return sorted((*watch.standing, *more), key=_order)

    def _watch(self, object_id: int) -> _Watch:
        watch = _Watch()
        for subscription in self._subscriptions_about(object_id, self._standing):
            if not self._is_evaluated(object_id, subscription):
                continue
            indexed = self._indexed.get(subscription.id, ())
            for rule in self._bindings(object_id, subscription):
                if rule.key.target in indexed:
                    continue
                around = self._around(rule.condition, subscription, rule.key.target)
                if around is not None:
                    watch.fences[rule.key] = rule
                    for zone_id in around:
                        watch.fenced.setdefault(zone_id, []).append(rule)
                elif self._can_change(rule):
                    watch.standing.append(rule)
        return watch

    def _made(self, watch: _Watch, object_id: int, at: Key) -> Rule[BindingKey] | None:
        """The rule of one of the indexed bindings for this object; None if there is none, or not for it."""
        try:
            return watch.made[at]
        except KeyError:
            pass
        subscription_id, target = at
        bound = self._indexed.get(subscription_id, {}).get(target)
        rule = None
        if bound is not None and not depends_on_others(bound.condition):
            subscription = self._world.subscriptions[subscription_id]
            if self._is_evaluated(object_id, subscription):
                if subscription.depends_on_object:
                    rule = next(iter(self._bindings(object_id, subscription, (target,))), None)
                else:
                    rule = self._rule(BindingKey(subscription_id, object_id, target), bound.condition)
        if len(watch.made) >= _MOST_MADE:
            watch.made.clear()
        watch.made[at] = rule
        return rule

    def _around(self, condition: Condition, subscription: SubscriptionEntry, target: str) -> frozenset[str] | None:
        """The zones outside of which a binding is false, and stays so; None if it has to be looked at anywhere."""
        zones = zones_around(condition)
        if zones is None or not is_settled_by_position(subscription.service):
            return None
        if subscription.service.has_dead_band and target:
            zones |= {target}  # where it begins to count as inside, whether or not other terms hold
        return zones if all(map(self.fences.knows, zones)) else None

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

    def bindings_of(self, object_id: int, subscription: SubscriptionEntry) -> Iterator[Rule[BindingKey]]:
        """What one subscription has of an object, whether or not it is evaluated now."""
        self._refresh_candidates()
        return self._bindings(object_id, subscription)

    def bounds_for_messages(self, subscription: SubscriptionEntry) -> Iterable[Bound]:
        """What one subscription that speaks of everybody has for messages without an object."""
        self._refresh_candidates()
        return self._bounds(subscription, "")

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
            if (targets is None or bound.target in targets) and not depends_on_others(bound.condition):
                key = BindingKey(subscription.id, object_id, bound.target)
                yield self._rule(key, bound.condition)

    def _rule(self, key: BindingKey, condition: Condition) -> Rule[BindingKey]:
        subscription = self._world.subscriptions[key.subscription_id]
        anchor = anchor_of(self._world, key, condition, subscription)
        return Rule(key, condition, subscription.service, anchor=anchor)

    def _bounds(self, subscription: SubscriptionEntry, oid: str) -> Iterable[Bound]:
        indexed = self._indexed.get(subscription.id, {})
        if indexed and not subscription.depends_on_object and subscription.id not in self._standing:
            return indexed.values()  # all there are, and the same for everybody
        return bind(subscription.selector, oid, Directory(self._world, subscription.subscriber_id))

    # --- what is remembered of bindings --------------------------------------------------------------

    def _refresh_candidates(self) -> None:
        if self._stale_owners:
            changed, subscriptions = self._stale_owners, self._world.subscriptions
            self._stale.update(key for key in self._world.unnamed if subscriptions[key].zone_owners & changed)
            self._stale_owners = set()
        for subscription_id in self._stale:
            subscription = self._world.subscriptions[subscription_id]
            bounds = bind_anybody(subscription.selector, Directory(self._world, subscription.subscriber_id))
            fenced: dict[str, frozenset[str]] = {}
            known: dict[str, Compiled] = {}
            for bound in bounds:
                around = self._around(bound.condition, subscription, bound.target)
                if around is not None:
                    fenced[bound.target] = around
                else:
                    compiled = compile_condition(bound.condition, self._world.region)
                    # With a dead band an event counts although other terms do not hold: it may begin to be inside.
                    if not compiled.is_always and not subscription.service.has_dead_band:
                        known[bound.target] = compiled
            self.candidates.put(subscription_id, known)
            self.fences.put(subscription_id, fenced)
            self._indexed[subscription_id] = {
                bound.target: bound for bound in bounds if bound.target in known or bound.target in fenced
            }
            if len(known) + len(fenced) < len(bounds):
                self._standing.add(subscription_id)
            else:
                self._standing.discard(subscription_id)
        if self._stale:
            self._watches.clear()
        self._stale.clear()

    def subscription_changed(self, subscription_id: int) -> None:
        """One that speaks of everybody is new, or another."""
        self._stale.add(subscription_id)

    def forget_subscription(self, subscription_id: int) -> None:
        self.candidates.remove(subscription_id)
        self.fences.remove(subscription_id)
        self._indexed.pop(subscription_id, None)
        self._standing.discard(subscription_id)
        self._stale.discard(subscription_id)

    def forget(self, object_ids: Iterable[int]) -> None:
        """What was bound to these objects is no longer right."""
        for object_id in list(object_ids):
            self._rules.pop(object_id, None)
            self._watches.pop(object_id, None)
            self.handles.pop(object_id, None)

    def zones_changed(self, owner_id: int) -> None:
        """Zones of this owner are others now, or have another shape."""
        self._rules.clear()
        self._watches.clear()
        self.handles.clear()
        self._stale_owners.add(fold(self._world.users[owner_id]))


def _order(rule: Rule[BindingKey]) -> tuple[int, int, str]:
    """By subscription, then by zone in the order in which they were made."""
    return rule.key.subscription_id, len(rule.key.target), rule.key.target


class Directory:
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
