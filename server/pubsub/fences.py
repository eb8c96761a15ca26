"""Which bindings an event concerns because of where it is.

"An index over zones and a hash of interested objects per zone": the index says in which zones a point is, and for each
zone this knows the bindings that can hold nowhere else, of subscriptions that speak of everybody. (Those of
subscriptions that name an object are kept with that object, `server.pubsub.rules`.) A batch of events is looked up at
once.

The index is compiled code, which takes seconds to come to life when it was never used on a machine. Until `start` was
called a plain one answers: slower, and right.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from matcher.events import Event
from matcher.places import Places
from matcher.plain_zone_index import PlainZoneIndex
from matcher.planar import PlanarRegion
from zones.shapes import Point, Shape

__all__ = ["Fences", "Here", "Key"]

Key = tuple[int, str]  # a subscription's id, and the target of one of its bindings
_NOWHERE: frozenset[str] = frozenset()


class _ZoneIndex(Protocol):
    def put(self, key: str, shape: Shape) -> None: ...

    def remove(self, key: str) -> None: ...

    def covering(self, point: Point) -> list[Any]: ...

    def covering_many(self, lons: np.ndarray, lats: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def key_of(self, slot: int) -> Any: ...


class Fences:
    def __init__(self) -> None:
        self._shapes: dict[str, Shape] = {}
        self._index: _ZoneIndex = PlainZoneIndex()
        self._by_zone: dict[str, dict[Key, None]] = {}
        self._zones: dict[int, dict[str, frozenset[str]]] = {}  # by subscription and target
        self.is_asked = False  # about a place, so that a compiled index would be of use

    # --- zones -------------------------------------------------------------------------------------

    def put_zone(self, zone_id: str, shape: Shape) -> None:
        if self._shapes.get(zone_id) != shape:
            self._shapes[zone_id] = shape
            self._index.put(zone_id, shape)

    def remove_zone(self, zone_id: str) -> None:
        del self._shapes[zone_id]
        self._index.remove(zone_id)

    def start(self, make: Callable[[Iterable[tuple[str, Shape]]], _ZoneIndex]) -> None:
        """From now on use the index that this makes of all zones."""
        self._index = make(self._shapes.items())

    def knows(self, zone_id: str) -> bool:
        return zone_id in self._shapes

    # --- bindings ----------------------------------------------------------------------------------

    def put(self, subscription_id: int, zones: dict[str, frozenset[str]]) -> None:
        """The bindings of a subscription by their targets, each with its zones; those it had before go."""
        self.remove(subscription_id)
        self._zones[subscription_id] = zones
        for target, around in zones.items():
            for zone_id in around:
                self._by_zone.setdefault(zone_id, {})[subscription_id, target] = None

    def remove(self, subscription_id: int) -> None:
        for target, around in self._zones.pop(subscription_id, {}).items():
            for zone_id in around:
                keys = self._by_zone[zone_id]
                del keys[subscription_id, target]
                if not keys:
                    del self._by_zone[zone_id]

    def of(self, zone_id: str) -> Iterable[Key]:
        return self._by_zone.get(zone_id, ())

    # --- events ------------------------------------------------------------------------------------

    def zones_of(self, event: Event) -> frozenset[str]:
        """The zones in which an event is."""
        if event.loc is None or not self._shapes:
            return _NOWHERE
        self.is_asked = True
        return frozenset(self._index.covering(event.loc))

    def zones_of_all(self, events: Sequence[Event]) -> list[frozenset[str]]:
        """The same for each of several."""
        if len(events) == 1:
            return [self.zones_of(events[0])]
        found = [_NOWHERE] * len(events)
        located = [(row, event.loc) for row, event in enumerate(events) if event.loc is not None]
        if not located or not self._shapes:
            return found
        self.is_asked = True
        points = np.array([loc for _, loc in located])
        rows, slots = self._index.covering_many(points[:, 0], points[:, 1])
        by_row: dict[int, list[str]] = {}
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            by_row.setdefault(row, []).append(self._index.key_of(slot))
        for row, keys in by_row.items():
            found[located[row][0]] = frozenset(keys)
        return found


class Here:
    """Places, for an event of which is known in what zones it is."""

    __slots__ = ("_loc", "_places", "_zones")

    def __init__(self, places: Places, event: Event, zones: frozenset[str]) -> None:
        self._places, self._loc, self._zones = places, event.loc, zones

    def covers(self, zone: str, point: Point) -> bool:
        return zone in self._zones if point is self._loc else self._places.covers(zone, point)

    def region(self, zone: str) -> PlanarRegion:
        return self._places.region(zone)
