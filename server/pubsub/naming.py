"""What bindings know by ids, in words: zones as selectors write them, and objects by their oids."""

from matcher.selector.causes import Names
from matcher.selector.format import format_zone_ref
from matcher.selector.tree import NamedZone, ZoneRef
from server.pubsub.entries import SubscriptionEntry
from server.pubsub.world import World

__all__ = ["names_of", "target_name"]


def target_name(world: World, entry: SubscriptionEntry, target: str) -> str | None:
    """What a binding is about, as its notifications say it; None is the whole list."""
    if not target:
        return None
    if target.startswith("o:"):
        return _oid(world, target)
    zone = world.zones.get(target)
    return format_zone_ref(entry.inline[target]) if zone is None else str(zone.zone.name)


def names_of(world: World, entry: SubscriptionEntry, oid: str) -> Names:
    """How to speak of a condition of this subscription for the object of that name."""
    return Names(oid, lambda zone_id: _zone_ref(world, entry, zone_id), lambda key: _oid(world, key))


def _oid(world: World, key: str) -> str:
    return world.objects[int(key[2:])].oid


def _zone_ref(world: World, entry: SubscriptionEntry, zone_id: str) -> ZoneRef:
    zone = world.zones.get(zone_id)
    return entry.inline[zone_id] if zone is None else NamedZone(zone.zone.owner, zone.zone.local)
