"""Tests of regions one by one, for the filters that are left only. Compiled."""

import numpy as np
from numba import njit

from matcher.engines.pairs import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    locate,
    pair_holds,
    relate_edges,
)

__all__ = ["exclude_each", "test_holds"]


@njit(cache=True, nogil=True)
def exclude_each(
    edges, rings, box, relations, all_edges, edge_starts, all_rings, ring_starts, boxes, starts, among, out
):  # fmt: skip
    near = np.empty(edges.shape[0], np.int64)
    for i in range(len(out)):
        word = ~out[i] & among[i]
        if not word:
            continue
        for bit in range(64):
            mask = np.uint64(1) << np.uint64(bit)
            if not word & mask:
                continue
            f = i * 64 + bit
            for entry in range(starts[f], starts[f + 1]):
                if not test_holds(
                    relations[entry],
                    edges,
                    rings,
                    box,
                    all_edges[edge_starts[entry] : edge_starts[entry + 1]],
                    all_rings[ring_starts[entry] : ring_starts[entry + 1]],
                    boxes[entry],
                    near,
                ):
                    out[i] |= mask
                    break


@njit(cache=True)
def test_holds(relation, a, rings_a, box_a, b, rings_b, box_b, near):
    """Whether "a relation b" holds; boxes decide what they can. `near` is room for the edges of a."""
    ax0, ay0, ax1, ay1 = box_a[0], box_a[1], box_a[2], box_a[3]
    bx0, by0, bx1, by1 = box_b[0], box_b[1], box_b[2], box_b[3]
    if ax1 < bx0 or bx1 < ax0 or ay1 < by0 or by1 < ay0:
        return relation == DISJOINT
    if relation == INSIDE:
        if not (bx0 < ax0 and by0 < ay0 and bx1 > ax1 and by1 > ay1):
            return False
    elif relation == COVERED_BY:
        if not (bx0 <= ax0 and by0 <= ay0 and bx1 >= ax1 and by1 >= ay1):
            return False
    elif relation == EQUALS:
        if not (bx0 == ax0 and by0 == ay0 and bx1 == ax1 and by1 == ay1):
            return False
    else:
        if relation == CONTAINS:
            if not (ax0 < bx0 and ay0 < by0 and ax1 > bx1 and ay1 > by1):
                return False
        elif relation == COVERS and not (ax0 <= bx0 and ay0 <= by0 and ax1 >= bx1 and ay1 >= by1):
            return False
        count = 0
        for i in range(a.shape[0]):
            x0, y0, x1, y1 = a[i, 0], a[i, 1], a[i, 2], a[i, 3]
            if max(x0, x1) >= bx0 and min(x0, x1) <= bx1 and max(y0, y1) >= by0 and min(y0, y1) <= by1:
                near[count] = i
                count += 1
        if count:
            return pair_holds(relation, a, rings_a, box_a, near[:count], b, rings_b, box_b)
        # No edge of a meets the box of b: all of it is inside a, or all of it outside.
        if relation == CONTAINS:
            return locate(a, bx0, by0) > 0
        return relation == DISJOINT and locate(a, bx0, by0) < 0
    return relate_edges(a, rings_a, box_a, b, rings_b, box_b) == relation
