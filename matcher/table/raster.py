"""A region on a grid of 32 x 32 cells over its box: which its boundary may meet, and on which side the others are.

Most regions that a message's box meets lie wholly inside or outside the message's region. To find that out by its edges
takes a look at each of them; on the grid, at a few cells. Cells are marked with slack, so that one without a mark is
certainly free of the boundary; all that is marked is left to the exact code.
"""

import numpy as np
from numba import njit

from matcher.engines.pairs import locate

__all__ = ["CROSSED", "INSIDE", "OUTSIDE", "cells_per_unit", "no_raster", "rasterized", "side_of_box"]

OUTSIDE, INSIDE, CROSSED = 0, 1, 2
_CELLS = 32
_LEAST, _MOST = 1e-100, 1e100  # a grid for what is smaller or larger would over- or underflow


@njit(cache=True)
def no_raster():
    return np.empty((0, 0), np.int8)


@njit(cache=True)
def _cell(value, low, per_unit):
    """Never falls while the value rises, so what lies between two numbers is in the cells between theirs."""
    return int(min(max((value - low) * per_unit, 0.0), _CELLS - 1.0))


@njit(cache=True)
def rasterized(edges, box):
    """The side of each cell by its column and row; without cells if there can be no grid."""
    x0, y0, x1, y1 = box[0], box[1], box[2], box[3]
    width, height = x1 - x0, y1 - y0
    scale = max(max(abs(x0), abs(x1)), max(abs(y0), abs(y1)))
    if not (_LEAST < width < _MOST and _LEAST < height < _MOST and scale < _MOST):
        return no_raster()
    across, up = cells_per_unit(box)
    slack_x, slack_y = 1e-13 * scale + 1e-9 * width, 1e-13 * scale + 1e-9 * height
    sides = np.full((_CELLS, _CELLS), -1, np.int8)
    for i in range(edges.shape[0]):
        ax, ay, bx, by = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        if ax > bx:
            ax, ay, bx, by = bx, by, ax, ay
        for column in range(_cell(ax - slack_x, x0, across), _cell(bx + slack_x, x0, across) + 1):
            low, high = ay, by
            if bx - ax > slack_x:
                left = min(max(x0 + column * width / _CELLS - slack_x, ax), bx)
                right = min(max(x0 + (column + 1) * width / _CELLS + slack_x, ax), bx)
                low = ay + (left - ax) / (bx - ax) * (by - ay)
                high = ay + (right - ax) / (bx - ax) * (by - ay)
            if low > high:
                low, high = high, low
            for row in range(_cell(low - slack_y, y0, up), _cell(high + slack_y, y0, up) + 1):
                sides[column, row] = CROSSED
    for column in range(_CELLS):
        for row in range(_CELLS):
            if sides[column, row] == CROSSED:
                continue
            # Between a cell and its neighbour there is no boundary if neither has a mark.
            if row and sides[column, row - 1] != CROSSED:
                sides[column, row] = sides[column, row - 1]
            elif column and sides[column - 1, row] != CROSSED:
                sides[column, row] = sides[column - 1, row]
            else:
                x, y = x0 + (column + 0.5) * width / _CELLS, y0 + (row + 0.5) * height / _CELLS
                sides[column, row] = INSIDE if locate(edges, x, y) > 0 else OUTSIDE
    return sides


@njit(cache=True)
def cells_per_unit(box):
    return _CELLS / (box[2] - box[0]), _CELLS / (box[3] - box[1])


@njit(cache=True)
def side_of_box(sides, west, south, across, up, x0, y0, x1, y1):
    """Where a box lies that meets the region's own, which begins at `west` and `south`: INSIDE, OUTSIDE or perhaps
    CROSSED. The other two are its `cells_per_unit`."""
    left, right = _cell(x0, west, across), _cell(x1, west, across)
    low, high = _cell(y0, south, up), _cell(y1, south, up)
    for column in range(left, right + 1):
        for row in range(low, high + 1):
            if sides[column, row] == CROSSED:
                return CROSSED
    return sides[left, low]
