"""What the world in memory is made of: zones, subscriptions, objects and agents, each by an id that never changes."""

from dataclasses import dataclass, field

import msgspec

from matcher.events import Event
from matcher.once import Instant, Mode, Service, Tos
from matcher.places import Place
from matcher.selector.mentions import (
    depends_on_object,
    distances,
    inline_zones,
    negates_places,
    placed_oids,
    subjects,
    zone_refs,
)
from matcher.selector.tree import InlineZone, Selector
from privacy.policies import Operation
from zones.names import fold
from zones.zone import Zone

__all__ = [
    "OPERATION_OF",
    "AgentEntry",
    "BindingKey",
    "ObjectEntry",
    "SubscriptionEntry",
    "ZoneEntry",
    "distance_operations",
    "needed_operations",
    "object_key",
    "operations_by_oid",
]


class BindingKey(msgspec.Struct, frozen=True):
    """Immutable ids, never names. `target` is a zone's id, another object's (`object_key`), or empty for "the whole
    list"."""

    subscription_id: int
    object_id: int
    target: str


@dataclass
class ZoneEntry:
    zone: Zone
    owner_id: int
    place: Place
    changed: Instant = 0


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


def distance_operations(service: Service) -> tuple[Operation, ...]:
    """What the owners of both objects have to allow for a distance between them to be told."""
    return (Operation.DISTANCE, Operation.POSITION) if service.tos is Tos.EVERY else (Operation.DISTANCE,)


def operations_by_oid(service: Service, selector: Selector) -> dict[str, tuple[Operation, ...]]:
    """What has to be allowed of each object that the selector names, by the oid as written."""
    needed: dict[str, tuple[Operation, ...]] = {}
    for oid in placed_oids(selector):
        needed[oid] = needed_operations(service, selector)
    for term in distances(selector):
        for oid in (term.oid, *(term.others or ())):
            needed[oid] = tuple(dict.fromkeys((*needed.get(oid, ()), *distance_operations(service))))
    return needed


def object_key(object_id: int) -> str:
    """The id of an object where ids of zones stand as well; those are digits, or `i` and hex digits."""
    return f"o:{object_id}"


OPERATION_OF = {Mode.ENTER: Operation.ENTER, Mode.LEAVE: Operation.LEAVE, Mode.MATCH: Operation.POSITION}
