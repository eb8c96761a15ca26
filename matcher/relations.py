"""Which of the eight relations holds between two regions, exactly.

Only signs of orientations of given points are asked for, and those are exact (`matcher.planar.orientation`), so the
answer is that of exact arithmetic on the given doubles, for polygons with holes and of several parts too. No point
of intersection is ever computed: where two edges cross properly the answer is known, `overlaps`, and without such a
crossing every contact of the two boundaries begins and ends at a given vertex.

Why the pieces of the boundaries decide. Cut both boundaries at all contacts. Then a piece of A's boundary is wholly
inside B (`a_in`), outside B (`a_out`), or it is a piece of B's boundary too, with both interiors on the same side
(`same`) or on different ones (`opposite`); likewise `b_in` and `b_out`. Let W be the points that are inside A and
outside B. W is open and bounded; if there are any, it has a boundary, more than finitely many points of it, so one
of them, w, is no end of a piece. w is on the boundary of A or of B. On A's alone: w is a limit of points outside B and
not on B's boundary, hence outside B: `a_out`. On B's alone: in the same way inside A: `b_in`. On both: one side of
the piece is in W, so it is inside A and outside B: `opposite`. And each of the three at once gives points of W. So

    A is part of B       if and only if none of a_out, opposite, b_in
    B is part of A       if and only if none of b_out, opposite, a_in
    the interiors meet   if and only if any of  a_in, b_in, same          (the same proof, with W inside both)

which, with whether the boundaries touch at all, is the end of `relate`. Nothing here needs A or B to be connected
or free of holes.
"""

from collections.abc import Iterable
from enum import StrEnum

from matcher.planar import Box, Edge, PlanarRegion, orientation, side
from matcher.selector.tree import Relation
from zones.shapes import Point

__all__ = ["Place", "inverse", "locate", "orientation", "relate"]


class Place(StrEnum):
    """Where a point is, seen from a region."""

    IN = "in"
    ON = "on"
    OUT = "out"


_INVERSE = {
    Relation.INSIDE: Relation.CONTAINS,
    Relation.CONTAINS: Relation.INSIDE,
    Relation.COVERS: Relation.COVERED_BY,
    Relation.COVERED_BY: Relation.COVERS,
}

_OnEdges = dict[Edge, set[Point]]  # the contact points on an edge, its ends included
_Piece = tuple[Point, Point]


def inverse(relation: Relation) -> Relation:
    """What holds between b and a if `relation` holds between a and b."""
    return _INVERSE.get(relation, relation)


def relate(a: PlanarRegion, b: PlanarRegion) -> Relation:
    """The one relation of "a REL b"."""
    west, south, east, north = a.box
    b_west, b_south, b_east, b_north = b.box
    west, east = max(west, b_west), min(east, b_east)
    south, north = max(south, b_south), min(north, b_north)
    if west > east or south > north:
        return Relation.DISJOINT
    common = (west, south, east, north)
    on_a: _OnEdges = {}
    on_b: _OnEdges = {}
    if _find_contacts(_meeting(a.edges, common), _meeting(b.edges, common), on_a, on_b):
        return Relation.OVERLAPS
    a_in, a_out = _rings_without_contact(a, on_a, b)
    b_in, b_out = _rings_without_contact(b, on_b, a)
    same = opposite = False
    if on_a:
        a_boundary, b_boundary = _Boundary(on_a), _Boundary(on_b)
        for start, end in a_boundary.leaving:
            if (start, end) in b_boundary.pieces:
                same = True
            elif (end, start) in b_boundary.pieces:
                opposite = True
            elif b_boundary.has_inside(start, end):
                a_in = True
            else:
                a_out = True
        for start, end in b_boundary.leaving:
            if (start, end) not in a_boundary.pieces and (end, start) not in a_boundary.pieces:
                if a_boundary.has_inside(start, end):
                    b_in = True
                else:
                    b_out = True

    a_in_b = not (a_out or opposite or b_in)
    b_in_a = not (b_out or opposite or a_in)
    if a_in_b and b_in_a:
        return Relation.EQUALS
    if a_in_b:
        return Relation.COVERED_BY if on_a else Relation.INSIDE
    if b_in_a:
        return Relation.COVERS if on_a else Relation.CONTAINS
    if a_in or b_in or same:
        return Relation.OVERLAPS
    return Relation.MEETS if on_a else Relation.DISJOINT


def locate(point: Point, region: PlanarRegion) -> Place:
    """Whether a point is inside a region, on its boundary, or outside; exact."""
    x, y = point
    west, south, east, north = region.box
    if not (west <= x <= east and south <= y <= north):
        return Place.OUT
    # Count the edges that a ray to the left crosses. An edge has its lower end and not its upper one, so that a
    # vertex on the ray counts once if the boundary crosses there, and twice or not at all if it turns back.
    inside = False
    for left, low, right, high, ux, uy, vx, vy, _ in region.edges:
        if left > x:
            break
        if low <= y <= high:
            if right < x:
                if (uy > y) != (vy > y):
                    inside = not inside
                continue
            turn = side(ux, uy, vx, vy, x, y)
            if turn == 0:
                return Place.ON
            if (uy > y) != (vy > y) and (turn < 0) == (vy > uy):
                inside = not inside
    return Place.IN if inside else Place.OUT


class _Boundary:
    """The part of a boundary that is near contacts, cut at them."""

    __slots__ = ("_around", "leaving", "pieces")

    def __init__(self, on_edges: _OnEdges) -> None:
        self.leaving: list[_Piece] = []  # the pieces that start at a contact: every stretch between two has one
        self.pieces: set[_Piece] = set()
        self._around: dict[Point, list[tuple[Point, bool]]] = {}  # at a contact: where to, and is it along a piece
        for (_, _, _, _, ux, uy, vx, vy, _), contacts in on_edges.items():
            # By x, then y, is the order along the edge or against it.
            at, last = (ux, uy), (vx, vy)
            for point in sorted(contacts, reverse=at > last):
                self._add(at, point, contacts)
                at = point
            self._add(at, last, contacts)

    def _add(self, start: Point, end: Point, contacts: set[Point]) -> None:
        if start == end:
            return
        self.pieces.add((start, end))
        if start in contacts:
            self.leaving.append((start, end))
            self._around.setdefault(start, []).append((end, True))
        if end in contacts:
            self._around.setdefault(end, []).append((start, False))

    def has_inside(self, start: Point, end: Point) -> bool:
        """Whether one gets into the interior by leaving the contact `start` for `end`.

        Of the pieces around `start` find the first one clockwise from there. The interior is on the left of a piece:
        on the near side if the piece goes away from `start`, on the far side if it comes in. No piece has the
        direction itself: it would be cut where the other ends, and both would be one piece of two boundaries.
        """
        around = self._around[start]
        nearest, goes_away = around[0]
        for other, away in around[1:]:
            if _is_between(start, nearest, end, other):
                nearest, goes_away = other, away
        return goes_away


def _is_between(center: Point, first: Point, last: Point, point: Point) -> bool:
    """Whether the direction to `point` is passed when turning counter-clockwise from `first` to `last`."""
    turn = orientation(center, first, last)
    if turn > 0:
        return orientation(center, first, point) > 0 and orientation(center, point, last) > 0
    if turn < 0:
        return not (orientation(center, last, point) >= 0 and orientation(center, point, first) >= 0)
    return orientation(center, first, point) > 0


def _rings_without_contact(region: PlanarRegion, on_edges: _OnEdges, other: PlanarRegion) -> tuple[bool, bool]:
    """Whether any of them is inside the other region, and whether any is outside: one point tells for a ring."""
    touching = {edge[-1] for edge in on_edges}
    places = {locate(ring[0], other) for index, ring in enumerate(region.rings) if index not in touching}
    return Place.IN in places, Place.OUT in places


def _meeting(edges: Iterable[Edge], box: Box) -> list[Edge]:
    """The edges whose boxes meet this one, in the same order."""
    west, south, east, north = box
    return [edge for edge in edges if edge[0] <= east and edge[2] >= west and edge[1] <= north and edge[3] >= south]


def _find_contacts(a_edges: list[Edge], b_edges: list[Edge], on_a: _OnEdges, on_b: _OnEdges) -> bool:
    """Sweep over both from left to right and note all contacts; True, at once, if two edges cross properly."""
    a_near: list[Edge] = []
    b_near: list[Edge] = []
    at_a = at_b = 0
    while at_a < len(a_edges) or at_b < len(b_edges):
        if at_b == len(b_edges) or (at_a < len(a_edges) and a_edges[at_a][0] <= b_edges[at_b][0]):
            edge = a_edges[at_a]
            at_a += 1
            west, south, _, north, *_ = edge
            b_near = [other for other in b_near if other[2] >= west]
            for other in b_near:
                if other[1] <= north and other[3] >= south and _cross(edge, other, on_a, on_b):
                    return True
            a_near.append(edge)
        else:
            edge = b_edges[at_b]
            at_b += 1
            west, south, _, north, *_ = edge
            a_near = [other for other in a_near if other[2] >= west]
            for other in a_near:
                if other[1] <= north and other[3] >= south and _cross(other, edge, on_a, on_b):
                    return True
            b_near.append(edge)
    return False


def _cross(a: Edge, b: Edge, on_a: _OnEdges, on_b: _OnEdges) -> bool:
    """Whether two edges cross properly; if they only touch, the ends that lie on the other edge are noted."""
    a_west, a_south, a_east, a_north, aux, auy, avx, avy, _ = a
    b_west, b_south, b_east, b_north, bux, buy, bvx, bvy, _ = b
    a_start = side(bux, buy, bvx, bvy, aux, auy)
    a_end = side(bux, buy, bvx, bvy, avx, avy)
    if a_start * a_end > 0:
        return False
    b_start = side(aux, auy, avx, avy, bux, buy)
    b_end = side(aux, auy, avx, avy, bvx, bvy)
    if b_start * b_end > 0:
        return False
    if a_start * a_end * b_start * b_end:
        return True
    contacts: list[Point] = []
    if a_start == 0 and b_west <= aux <= b_east and b_south <= auy <= b_north:
        contacts.append((aux, auy))
    if a_end == 0 and b_west <= avx <= b_east and b_south <= avy <= b_north:
        contacts.append((avx, avy))
    if b_start == 0 and a_west <= bux <= a_east and a_south <= buy <= a_north:
        contacts.append((bux, buy))
    if b_end == 0 and a_west <= bvx <= a_east and a_south <= bvy <= a_north:
        contacts.append((bvx, bvy))
    if contacts:
        on_a.setdefault(a, set()).update(contacts)
        on_b.setdefault(b, set()).update(contacts)
    return False
