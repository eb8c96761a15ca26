"""The zone a binding is about, for subscriptions that look closer at its boundary: dead band and crossing.

A binding of `within` has one zone, its target. With a dead band that zone counts as entered only when the object is
deeper in it than the band, and as left only when it is further outside than the band; in between it counts as it did.
This replaces the answer to "is the object in that zone", in whichever term of the condition it is asked, and nothing
else: every answer is still TRUE or FALSE where the event has a place, so three-valued logic and the other terms go
on as before. Other zones and relations are as they are drawn.

The band is `hysteresis_m` and `unc_factor` times the event's `unc`, but never wider than half of how deep one can be in
the zone (in the narrowest part of it): who goes through the middle of a zone has always been in it.

With `crossing` the way between two events counts: the straight line in lon and lat. docs/decisions/0009 has the
reasons.
"""

from dataclasses import dataclass

import msgspec

from matcher.events import Event
from matcher.once import Instant, Service
from matcher.places import Places
from matcher.planar import PlanarRegion
from matcher.selector.conditions import leaves
from matcher.selector.tree import Condition, InZones
from zones.boundaries import Boundary
from zones.crossings import along, stretches_in
from zones.shapes import Point

__all__ = ["MAX_CROSSING_MS", "Anchor", "Counting", "Passage", "anchor_zone", "counts_as_inside", "passages"]

MAX_CROSSING_MS = 300_000  # who was silent for longer may have gone another way


@dataclass(frozen=True, slots=True)
class Anchor:
    """The binding's zone, with its boundary.

    `widest_m` is the widest band the zone allows, if somebody else has worked it out. Events up to `since` are not
    looked back at: the subscriber had not asked, or was not allowed to know, or the zone was another.
    """

    zone: str
    boundary: Boundary
    widest_m: float | None = None
    since: Instant | None = None

    def band_m(self, service: Service, unc: float | None) -> float:
        wanted = service.hysteresis_m + service.unc_factor * (unc or 0.0)
        return min(wanted, self.boundary.widest_band_m if self.widest_m is None else self.widest_m) if wanted else 0.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A stay in the zone between two events: from when to when, and the later event as it would have been then."""

    begin: Instant
    end: Instant
    entering: Event
    leaving: Event
    before: Event
    after: Event

    def at(self, ts: Instant) -> Event:
        """The later event, at the place where the object was at that time."""
        return _placed(self.before, self.after, (ts - self.before.ts) / (self.after.ts - self.before.ts))


def anchor_zone(target: str, condition: Condition, service: Service) -> str | None:
    """The zone that the options of the service look closer at; None if they have nothing to look at."""
    if not target or not (service.has_dead_band or service.crossing):
        return None
    within = (leaf for leaf in leaves(condition) if isinstance(leaf, InZones))
    return target if any(target in leaf.zones for leaf in within) else None


def counts_as_inside(anchor: Anchor, service: Service, was: bool, event: Event) -> bool:
    """Whether the object counts as in the zone now; `was` is what was the case before. The event has a place."""
    assert event.loc is not None
    covered = anchor.boundary.area.covers(event.loc)
    if covered is was:
        return was
    band_m = anchor.band_m(service, event.unc)
    return covered if anchor.boundary.distance_m(event.loc) >= band_m else was


def passages(anchor: Anchor, service: Service, before: Event, after: Event) -> list[Passage]:
    """The stays in the zone between two events that are both outside of it, in order."""
    gap_ms = after.ts - before.ts
    if before.loc is None or after.loc is None or not 0 < gap_ms <= MAX_CROSSING_MS:
        return []
    if anchor.since is not None and before.ts <= anchor.since:
        return []
    found = stretches_in(anchor.boundary, before.loc, after.loc)
    covers = anchor.boundary.area.covers
    if not found or covers(before.loc) or covers(after.loc):
        return []
    band_m = anchor.band_m(service, after.unc)
    return [
        Passage(
            begin=before.ts + round(begin * gap_ms),
            end=before.ts + round(end * gap_ms),
            entering=_placed(before, after, begin),
            leaving=_placed(before, after, end),
            before=before,
            after=after,
        )
        for begin, end in found
        if not band_m or anchor.boundary.depth_m(along(before.loc, after.loc, (begin + end) / 2)) >= band_m
    ]


class Counting:
    """Zones as they are, but for one that counts as given (`matcher.places`)."""

    def __init__(self, places: Places, zone: str, inside: bool) -> None:
        self._places = places
        self._zone = zone
        self._inside = inside

    def covers(self, zone: str, point: Point) -> bool:
        return self._inside if zone == self._zone else self._places.covers(zone, point)

    def region(self, zone: str) -> PlanarRegion:
        return self._places.region(zone)


def _placed(before: Event, after: Event, share: float) -> Event:
    assert before.loc is not None
    assert after.loc is not None
    return msgspec.structs.replace(after, loc=along(before.loc, after.loc, share))
