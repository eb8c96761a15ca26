"""Regions as arrays of directed edges, one or many, as the compiled code reads them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matcher.engines.runs import copy_runs
from matcher.planar import PlanarRegion

__all__ = ["EdgeRegion", "EdgeRegions", "Floats", "Ints"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EdgeRegion:
    """`edges` are rows of x0, y0, x1, y1, the interior on their left; `rings` the first edge of each ring, and at its
    end the number of edges."""

    edges: Floats
    rings: Ints
    box: Floats

    @classmethod
    def of(cls, region: PlanarRegion) -> "EdgeRegion":
        rings = [np.asarray(ring, np.float64) for ring in region.rings]
        edges = np.concatenate([np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in rings])
        starts = np.zeros(len(rings) + 1, np.int64)
        np.cumsum([len(ring) for ring in rings], out=starts[1:])
        return cls(np.ascontiguousarray(edges), starts, np.asarray(region.box, np.float64))


@dataclass(frozen=True, slots=True)
class EdgeRegions:
    """Many of them, one behind the other. Region i has the edges from `edge_starts[i]` and, counted from there, the
    rings from `rings[ring_starts[i]]`."""

    edges: Floats
    edge_starts: Ints
    rings: Ints
    ring_starts: Ints
    boxes: Floats

    @classmethod
    def of(cls, regions: Sequence[EdgeRegion]) -> "EdgeRegions":
        if not regions:
            none, start = np.empty((0, 4)), np.zeros(1, np.int64)
            return cls(none, start, np.empty(0, np.int64), start, none)
        return cls(
            np.concatenate([region.edges for region in regions]),
            _starts(len(region.edges) for region in regions),
            np.concatenate([region.rings for region in regions]),
            _starts(len(region.rings) for region in regions),
            np.stack([region.box for region in regions]),
        )

    def taken(self, order: Ints) -> "EdgeRegions":
        """Those at these places, in this order."""
        return EdgeRegions(
            copy_runs(self.edges, self.edge_starts, order),
            _starts(np.diff(self.edge_starts)[order]),
            copy_runs(self.rings.reshape(-1, 1), self.ring_starts, order)[:, 0],
            _starts(np.diff(self.ring_starts)[order]),
            np.ascontiguousarray(self.boxes[order]),
        )


def _starts(lengths: Iterable[int] | Ints) -> Ints:
    found = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    starts = np.zeros(len(found) + 1, np.int64)
    np.cumsum(found, out=starts[1:])
    return starts
