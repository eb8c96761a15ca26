"""Many regions at once from their rings in one array: `matcher.planar.from_parts`, without a loop over points.

A file of a hundred thousand regions has millions of points. Looking at each in Python takes longer than everything
else that is done with them, so here the same questions are asked of all rings together: are they closed and long
enough, is every region valid, which way does each ring run. What numpy can't tell for sure (a ring whose turn is within
the error of rounding) is asked of the plain code, and so is what exactly is wrong with a region that is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import shapely
from numpy.typing import NDArray

from matcher.planar import Box, PlanarRegion, orientation
from zones.antimeridian import Part
from zones.diagnosis import diagnose, ring_title
from zones.errors import CoordinateInvalid, RingHasSpike, RingTooShort, RingUnclosed, ShapeEmpty, ShapeInvalid
from zones.shapes import Point

__all__ = ["RegionFault", "planar_regions"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]

_ROUNDING = 4e-16  # of a determinant of differences, relative to its two products; Shewchuk's bound is 3.3e-16
_UNDERFLOW = 1e-300


class RegionFault(Exception):
    """One of the regions can't be used: which, and why. The caller knows what it is called."""

    def __init__(self, index: int, fault: ShapeInvalid) -> None:
        super().__init__(index, fault)
        self.index = index
        self.fault = fault


def planar_regions(regions: Sequence[Sequence[Part]]) -> list[PlanarRegion]:
    """A region for each list of parts, as they stand in GeoJSON; a `RegionFault` for the first that is none."""
    if not regions:
        return []
    rings = _Rings.of(regions)
    _check(rings, regions)
    opened = _opened(rings)
    return _planar(opened.turned(_runs_clockwise(opened) != rings.is_hole))


@dataclass(frozen=True, slots=True)
class _Rings:
    """The points of all rings, one ring behind the other. Ring i has the points from `starts[i]` to `starts[i + 1]`,
    part i the rings from `part_starts[i]`, and region i the parts from `region_starts[i]`, in the same way."""

    points: _Floats
    starts: _Ints
    part_starts: _Ints
    region_starts: _Ints

    @classmethod
    def of(cls, regions: Sequence[Sequence[Part]]) -> "_Rings":
        parts = list(chain.from_iterable(regions))
        rings = list(chain.from_iterable(parts))
        numbers = chain.from_iterable(chain.from_iterable(rings))
        starts = _starts(rings)
        return cls(
            np.fromiter(numbers, np.float64, 2 * int(starts[-1])).reshape(-1, 2),
            starts,
            _starts(parts),
            _starts(regions),
        )

    @property
    def lengths(self) -> _Ints:
        return np.diff(self.starts)

    @property
    def region_rings(self) -> _Ints:
        """The first ring of each region, and at the end how many there are."""
        return self.part_starts[self.region_starts]

    @property
    def is_hole(self) -> _Bools:
        found = np.ones(len(self.starts) - 1, np.bool_)
        found[self.part_starts[:-1]] = False
        return found

    def region_of(self, ring: int) -> int:
        return int(np.searchsorted(self.region_rings, ring, side="right")) - 1

    def first_region(self, rings: _Bools) -> int:
        """The region of the first of these rings."""
        return self.region_of(int(np.argmax(rings)))

    def turned(self, rings: _Bools) -> "_Rings":
        """These rings with their points in the opposite order."""
        places = np.arange(len(self.points))
        turned = np.repeat(rings, self.lengths)
        ends = np.repeat(self.starts[:-1] + self.starts[1:] - 1, self.lengths)
        places[turned] = (ends - places)[turned]
        return _Rings(self.points[places], self.starts, self.part_starts, self.region_starts)


def _starts(groups: Sequence[Sequence[object]]) -> _Ints:
    starts = np.zeros(len(groups) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, groups), np.int64, len(groups)), out=starts[1:])
    return starts


# --- what is wrong with them -----------------------------------------------------------------------


def _check(rings: _Rings, regions: Sequence[Sequence[Part]]) -> None:
    """Valid as `zones.validation` means it, but in a plane: no limits of the globe, and no largest size."""
    if not (np.diff(rings.region_starts).all() and np.diff(rings.part_starts).all()):
        index = next(index for index, parts in enumerate(regions) if not parts or not all(parts))
        raise RegionFault(index, ShapeEmpty("It has no rings.", hint="Give each polygon at least its outer ring."))
    short = rings.lengths < 4
    if short.any():
        index = rings.first_region(short)
        raise RegionFault(index, _ring_fault(regions[index]))
    unclosed = (rings.points[rings.starts[:-1]] != rings.points[rings.starts[1:] - 1]).any(axis=1)
    if unclosed.any():
        index = rings.first_region(unclosed)
        raise RegionFault(index, _ring_fault(regions[index]))
    if not np.isfinite(rings.points).all():
        index = rings.first_region(~np.logical_and.reduceat(np.isfinite(rings.points).all(axis=1), rings.starts[:-1]))
        raise RegionFault(
            index, CoordinateInvalid("One of its coordinates is not a finite number.", hint="Give numbers.")
        )
    valid = shapely.is_valid(
        shapely.from_ragged_array(
            shapely.GeometryType.MULTIPOLYGON, rings.points, (rings.starts, rings.part_starts, rings.region_starts)
        )
    )
    if not valid.all():
        index = int(np.argmin(valid))
        raise RegionFault(index, diagnose(regions[index]))


def _ring_fault(parts: Sequence[Part]) -> ShapeInvalid:
    """Of parts one of whose rings is too short or not closed."""
    for part_index, part in enumerate(parts):
        for ring_index, ring in enumerate(part):
            title = ring_title(parts, part_index, ring_index)
            if len(ring) > 2 and ring[0] != ring[-1]:
                return RingUnclosed(
                    f"The last point of {title} is not its first.", hint="Repeat the first point at the end."
                )
            if len(ring) < 4:
                return RingTooShort(
                    f"The number of points of {title} is {len(ring)}; a ring has at least 4, the first repeated at "
                    "the end.",
                    hint="Give it three different points or more.",
                )
    raise AssertionError("a ring was found to be short or unclosed")


# --- their one form --------------------------------------------------------------------------------


def _opened(rings: _Rings) -> _Rings:
    """Without the points that close rings and edges of no length."""
    kept = np.ones(len(rings.points), np.bool_)
    kept[:-1] = (rings.points[:-1] != rings.points[1:]).any(axis=1)
    kept[rings.starts[1:] - 1] = False
    before = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=before[1:])
    return _Rings(rings.points[kept], before[rings.starts], rings.part_starts, rings.region_starts)


def _runs_clockwise(rings: _Rings) -> _Bools:
    """At its least point, by x and then y, a ring that does not cross itself turns as it does as a whole."""
    x, y = rings.points[:, 0], rings.points[:, 1]
    first, last = rings.starts[:-1], rings.starts[1:] - 1
    is_least = x == np.repeat(np.minimum.reduceat(x, first), rings.lengths)
    lowest = np.where(is_least, y, np.inf)
    is_least &= lowest == np.repeat(np.minimum.reduceat(lowest, first), rings.lengths)
    least = np.flatnonzero(is_least)
    least = least[np.searchsorted(least, first)]
    before, after = np.where(least == first, last, least - 1), np.where(least == last, first, least + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        left = (x[before] - x[after]) * (y[least] - y[after])
        right = (y[before] - y[after]) * (x[least] - x[after])
        turn = left - right
        unsure = ~(np.abs(turn) > _ROUNDING * (np.abs(left) + np.abs(right)) + _UNDERFLOW)
    for ring in np.flatnonzero(unsure).tolist():
        p, q, r = (_point(rings.points[place]) for place in (before[ring], least[ring], after[ring]))
        turn[ring] = orientation(p, q, r)
        if turn[ring] == 0:
            spike = RingHasSpike(
                f"A ring goes to {q[0]!r}, {q[1]!r} and back on the same line.", hint="Remove the spike."
            )
            raise RegionFault(rings.region_of(ring), spike)
    found: _Bools = turn < 0
    return found


def _point(row: _Floats) -> Point:
    return float(row[0]), float(row[1])


def _planar(rings: _Rings) -> list[PlanarRegion]:
    points = list(zip(rings.points[:, 0].tolist(), rings.points[:, 1].tolist(), strict=True))
    made = [tuple(points[start:stop]) for start, stop in pairwise(rings.starts.tolist())]
    return [
        PlanarRegion(tuple(made[start:stop]), box)
        for (start, stop), box in zip(pairwise(rings.region_rings.tolist()), _boxes(rings), strict=True)
    ]


def _boxes(rings: _Rings) -> list[Box]:
    first = rings.starts[rings.region_rings[:-1]]
    low, high = np.minimum.reduceat(rings.points, first), np.maximum.reduceat(rings.points, first)
    return list(zip(*low.T.tolist(), *high.T.tolist(), strict=True))
