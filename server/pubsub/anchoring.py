"""Whose boundary a binding looks closer at, on the server: the zone of its target, from when on."""

from typing import TYPE_CHECKING

from matcher.anchors import Anchor, anchor_zone
from matcher.selector.tree import Condition
from server.pubsub.entries import BindingKey, SubscriptionEntry

if TYPE_CHECKING:
    from server.pubsub.world import World

__all__ = ["anchor_of"]


def anchor_of(world: "World", key: BindingKey, condition: Condition, subscription: SubscriptionEntry) -> Anchor | None:
    """None where the options of the subscription have no boundary to look at, which is the usual case."""
    zone = anchor_zone(key.target, condition, subscription.service)
    if zone is None:
        return None
    owner_id = world.objects[key.object_id].owner_id
    permitted = world.permitted_since(owner_id, subscription.subscriber_id)
    since = max(subscription.changed, world.zone_changed(zone), permitted)
    return Anchor(zone, world.boundary(zone), since=since)
