"""Who is inside now, and since when: what a subscription knows without anything having to happen.

That an object is inside says that it has come and that it has not left. So it is for subscribers who may know of both,
at the time they ask. Of objects with agents the last that was reported is known here. `first` stops looking after its
enter and `every` never looks back: they know of nobody who is inside.
"""

from collections.abc import Iterator

import msgspec

from matcher.instants import format_instant
from matcher.once import Tos, is_over
from privacy.policies import Operation
from server.errors import OptionInvalid
from server.pubsub.entries import BindingKey, ObjectEntry, SubscriptionEntry
from server.pubsub.identifiers import notification_id
from server.pubsub.naming import target_name
from server.pubsub.pages import Page, after_of, cursor_of
from server.pubsub.subscriptions import find_subscription
from server.pubsub.work import Work
from server.pubsub.world import World
from server.store.accounts import Account
from zones.names import fold

__all__ = ["Inside", "Standing", "read_standing"]


class Inside(msgspec.Struct, frozen=True):
    oid: str
    target: str | None
    since: str
    visit: str  # the id of its enter, which its leave will name too


class Standing(msgspec.Struct, frozen=True):
    id: str
    paused: bool
    expired: bool
    items: tuple[Inside, ...]
    next: str | None


def read_standing(work: Work, account: Account, name: str, page: Page) -> Standing:
    """The objects that are inside now, by their names, as far as the subscriber may know; nothing is changed."""
    entry = find_subscription(work, account, name)
    if entry.service.tos is not Tos.ONCE:
        raise OptionInvalid(
            f"A subscription with tos '{entry.service.tos}' does not know who is inside.",
            hint="Use tos 'once'.",
            option="tos",
        )
    first_oid, first = after_of(page.after)
    found: list[tuple[str, int, Inside]] = []
    more = False
    for thing, keys in _live(work.world, entry, page.oid):
        folded = fold(thing.oid)
        if folded < first_oid:
            continue
        for place, key in enumerate(keys):
            if folded == first_oid and place <= first:
                continue
            shown = _inside(work.world, entry, thing, key)
            if page.target is not None and shown.target != page.target:
                continue
            more = len(found) == page.limit
            if more:
                break
            found.append((folded, place, shown))
        if more:
            break
    return Standing(
        id=entry.name,
        paused=entry.paused,
        expired=is_over(entry.service, work.now),
        items=tuple(shown for _, _, shown in found),
        next=cursor_of(found[-1][0], found[-1][1]) if more else None,
    )


def _live(world: World, entry: SubscriptionEntry, oid: str | None) -> Iterator[tuple[ObjectEntry, list[BindingKey]]]:
    """Objects that may be known of, with the bindings of this subscription that hold, both in an order that stays."""
    things = (world.objects[object_id] for object_id in world.objects_meant(entry) if object_id in world.live)
    allowed: dict[int, bool] = {}
    for thing in sorted(things, key=lambda thing: fold(thing.oid)):
        if oid is not None and fold(thing.oid) != oid:
            continue
        keys = [key for key in world.live[thing.id] if key.subscription_id == entry.id and world.states[key].holds]
        keys = [key for key in keys if _may_know(world, entry, thing.owner_id, key, allowed)]
        if keys:
            yield thing, sorted(keys, key=lambda key: (len(key.target), key.target))


def _may_know(world: World, entry: SubscriptionEntry, owner_id: int, key: BindingKey, allowed: dict[int, bool]) -> bool:
    """Both edges, by each owner it is about; of a distance, the distance."""
    tie = world.nearby.tie(key)
    if key.target.startswith("o:") or tie is not None:
        # Evaluated now means permitted by all owners: who is not, or no longer, has no tie.
        return tie is not None
    if owner_id not in allowed:
        both = (Operation.ENTER, Operation.LEAVE)
        allowed[owner_id] = all(world.allows(owner_id, entry.subscriber_id, operation) for operation in both)
    return allowed[owner_id]


def _inside(world: World, entry: SubscriptionEntry, thing: ObjectEntry, key: BindingKey) -> Inside:
    state = world.states[key]
    assert state.since is not None
    assert state.visit is not None
    visit = notification_id(world.secret, key, state.visit)
    return Inside(thing.oid, target_name(world, entry, key.target), format_instant(state.since), visit)
