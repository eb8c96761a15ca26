"""What is recent is scanned: tests in the order of their filters, up to the first filter that a match does not see.

Compiled, and for a few thousand tests a matter of microseconds, so the interpreter's lock is kept: a thread that gives
it away waits for whoever takes it, which under load is longer than the scan. Only the scan of regions gives it away.
"""

import numpy as np
from numba import njit

from matcher.engines.pairs import CONTAINS, DISJOINT
from matcher.table.bits import ONE
from matcher.table.pairs import test_holds
from matcher.table.raster import CROSSED, INSIDE, cells_per_unit, no_raster, rasterized, side_of_box

__all__ = [
    "append_ring", "exclude_coded", "exclude_comparisons", "exclude_lacking", "exclude_listed", "exclude_regions",
]  # fmt: skip

_WORTH_A_RASTER = 32  # boxes that meet the message's (measured)


@njit(cache=True)
def exclude_lacking(needs, has, out, size):
    """The first `size` filters that need what a message has not, and all bits behind them."""
    missing = ~has
    for i in range(len(out)):
        word = out[i]
        first = i * 64
        for bit in range(min(64, size - first)):
            if needs[first + bit] & missing:
                word |= ONE << np.uint64(bit)
        out[i] = word
    for f in range(size, len(out) * 64):
        out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def exclude_listed(filters, count, out, size):
    for i in range(count):
        f = filters[i]
        if f >= size:
            break
        out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def exclude_comparisons(filters, allowed, highs, lows, count, high, low, rest, out, size):
    """`allowed` has a bit for each of below, equal, above and incomparable: where the value must be, seen from the
    test's. Numbers are sums of two doubles; `rest` is the sign of what the value is besides."""
    for i in range(count):
        f = filters[i]
        if f >= size:
            break
        if high < highs[i]:
            place = 1
        elif high > highs[i]:
            place = 4
        elif high != highs[i]:
            place = 8
        elif low != lows[i]:
            place = 1 if low < lows[i] else 4
        elif rest:
            place = 1 if rest < 0 else 4
        else:
            place = 2
        if not allowed[i] & place:
            out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True)
def exclude_coded(filters, codes, count, found, code_count, holds_if_found, out, size):
    """Tests of strings by the codes of their patterns, of which `found` are those that the value has."""
    flags = np.zeros(code_count, np.bool_)
    for i in range(len(found)):
        flags[found[i]] = True
    for i in range(count):
        f = filters[i]
        if f >= size:
            break
        if flags[codes[i]] != holds_if_found:
            out[f >> 6] |= ONE << np.uint64(f & 63)


@njit(cache=True, nogil=True)
def exclude_regions(
    edges, rings, box, filters, relations, boxes, edge_starts, ring_starts, all_edges, all_rings, count, out, size
):  # fmt: skip
    near = np.empty(edges.shape[0], np.int64)
    x0, y0, x1, y1 = box[0], box[1], box[2], box[3]
    sides = no_raster()
    across = up = 0.0
    met = 0
    for entry in range(count):
        f = filters[entry]
        if f >= size:
            break
        mask = ONE << np.uint64(f & 63)
        if out[f >> 6] & mask:
            continue
        bx0, by0, bx1, by1 = boxes[entry, 0], boxes[entry, 1], boxes[entry, 2], boxes[entry, 3]
        if bx0 > x1 or bx1 < x0 or by0 > y1 or by1 < y0:
            if relations[entry] != DISJOINT:
                out[f >> 6] |= mask
            continue
        met += 1
        if met == _WORTH_A_RASTER:
            sides = rasterized(edges, box)
            across, up = cells_per_unit(box)
        if len(sides):
            side = side_of_box(sides, x0, y0, across, up, bx0, by0, bx1, by1)
            if side != CROSSED:
                if relations[entry] != (CONTAINS if side == INSIDE else DISJOINT):
                    out[f >> 6] |= mask
                continue
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
            out[f >> 6] |= mask


@njit(cache=True)
def append_ring(points, edges, start):
    """Write the edges of a ring."""
    count = len(points)
    for i in range(count):
        following = i + 1 if i + 1 < count else 0
        edges[start + i, 0], edges[start + i, 1] = points[i, 0], points[i, 1]
        edges[start + i, 2], edges[start + i, 3] = points[following, 0], points[following, 1]
