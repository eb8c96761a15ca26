"""What the boxes around two regions say about the regions.

The relation of two boxes takes four comparisons, and leaves few relations possible between what is in them. The table
is the publication's with two entries corrected: `covered-by` may hold where the one box is inside the other, and
`covers` where it contains it. A small triangle that touches a slanted side from within is such a case.

Why it is sound, X and R being any regions: with holes, of several parts, or neither.

- disjoint boxes have disjoint regions, and boxes without a common interior have regions without one: `meets` needs
  boxes that touch at least, `overlaps` boxes whose interiors do.
- If X is part of R, so is the box of X of the box of R. If X is in the interior of R, then so is the leftmost point
  of X, hence R goes on to the left of it; likewise on the other sides: the boxes are `inside` and nothing else.
- `disjoint` is impossible for equal boxes only if both regions are connected: then each has a path from the left side
  of the box to the right one and from the bottom to the top, and such paths cross. Holes don't matter, parts do: two
  squares at opposite corners of a box are disjoint from two at the others. So regions of one ring have a tighter
  entry than others.
"""

from collections.abc import Mapping

from matcher.planar import Box
from matcher.selector.tree import Relation

__all__ = ["POSSIBLE", "POSSIBLE_IF_SIMPLE", "Possible", "box_relation"]

Possible = Mapping[Relation, frozenset[Relation]]

_ALL = frozenset(Relation)

POSSIBLE: Possible = {
    Relation.DISJOINT: _ALL,
    Relation.MEETS: _ALL - {Relation.DISJOINT},
    Relation.OVERLAPS: _ALL - {Relation.DISJOINT, Relation.MEETS},
    Relation.INSIDE: frozenset({Relation.INSIDE}),
    Relation.CONTAINS: frozenset({Relation.CONTAINS}),
    Relation.COVERED_BY: frozenset({Relation.INSIDE, Relation.COVERED_BY, Relation.EQUALS}),
    Relation.COVERS: frozenset({Relation.CONTAINS, Relation.COVERS, Relation.EQUALS}),
    Relation.EQUALS: frozenset({Relation.EQUALS}),
}
"""The relations that the boxes of two regions may have if the regions have the relation that is the key."""

POSSIBLE_IF_SIMPLE: Possible = {**POSSIBLE, Relation.DISJOINT: _ALL - {Relation.EQUALS}}
"""The same where both regions are connected."""


def box_relation(a: Box, b: Box) -> Relation:
    """The one relation of "a REL b"."""
    west, south, east, north = a
    b_west, b_south, b_east, b_north = b
    if east < b_west or west > b_east or north < b_south or south > b_north:
        return Relation.DISJOINT
    if east == b_west or west == b_east or north == b_south or south == b_north:
        return Relation.MEETS
    if a == b:
        return Relation.EQUALS
    if b_west <= west and b_south <= south and east <= b_east and north <= b_north:
        apart = b_west < west and b_south < south and east < b_east and north < b_north
        return Relation.INSIDE if apart else Relation.COVERED_BY
    if west <= b_west and south <= b_south and b_east <= east and b_north <= north:
        apart = west < b_west and south < b_south and b_east < east and b_north < north
        return Relation.CONTAINS if apart else Relation.COVERS
    return Relation.OVERLAPS
