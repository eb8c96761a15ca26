"""The relation of two regions, exactly, from signs of orientation alone.

A region is its directed edges, rows of (x0, y0, x1, y1) with the interior on the left, ring after ring. If an edge of
one properly crosses an edge of the other they overlap. Else every contact is at a vertex of one of them, so the pieces
into which contacts cut an edge begin and end at given points: no coordinate is ever computed. A piece lies on
the other's boundary, or wholly in its interior or exterior, which the edges around its beginning tell.
`matcher.relations` has the proof of that and of the final table, and is what this must agree with.
"""

import numpy as np
from numba import njit

from matcher.engines.orientation import side

__all__ = [
    "CONTAINS", "COVERED_BY", "COVERS", "DISJOINT", "EQUALS", "INSIDE", "MEETS", "OVERLAPS", "NAMES", "locate",
    "pair_holds", "relate_edges",
]  # fmt: skip

DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = range(8)
NAMES = ("disjoint", "meets", "overlaps", "equals", "inside", "contains", "covers", "covered-by")

_IN, _OUT, _SAME, _OPPOSITE = 1, 2, 4, 8
_ANY = -1


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
def _contacts(a, near_a, b, near_b):
    """-1 if two edges properly cross, else how many pairs touch; and the pairs, as places in `near_a` and `near_b`."""
    count = 0
    pairs = np.empty((2 * (len(near_a) + len(near_b)), 2), np.int64)
    for k in range(len(near_a)):
        i = near_a[k]
        ax0, ay0, ax1, ay1 = a[i, 0], a[i, 1], a[i, 2], a[i, 3]
        left, right = min(ax0, ax1), max(ax0, ax1)
        low, high = min(ay0, ay1), max(ay0, ay1)
        for m in range(len(near_b)):
            j = near_b[m]
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
                return -1, pairs
            if (
                (b0 == 0 and _on(ax0, ay0, ax1, ay1, bx0, by0))
                or (b1 == 0 and _on(ax0, ay0, ax1, ay1, bx1, by1))
                or (a0 == 0 and _on(bx0, by0, bx1, by1, ax0, ay0))
                or (a1 == 0 and _on(bx0, by0, bx1, by1, ax1, ay1))
            ):
                if count == len(pairs):  # many edges in one point
                    pairs = np.concatenate((pairs, np.empty_like(pairs)))
                pairs[count, 0], pairs[count, 1] = k, m
                count += 1
    return count, pairs


@njit(cache=True)
def _partners(pairs, own, near, near_other):
    """Of each edge of `near` the edges of the other that touch it: where they begin, and they, one behind the other."""
    starts = np.zeros(len(near) + 1, np.int64)
    for pair in pairs:
        starts[pair[own] + 1] += 1
    for k in range(len(near)):
        starts[k + 1] += starts[k]
    filled = starts[:-1].copy()
    partners = np.empty(len(pairs), np.int64)
    for pair in pairs:
        k = pair[own]
        partners[filled[k]] = near_other[pair[1 - own]]
        filled[k] += 1
    return starts, partners


@njit(cache=True)
def _cuts(edge, b, touching, points):
    """The points of an edge where vertices of the other lie on it, its own ends included, in order; how many."""
    x0, y0, x1, y1 = edge[0], edge[1], edge[2], edge[3]
    points[0, 0], points[0, 1] = x0, y0
    count = 1
    for j in touching:
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
def _is_between(x, y, first_x, first_y, last_x, last_y, px, py):
    """Whether the direction from (x, y) to p is passed when turning counter-clockwise from `first` to `last`."""
    turn = side(x, y, first_x, first_y, last_x, last_y)
    if turn > 0:
        return side(x, y, first_x, first_y, px, py) > 0 and side(x, y, px, py, last_x, last_y) > 0
    if turn < 0:
        return not (side(x, y, last_x, last_y, px, py) >= 0 and side(x, y, px, py, first_x, first_y) >= 0)
    return side(x, y, first_x, first_y, px, py) > 0


@njit(cache=True)
def _piece(b, touching, px, py, qx, qy):
    """Where the piece from p to q runs, seen from b: a flag, or 0 if it does not begin at a contact. `touching` are the
    edges of b that touch the edge it is a piece of.

    Both points may be on one edge of b: then so is the piece. Else the first direction clockwise from q, of all that
    lead from p along b's boundary, tells: the interior is on the left of an edge that goes away, and between the
    two; on the far side of one that comes in. No direction is that of q itself, for the piece would end where the edge
    does, or lie on it.
    """
    is_contact = goes_away = False
    x = y = 0.0
    for j in touching:
        x0, y0, x1, y1 = b[j, 0], b[j, 1], b[j, 2], b[j, 3]
        if not (_on(x0, y0, x1, y1, px, py) and side(x0, y0, x1, y1, px, py) == 0):
            continue
        if _on(x0, y0, x1, y1, qx, qy) and side(x0, y0, x1, y1, qx, qy) == 0:
            along = (qx > px) == (x1 > x0) if x0 != x1 else (qy > py) == (y1 > y0)
            return _SAME if along else _OPPOSITE
        if (x1 != px or y1 != py) and (not is_contact or _is_between(px, py, x, y, qx, qy, x1, y1)):
            x, y, goes_away, is_contact = x1, y1, True, True
        if (x0 != px or y0 != py) and (not is_contact or _is_between(px, py, x, y, qx, qy, x0, y0)):
            x, y, goes_away, is_contact = x0, y0, False, True
    if not is_contact:
        return 0
    return _IN if goes_away else _OUT


@njit(cache=True)
def _boundary(a, rings_a, near_a, starts, partners, b, points, stop):
    """Where the boundary of a runs, seen from b, as flags.

    Every stretch of a ring between two contacts has a piece that begins at one. Only rings without any contact need
    a look of their own. The flags of `stop` decide for the caller, as do being inside and outside: then others may be
    missing.
    """
    flags = 0
    k = 0
    for ring in range(rings_a.shape[0] - 1):
        is_touched = False
        while k < len(near_a) and near_a[k] < rings_a[ring + 1]:
            touching = partners[starts[k] : starts[k + 1]]
            if len(touching):
                is_touched = True
                for i in range(_cuts(a[near_a[k]], b, touching, points) - 1):
                    flags |= _piece(b, touching, points[i, 0], points[i, 1], points[i + 1, 0], points[i + 1, 1])
                if flags & stop or (flags & _IN and flags & _OUT):
                    return flags
            k += 1
        if not is_touched:
            flags |= _IN if locate(b, a[rings_a[ring], 0], a[rings_a[ring], 1]) > 0 else _OUT
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
def _relate_near(a, rings_a, near_a, b, rings_b, near_b, wanted):
    """The relation, given the edges of each that may meet the other; if it is not the wanted one, maybe another."""
    count, pairs = _contacts(a, near_a, b, near_b)
    if count < 0:
        return OVERLAPS
    points = np.empty((2 * count + 2, 2))
    stop = _IN | _SAME if wanted == MEETS else _OUT | _OPPOSITE if wanted == COVERS else 0
    starts, partners = _partners(pairs[:count], 1, near_b, near_a)
    of_b = _boundary(b, rings_b, near_b, starts, partners, a, points, stop)
    if of_b & stop or (of_b & _IN and of_b & _OUT):
        return OVERLAPS
    starts, partners = _partners(pairs[:count], 0, near_a, near_b)
    of_a = _boundary(a, rings_a, near_a, starts, partners, b, points, 0)
    if of_a & _IN and of_a & _OUT:
        return OVERLAPS
    return _table(of_a, of_b, count > 0)


@njit(cache=True)
def relate_edges(a, rings_a, box_a, b, rings_b, box_b):
    """The code of "a relation b". `rings` has the first edge of each ring, and the number of edges at its end."""
    if box_a[2] < box_b[0] or box_b[2] < box_a[0] or box_a[3] < box_b[1] or box_b[3] < box_a[1]:
        return DISJOINT
    return _relate_near(a, rings_a, _near(a, box_b), b, rings_b, _near(b, box_a), _ANY)


@njit(inline="always", cache=True)
def _meeting(a, near_a, b):
    """What the first contact that is found is, -1 two edges that properly cross, 1 two that touch, 0 there is none; and
    how many edges of a were looked at before in vain.

    Edge by edge of a, along the rings of b: the side of a vertex is found once for the two edges it belongs to.
    """
    for k in range(len(near_a)):
        i = near_a[k]
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
                return -1, k
            if (
                (b0 == 0 and _on(ax0, ay0, ax1, ay1, bx0, by0))
                or (b1 == 0 and _on(ax0, ay0, ax1, ay1, bx1, by1))
                or (a0 == 0 and _on(bx0, by0, bx1, by1, ax0, ay0))
                or (a1 == 0 and _on(bx0, by0, bx1, by1, ax1, ay1))
            ):
                return 1, k
    return 0, len(near_a)


@njit(cache=True)
def pair_holds(relation, a, rings_a, box_a, near_a, b, rings_b, box_b):
    """Whether "a relation b" holds, for the five relations that need no box of b around a.

    `near_a` are the edges of a that may meet b's box, at least one, in order.
    """
    contact, first = _meeting(a, near_a, b)
    if contact < 0:
        return relation == OVERLAPS
    if contact == 0:
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
    return _relate_near(a, rings_a, near_a[first:], b, rings_b, _near(b, box_a), relation) == relation
