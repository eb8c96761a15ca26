"""Algorithm 1 of the publication: a relation from witnesses on discretised boundaries.

It is here to be compared with `matcher.relations`, in error and in speed, and for whoever wants the published
behaviour. Boundaries become points: all corners, and points at equal distances between them. Each point is in the other
region, out of it, or meets its boundary, and the four intersections that have a witness tell the relation
(`WITNESSES`). What lies between two points is not seen.

The halo makes a point meet a boundary that is within half the distance to its neighbours on the same edge. With it
touching is found that falls between two points; but everything that comes near is taken for touching too, and in
general position that is the main source of error. Without it a point meets only a boundary it lies on.

The table holds for regions of one ring only: a square and the same square with a hole have one outer boundary, so
walking it gives `equals`. Such regions are refused.
"""

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from matcher.planar import Box, PlanarRegion
from matcher.relations import inverse
from matcher.selector.tree import Relation
from zones.errors import CallerError

__all__ = [
    "MAX_POINTS", "WITNESSES", "Density", "DensityInvalid", "RegionNotSimple", "Sampled", "Witnesses",
    "approximate_relation", "relate_sampled",
]  # fmt: skip

_Floats = NDArray[np.float64]

MAX_POINTS = 1_000_000  # a hundred times what the publication uses; a region is a few times as many points

_FIRST_POINTS = 32  # few at first, because most walks end early; then more and more, because each look costs
_MOST_CELLS = 1 << 16  # of points times edges at a time: they stay in the cache


class RegionNotSimple(CallerError):
    """The approximate evaluator takes regions of one ring only; the exact one takes all."""

    code = "region_not_simple"


class DensityInvalid(CallerError):
    """A density of points is negative or too high, or its universe has no extent."""

    code = "density_invalid"


class Density(msgspec.Struct, frozen=True):
    """How many points for how much boundary: `points` for half of the universe's extent, 0 for corners only."""

    points: float
    universe: Box

    def __post_init__(self) -> None:
        extent = self._extent
        if not (0 <= self.points <= MAX_POINTS and math.isfinite(extent) and extent > 0):
            raise DensityInvalid(
                f"A density of {self.points} points in a universe of extent {extent} can't be used.",
                hint=f"Give 0 to {MAX_POINTS:,} points, and a universe with a width or a height.",
                points=self.points,
            )

    @property
    def _extent(self) -> float:
        west, south, east, north = self.universe
        return (east - west) + (north - south)

    @property
    def per_unit(self) -> float:
        """The published D: points per unit of length."""
        return self.points / self._extent


class Witnesses(NamedTuple):
    """Which of the four intersections are not empty."""

    boundaries: bool
    boundary_in_interior: bool
    interior_with_boundary: bool
    boundary_in_exterior: bool


WITNESSES: dict[Relation, Witnesses] = {
    Relation.DISJOINT: Witnesses(False, False, False, True),
    Relation.MEETS: Witnesses(True, False, False, True),
    Relation.OVERLAPS: Witnesses(True, True, True, True),
    Relation.EQUALS: Witnesses(True, False, False, False),
    Relation.INSIDE: Witnesses(False, True, False, False),
    Relation.CONTAINS: Witnesses(False, False, True, True),
    Relation.COVERS: Witnesses(True, False, True, True),
    Relation.COVERED_BY: Witnesses(True, True, False, False),
}
_RELATIONS = {witnesses: relation for relation, witnesses in WITNESSES.items()}


def approximate_relation(
    a: PlanarRegion, b: PlanarRegion, density: Density, halo: bool = True, vertices_count: bool = False
) -> Relation:
    """The relation of "a REL b" as far as points of that density tell.

    The points of the density come in addition to the corners, or with `vertices_count` the corners are among them.
    """
    return relate_sampled(Sampled(a, density, vertices_count), Sampled(b, density, vertices_count), halo)


class Sampled:
    """A region prepared for being related to many others; everything about it that does not depend on them."""

    __slots__ = ("_dx", "_dy", "_edge_squares", "_ux", "_uy", "_vx", "_vy", "count", "halo", "length", "x", "y")

    def __init__(self, region: PlanarRegion, density: Density, vertices_count: bool = False) -> None:
        if not region.is_simple:
            raise RegionNotSimple(
                f"The region has {len(region.rings)} rings, and the approximate evaluator takes regions of one only.",
                hint="Use the exact evaluator for regions with holes or several parts.",
                rings=len(region.rings),
            )
        start = np.array(region.rings[0], dtype=np.float64)
        end = np.roll(start, -1, axis=0)
        self._ux, self._uy = start[:, 0].copy(), start[:, 1].copy()
        self._vx, self._vy = end[:, 0].copy(), end[:, 1].copy()
        self._dx, self._dy = self._vx - self._ux, self._vy - self._uy
        self._edge_squares = np.maximum(self._dx * self._dx + self._dy * self._dy, np.finfo(np.float64).tiny)
        lengths = np.hypot(self._dx, self._dy)
        self.length = float(lengths.sum())
        self._walk(lengths, density.per_unit, vertices_count)

    def _walk(self, lengths: _Floats, per_unit: float, vertices_count: bool) -> None:
        """Lay points along the boundary, in its order: x, y and the radius of the halo around each.

        An edge gets its share of the points, and what is left of a point goes on to the next edge, so that many
        short edges have as many in all as one long edge. On each edge they are at equal distances.
        """
        if vertices_count:
            per_unit = max(0.0, per_unit - len(lengths) / self.length)
        so_far = np.floor(np.cumsum(lengths) * per_unit).astype(np.int64)
        pieces = np.diff(so_far, prepend=0) + 1
        edge = np.repeat(np.arange(len(lengths)), pieces)
        step = np.arange(len(edge)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        share = step / pieces[edge]
        self.x = self._ux[edge] + share * self._dx[edge]
        self.y = self._uy[edge] + share * self._dy[edge]
        self.count = len(edge)
        # A corner is on two edges and takes the nearer neighbour.
        gaps = lengths / pieces
        self.halo = np.where(step == 0, np.minimum(gaps, np.roll(gaps, 1))[edge], gaps[edge]) / 2

    @np.errstate(over="ignore", invalid="ignore")  # in a universe of 1e200 nothing is near anything
    def check(self, x: _Floats, y: _Floats, halo: _Floats | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The publication's POINTCHECK: which of the points meet the boundary, and which others are in."""
        from_x, from_y = x[:, None] - self._ux, y[:, None] - self._uy
        turn = self._dx * from_y - self._dy * from_x
        straddles = (self._uy > y[:, None]) != (self._vy > y[:, None])
        crossed = straddles & ((turn > 0) == (self._dy > 0))
        along = from_x * self._dx + from_y * self._dy
        if halo is None:
            meets = ((turn == 0) & (along >= 0) & (along <= self._edge_squares)).any(axis=1)
        else:
            share = np.clip(along / self._edge_squares, 0, 1)
            off_x, off_y = from_x - share * self._dx, from_y - share * self._dy
            meets = (off_x * off_x + off_y * off_y).min(axis=1) <= halo * halo
        return meets, (np.count_nonzero(crossed, axis=1) % 2 == 1) & ~meets

    @property
    def edge_count(self) -> int:
        return len(self._ux)


def relate_sampled(a: Sampled, b: Sampled, halo: bool = True) -> Relation:
    """Algorithm 1, started from the shorter boundary: it is often the only one that is walked."""
    return _find_relation(a, b, halo) if a.length <= b.length else inverse(_find_relation(b, a, halo))


def _find_relation(a: Sampled, b: Sampled, halo: bool) -> Relation:
    any_meets = any_in = any_out = False
    for stretch in _stretches(a, b):
        meets, inside = b.check(a.x[stretch], a.y[stretch], a.halo[stretch] if halo else None)
        any_meets = any_meets or bool(meets.any())
        any_in = any_in or bool(inside.any())
        any_out = any_out or not bool((meets | inside).all())
        if any_in and any_out:
            return Relation.OVERLAPS
    b_is_in = any_out and _starts_inside(b, a, halo)
    return _RELATIONS[Witnesses(any_meets, any_in, b_is_in, any_out)]


def _starts_inside(b: Sampled, a: Sampled, halo: bool) -> bool:
    """Whether the first point of b that does not meet a's boundary is in a: without overlap the others are too."""
    for stretch in _stretches(b, a):
        meets, inside = a.check(b.x[stretch], b.y[stretch], b.halo[stretch] if halo else None)
        if not meets.all():
            return bool(inside[np.argmin(meets)])
    return False


def _stretches(walked: Sampled, other: Sampled) -> list[slice]:
    """The walk in parts: the first short, the others as long as they may be."""
    most = max(1, _MOST_CELLS // other.edge_count)
    first = min(_FIRST_POINTS, most)
    return [slice(0, first), *(slice(at, at + most) for at in range(first, walked.count, most))]
