"""Zones of a test, which often has no more than a function of points."""

from collections.abc import Callable

from matcher.planar import PlanarRegion, from_shape
from zones.shapes import Point, Shape

__all__ = ["Covering"]


class Covering:
    """`matcher.places.Places` from a function; for regions all zones are the one given."""

    def __init__(self, covers: Callable[[str, Point], bool], shape: Shape | None = None) -> None:
        self.covers = covers
        self._region = None if shape is None else from_shape(shape)

    def region(self, zone: str) -> PlanarRegion:
        assert self._region is not None, zone
        return self._region
