"""Events: sets of name-value pairs, most of them about where an object was.

An event in here has been checked: numbers are finite, names are allowed, `ts` is an instant and `loc` a point.
"""

from functools import cached_property

import msgspec

from matcher.once import Instant
from matcher.planar import PlanarRegion, from_shape
from matcher.selector.tree import Time
from zones.shapes import Point, Shape

__all__ = ["RESERVED_NAMES", "Event", "Located", "Region", "Value"]

# Names a notification adds to the event's own; an event that brings one is refused.
RESERVED_NAMES = frozenset(
    {"id", "offset", "subscription", "mode", "target", "target_loc", "visit", "duration_s", "withdrawn"}
)


class Located(msgspec.Struct, frozen=True, tag_field="t", tag="point"):
    """A point as a pair's value (the event's own place is `Event.loc`)."""

    point: Point


class Region(msgspec.Struct, frozen=True, dict=True, tag_field="t", tag="region"):
    """A region as a pair's value: a storm's area, an object's footprint."""

    shape: Shape

    @cached_property
    def planar(self) -> PlanarRegion:
        """As relations see it, worked out once however many zones it meets."""
        return from_shape(self.shape)

    @cached_property
    def related(self) -> dict[int, tuple[PlanarRegion, str]]:
        """Relations that have been worked out, by the identity of the other region: `matcher.selector.truth` has it."""
        return {}


Value = bool | int | float | str | Time | Located | Region


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who, when, where, and whatever else the sender attached.

    `oid` is empty on a device: it only ever speaks of itself, and the server knows who that is.
    """

    ts: Instant
    loc: Point | None = None
    oid: str = ""
    unc: float | None = None
    lpid: str | None = None
    pairs: dict[str, Value] = {}
