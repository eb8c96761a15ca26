"""Algorithm 1 compiled, so that lines of a plot compare algorithms and not languages.

`matcher.approximate` lays out all points of a boundary before it looks at one, which suits numpy. Here a point is made
when the walk comes to it, as the publication's program does, and the walk stops at the very point that decides. The
arithmetic is the same to the last bit, and so are the answers: the tests hold it to `matcher.approximate`.

Regions with holes or of several parts are not Algorithm 1's to decide. Real data has some: they are `None` here, and
the caller decides them exactly.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np
from numba import njit

from matcher.approximate import Density
from matcher.engines.pairs import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from matcher.planar import PlanarRegion

__all__ = ["Walk", "Walks", "length_of", "relate_walks", "scan", "walk_of"]

Walk = np.ndarray
"""An edge a row: start x, y, difference x, y, its square, how many points, the halo of its start, of the others."""

_IN, _OUT, _MEET = 1, -1, 0
_INVERSE = np.array([DISJOINT, MEETS, OVERLAPS, EQUALS, CONTAINS, INSIDE, COVERED_BY, COVERS], np.int8)


class Walks:
    """The walks along the boundaries of many regions, one behind the other."""

    def __init__(self, regions: Sequence[PlanarRegion], density: Density) -> None:
        rings = [np.array(region.rings[0] if region.is_simple else (), np.float64).reshape(-1, 2) for region in regions]
        self.refused = np.array([not region.is_simple for region in regions], np.bool_)
        self.starts = np.zeros(len(rings) + 1, np.int64)
        np.cumsum([len(ring) for ring in rings], out=self.starts[1:])
        self.rows = np.empty((int(self.starts[-1]), 8))
        for ring, start, stop in zip(rings, self.starts, self.starts[1:], strict=False):
            self.rows[start:stop, 0:2] = ring
            self.rows[start:stop, 2:4] = np.roll(ring, -1, axis=0) - ring
        dx, dy = self.rows[:, 2], self.rows[:, 3]
        self.rows[:, 4] = np.maximum(dx * dx + dy * dy, np.finfo(np.float64).tiny)
        self._edge_lengths = np.hypot(dx, dy)
        self.lengths = np.array(
            [float(self._edge_lengths[i:j].sum()) for i, j in zip(self.starts, self.starts[1:], strict=False)]
        )
        self._lay(density)

    def __len__(self) -> int:
        return len(self.lengths)

    def at(self, density: Density) -> "Walks":
        """The same boundaries with another density of points."""
        other = copy(self)
        other.rows = self.rows.copy()
        other._lay(density)
        return other

    def _lay(self, density: Density) -> None:
        self.density = density
        _lay_points(self.rows, self.starts, self._edge_lengths, density.per_unit)


def walk_of(region: PlanarRegion, density: Density) -> Walk | None:
    """What a walk along the boundary needs; None for a region with holes or several parts."""
    return Walks([region], density).rows if region.is_simple else None


def length_of(walk: Walk) -> float:
    return float(np.hypot(walk[:, 2], walk[:, 3]).sum())


def relate_walks(a: Walk, a_length: float, b: Walk, b_length: float, halo: bool) -> int:
    """The code (`matcher.engines.pairs`) of "a REL b" as far as the points tell."""
    code: int = _relate(a, a_length, b, b_length, halo)
    return code


def scan(
    message: Walk, walks: Walks, candidates: np.ndarray, halo: bool, start: int = 0, stop: int | None = None
) -> np.ndarray:
    """The codes for the constraints from `start` to `stop` that are candidates; -1 for others and for refused ones."""
    stop = len(walks) if stop is None else stop
    found: np.ndarray = _scan(
        message, length_of(message), walks.rows, walks.starts, walks.lengths, candidates, halo, start, stop
    )
    return found


@njit(cache=True)
def _lay_points(rows, starts, edge_lengths, per_unit):
    """How many points an edge gets, and their halos; what is left of a point goes on to the next edge."""
    for k in range(len(starts) - 1):
        start, stop = starts[k], starts[k + 1]
        length, so_far = 0.0, 0
        for i in range(start, stop):
            length += edge_lengths[i]
            now = int(np.floor(length * per_unit))
            rows[i, 5] = now - so_far + 1
            rows[i, 7] = edge_lengths[i] / rows[i, 5] / 2
            so_far = now
        for i in range(start, stop):
            rows[i, 6] = min(rows[i, 7], rows[i - 1 if i > start else stop - 1, 7])


@njit(cache=True)
def _check(x, y, halo, radius, other):
    """POINTCHECK: whether the point is in, out, or meets the boundary."""
    inside = False
    reach = radius * radius
    for i in range(other.shape[0]):
        ux, uy, dx, dy = other[i, 0], other[i, 1], other[i, 2], other[i, 3]
        # The end of an edge is the start of the next: the sum of start and difference may be another double.
        vy = other[i + 1, 1] if i + 1 < other.shape[0] else other[0, 1]
        from_x, from_y = x - ux, y - uy
        turn = dx * from_y - dy * from_x
        along = from_x * dx + from_y * dy
        if halo:
            share = min(max(along / other[i, 4], 0.0), 1.0)
            off_x, off_y = from_x - share * dx, from_y - share * dy
            if off_x * off_x + off_y * off_y <= reach:
                return _MEET
        elif turn == 0.0 and along >= 0.0 and along <= other[i, 4]:
            return _MEET
        if (uy > y) != (vy > y) and (turn > 0) == (dy > 0):
            inside = not inside
    return _IN if inside else _OUT


@njit(cache=True)
def _find(a, b, halo):
    any_meet = any_in = any_out = False
    for i in range(a.shape[0]):
        pieces = a[i, 5]
        for step in range(int(pieces)):
            share = step / pieces
            where = _check(a[i, 0] + share * a[i, 2], a[i, 1] + share * a[i, 3], halo, a[i, 6 if step == 0 else 7], b)
            if where == _MEET:
                any_meet = True
            elif where == _IN:
                any_in = True
            else:
                any_out = True
            if any_in and any_out:
                return OVERLAPS
    if not any_out:
        if any_in:
            return COVERED_BY if any_meet else INSIDE
        return EQUALS
    b_is_in = False
    decided = False
    for i in range(b.shape[0]):
        pieces = b[i, 5]
        for step in range(int(pieces)):
            share = step / pieces
            where = _check(b[i, 0] + share * b[i, 2], b[i, 1] + share * b[i, 3], halo, b[i, 6 if step == 0 else 7], a)
            if where != _MEET:
                b_is_in = where == _IN
                decided = True
                break
        if decided:
            break
    if b_is_in:
        return COVERS if any_meet else CONTAINS
    return MEETS if any_meet else DISJOINT


@njit(cache=True)
def _relate(a, a_length, b, b_length, halo):
    if a_length <= b_length:
        return _find(a, b, halo)
    return np.int64(_INVERSE[_find(b, a, halo)])


@njit(cache=True, nogil=True)
def _scan(message, length, rows, starts, lengths, candidates, halo, start, stop):
    found = np.full(stop - start, -1, np.int8)
    for k in range(start, stop):
        if candidates[k] and starts[k] < starts[k + 1]:
            found[k - start] = _relate(message, length, rows[starts[k] : starts[k + 1]], lengths[k], halo)
    return found
