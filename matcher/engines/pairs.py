"""The relation of two regions, exactly, from signs of orientation alone.

A region is its directed edges, rows of (x0, y0, x1, y1) with the interior on the left, ring after ring. If an edge of
one properly crosses an edge of the other they overlap. Else every contact is at a vertex of one of them, so the pieces
into which contacts cut an edge begin and end at given points: no coordinate is ever computed. A piece lies on
the other's boundary, or wholly in its interior or exterior, where its midpoint is. `matcher.relations` has the proof
of the final table, and is what this must agree with.
"""

import numpy as np
from numba import njit

from matcher.engines.orientation import midpoint_above, midpoint_side, side

__all__ = [
    "CONTAINS", "COVERED_BY", "COVERS", "DISJOINT", "EQUALS", "INSIDE", "MEETS", "OVERLAPS", "NAMES", "locate",
    "pair_holds", "relate_edges",
]  # fmt: skip

DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = range(8)
NAMES = ("disjoint", "meets", "overlaps", "equals", "inside", "contains", "covers", "covered-by")

_IN, _OUT, _SAME, _OPPOSITE, _TOUCH = 1, 2, 4, 8, 16


@njit(cache=True)
def locate(edges, x, y):
    """1 if the point is in the interior, 0 on the boundary, -1 outside."""
    inside = False
    for i in range(edges.shape[0]):
        x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        if (y0 > y and y1 > y) or (y0 < y and y1 < y) or (x0 < x and x1 < x):
            continue
        where = side(x0, y0, x1, y1, x, y)
        if where == 0:
            if min(x0, x1) <= x <= max(x0, x1) and min(y0, y1) <= y <= max(y0, y1):
                return 0
        elif (y0 <= y) != (y1 <= y) and (where > 0) == (y0 < y1):
            inside = not inside
    return 1 if inside else -1


@njit(cache=True)
def _midpoint_inside(edges, px, py, qx, qy):
    """Whether the midpoint of a piece that has no point but its ends on the boundary is in the interior."""
    inside = False
    for i in range(edges.shape[0]):
        x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        above0, above1 = midpoint_above(py, qy, y0), midpoint_above(py, qy, y1)
        if above0 != above1 and (midpoint_side(x0, y0, x1, y1, px, py, qx, qy) > 0) == (not above1):
            inside = not inside
    return inside


@njit(inline="always", cache=True)
def _on(x0, y0, x1, y1, x, y):
    """Whether a point that is on the line of an edge is on the edge."""
    return min(x0, x1) <= x <= max(x0, x1) and min(y0, y1) <= y <= max(y0, y1)


@njit(cache=True)
def _near(edges, box):
    """The indices of the edges that meet a box."""
    found = np.empty(edges.shape[0], np.int64)
    count = 0
    for i in range(edges.shape[0]):
        x0, y0, x1, y1 = edges[i, 0], edges[i, 1], edges[i, 2], edges[i, 3]
        if max(x0, x1) >= box[0] and min(x0, x1) <= box[2] and max(y0, y1) >= box[1] and min(y0, y1) <= box[3]:
            found[count] = i
            count += 1
    return found[:count]


@njit(cache=True)
def _contacts(a, near_a, b, near_b, touched_a, touched_b):
    """-1 if two edges properly cross; else how many pairs touch. Marks the edges that do."""
    count = 0
    for i in near_a:
        ax0, ay0, ax1, ay1 = a[i, 0], a[i, 1], a[i, 2], a[i, 3]
        left, right = min(ax0, ax1), max(ax0, ax1)
        low, high = min(ay0, ay1), max(ay0, ay1)
        for j in near_b:
            bx0, by0, bx1, by1 = b[j, 0], b[j, 1], b[j, 2], b[j, 3]
            if max(bx0, bx1) < left or min(bx0, bx1) > right or max(by0, by1) < low or min(by0, by1) > high:
                continue
            b0 = side(ax0, ay0, ax1, ay1, bx0, by0)
            b1 = side(ax0, ay0, ax1, ay1, bx1, by1)
            if b0 * b1 > 0:
                continue
            a0 = side(bx0, by0, bx1, by1, ax0, ay0)
            a1 = side(bx0, by0, bx1, by1, ax1, ay1)
            if a0 * a1 > 0:
                continue
            if b0 * b1 < 0 and a0 * a1 < 0:
                return -1
            if (
                (b0 == 0 and _on(ax0, ay0, ax1, ay1, bx0, by0))
                or (b1 == 0 and _on(ax0, ay0, ax1, ay1, bx1, by1))
                or (a0 == 0 and _on(bx0, by0, bx1, by1, ax0, ay0))
                or (a1 == 0 and _on(bx0, by0, bx1, by1, ax1, ay1))
            ):
                touched_a[i] = True
                touched_b[j] = True
                count += 1
    return count


@njit(cache=True)
def _cuts(edge, b, near_b, touched_b, points):
    """The points of an edge where vertices of the other lie on it, its own ends included, in order; how many."""
    x0, y0, x1, y1 = edge[0], edge[1], edge[2], edge[3]
    points[0, 0], points[0, 1] = x0, y0
    count = 1
    for j in near_b:
        if not touched_b[j]:
            continue
        for end in range(2):
            x, y = b[j, 2 * end], b[j, 2 * end + 1]
            if (x == x0 and y == y0) or (x == x1 and y == y1):
                continue
            if _on(x0, y0, x1, y1, x, y) and side(x0, y0, x1, y1, x, y) == 0:
                # On the edge, one coordinate orders: x, or y where the edge is upright. Insert in order, once.
                at = count
                repeated = False
                while at > 0:
                    px, py = points[at - 1, 0], points[at - 1, 1]
                    if px == x and py == y:
                        repeated = True
                        break
                    ahead = (px > x) == (x1 > x0) if x0 != x1 else (py > y) == (y1 > y0)
                    if not ahead:
                        break
                    at -= 1
                if not repeated:
                    for k in range(count, at, -1):
                        points[k, 0], points[k, 1] = points[k - 1, 0], points[k - 1, 1]
                    points[at, 0], points[at, 1] = x, y
                    count += 1
    points[count, 0], points[count, 1] = x1, y1
    return count + 1


@njit(cache=True)
def _piece_on(b, near_b, touched_b, px, py, qx, qy):
    """_SAME or _OPPOSITE if the piece from p to q lies on an edge of the other, by its direction; else 0."""
    for j in near_b:
        if not touched_b[j]:
            continue
        x0, y0, x1, y1 = b[j, 0], b[j, 1], b[j, 2], b[j, 3]
        if not (_on(x0, y0, x1, y1, px, py) and _on(x0, y0, x1, y1, qx, qy)):
            continue
        if side(x0, y0, x1, y1, px, py) == 0 and side(x0, y0, x1, y1, qx, qy) == 0:
            along = (qx > px) == (x1 > x0) if x0 != x1 else (qy > py) == (y1 > y0)
            return _SAME if along else _OPPOSITE
    return 0


@njit(cache=True)
def _boundary(a, rings_a, near_a, touched_a, b, near_b, touched_b, points):
    """Where the boundary of a runs, seen from b, as flags.

    A chain of edges that touch nothing goes on from a piece of an edge that does, so only rings without any contact
    need a look of their own.
    """
    flags = 0
    for ring in range(rings_a.shape[0] - 1):
        start, end = rings_a[ring], rings_a[ring + 1]
        is_touched = False
        for i in range(start, end):
            if touched_a[i]:
                is_touched = True
                count = _cuts(a[i], b, near_b, touched_b, points)
                for k in range(count - 1):
                    px, py, qx, qy = points[k, 0], points[k, 1], points[k + 1, 0], points[k + 1, 1]
                    flag = _piece_on(b, near_b, touched_b, px, py, qx, qy)
                    if flag == 0:
                        flag = _IN if _midpoint_inside(b, px, py, qx, qy) else _OUT
                    flags |= flag
                    if flags & _IN and flags & _OUT:
                        return flags
        if not is_touched:
            flags |= _IN if locate(b, a[start, 0], a[start, 1]) > 0 else _OUT
    return flags


@njit(cache=True)
def _table(of_a, of_b, touches):
    on = of_a | of_b
    a_in_b = not (of_a & _OUT or on & _OPPOSITE or of_b & _IN)
    b_in_a = not (of_b & _OUT or on & _OPPOSITE or of_a & _IN)
    if a_in_b and b_in_a:
        return EQUALS
    if a_in_b:
        return COVERED_BY if touches else INSIDE
    if b_in_a:
        return COVERS if touches else CONTAINS
    if of_a & _IN or of_b & _IN or on & _SAME:
        return OVERLAPS
    return MEETS if touches else DISJOINT


@njit(cache=True)
def relate_edges(a, rings_a, box_a, b, rings_b, box_b):
    """The code of "a relation b". `rings` has the first edge of each ring, and the number of edges at its end."""
    if box_a[2] < box_b[0] or box_b[2] < box_a[0] or box_a[3] < box_b[1] or box_b[3] < box_a[1]:
        return DISJOINT
    near_a, near_b = _near(a, box_b), _near(b, box_a)
    touched_a, touched_b = np.zeros(a.shape[0], np.bool_), np.zeros(b.shape[0], np.bool_)
    contacts = _contacts(a, near_a, b, near_b, touched_a, touched_b)
    if contacts < 0:
        return OVERLAPS
    points = np.empty((2 * max(a.shape[0], b.shape[0]) + 2, 2))
    of_a = _boundary(a, rings_a, near_a, touched_a, b, near_b, touched_b, points)
    if of_a & _IN and of_a & _OUT:
        return OVERLAPS
    of_b = _boundary(b, rings_b, near_b, touched_b, a, near_a, touched_a, points)
    return _table(of_a, of_b, contacts > 0)


@njit(inline="always", cache=True)
def _meeting(a, near_a, b):
    """-1 if two edges properly cross, 1 if some touch and none cross, 0 if there is no contact at all.

    Edge by edge of a, along the rings of b: the side of a vertex is found once for the two edges it belongs to.
    """
    result = 0
    for i in near_a:
        ax0, ay0, ax1, ay1 = a[i, 0], a[i, 1], a[i, 2], a[i, 3]
        left, right = min(ax0, ax1), max(ax0, ax1)
        low, high = min(ay0, ay1), max(ay0, ay1)
        x, y = np.nan, np.nan
        b1 = 0
        for j in range(b.shape[0]):
            bx0, by0, bx1, by1 = b[j, 0], b[j, 1], b[j, 2], b[j, 3]
            b0 = b1 if bx0 == x and by0 == y else side(ax0, ay0, ax1, ay1, bx0, by0)
            b1 = side(ax0, ay0, ax1, ay1, bx1, by1)
            x, y = bx1, by1
            if b0 * b1 > 0:
                continue
            if max(bx0, bx1) < left or min(bx0, bx1) > right or max(by0, by1) < low or min(by0, by1) > high:
                continue
            a0 = side(bx0, by0, bx1, by1, ax0, ay0)
            a1 = side(bx0, by0, bx1, by1, ax1, ay1)
            if a0 * a1 > 0:
                continue
            if b0 * b1 < 0 and a0 * a1 < 0:
                return -1
            if (
                (b0 == 0 and _on(ax0, ay0, ax1, ay1, bx0, by0))
                or (b1 == 0 and _on(ax0, ay0, ax1, ay1, bx1, by1))
                or (a0 == 0 and _on(bx0, by0, bx1, by1, ax0, ay0))
                or (a1 == 0 and _on(bx0, by0, bx1, by1, ax1, ay1))
            ):
                result = 1
    return result


@njit(cache=True)
def pair_holds(relation, a, rings_a, box_a, near_a, b, rings_b, box_b):
    """Whether "a relation b" holds, for the five relations that need no box of b around a.

    `near_a` are the edges of a that may meet b's box, at least one.
    """
    contacts = _meeting(a, near_a, b)
    if contacts < 0:
        return relation == OVERLAPS
    if contacts == 0:
        if relation in (MEETS, COVERS):
            return False
        if rings_a.shape[0] == 2 and rings_b.shape[0] == 2:
            if relation == OVERLAPS:
                return False
            if locate(a, b[0, 0], b[0, 1]) > 0:
                return relation == CONTAINS
            return relation == DISJOINT and locate(b, a[0, 0], a[0, 1]) < 0
    elif relation in (DISJOINT, CONTAINS):
        return False
    return relate_edges(a, rings_a, box_a, b, rings_b, box_b) == relation
