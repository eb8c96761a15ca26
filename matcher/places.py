"""Zones as conditions ask about them: by an id, for a point or for a region.

Who evaluates holds the zones: the server by their ids, a device by the handles of its plan. A zone is prepared for
points at once, because nearly all of them are asked about points, and for regions when the first one comes. So is its
boundary, for bindings that look closer at it.
"""

from functools import cached_property
from typing import Protocol

from matcher.planar import PlanarRegion, from_shape
from zones.boundaries import Boundary, boundary_of
from zones.covers import prepare
from zones.shapes import Point, Shape

__all__ = ["Neighbourhood", "Place", "Places"]


class Places(Protocol):
    """All zones that the conditions at hand may name."""

    def covers(self, zone: str, point: Point) -> bool:
        """Whether the point is in the zone of that id, or on its boundary."""
        ...

    def region(self, zone: str) -> PlanarRegion:
        """The zone of that id, as relations see it."""
        ...


class Neighbourhood(Places, Protocol):
    """Zones, and where other objects are: what conditions with `Near` have to be asked with."""

    def is_near(self, others: tuple[str, ...], metres: float) -> bool | None:
        """Whether the object in question is less than so many metres from one of the others; None is UNKNOWN."""
        ...


class Place:
    """One zone's shape, ready to be asked."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._area = prepare(shape)
        self.covers = self._area.covers

    @cached_property
    def boundary(self) -> Boundary:
        return boundary_of(self.shape, self._area)

    @cached_property
    def region(self) -> PlanarRegion:
        return from_shape(self.shape)
