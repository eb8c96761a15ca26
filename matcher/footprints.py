"""The region that an object itself takes up: `(oid) overlaps (zone)` speaks of it.

It is the event's `footprint` if there is one. Else it is the disk in which the object must be: `unc` metres around its
place. A place that is known exactly takes up nothing, so there is no region then, and the relation is UNKNOWN.
"""

from functools import lru_cache

from matcher.events import Event, Region, Value
from zones.shapes import Circle, Point

__all__ = ["FOOTPRINT", "own_region"]

FOOTPRINT = "footprint"


def own_region(event: Event) -> Value | None:
    """The region, or whatever else the sender has called footprint; None if there is nothing to go by."""
    footprint = event.pairs.get(FOOTPRINT)
    if footprint is not None:
        return footprint
    if event.loc is None or not event.unc:
        return None
    return _disk(event.loc, event.unc)


@lru_cache(maxsize=64)  # of one event, for all of its bindings
def _disk(loc: Point, unc: float) -> Region:
    return Region(Circle(loc, unc))
