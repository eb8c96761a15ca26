"""What two relations say about a third: the composition of the eight.

If x has a relation to y and y has one to z, only some relations are possible between x and z. The table is that of the
region connection calculus (RCC-8: disjoint is DC, meets EC, overlaps PO, inside NTPP, covered-by TPP, contains
and covers their inverses, equals EQ). It is what makes two constraints on one region comparable: see
`matcher.simplification`.

The table is sound for regions with holes and of several parts too, because each entry it leaves out is excluded by
sets alone. A region is the closure of its interior; "inside" says that x is part of y's interior, "covered-by" that
it is part of y and not of its interior, "disjoint" that they share no point, "meets" that they share points and their
interiors don't. As an example, from `meets` and `inside`: a point that x and y share is in z's interior, and close
to it is interior of x, so the interiors of x and z meet; and z is not part of x, or else y were, and would not merely
meet it. What is left is overlaps, covered-by and inside.
"""

from matcher.selector.tree import Relation

__all__ = ["compose"]

_LETTERS = {
    "D": Relation.DISJOINT,
    "M": Relation.MEETS,
    "O": Relation.OVERLAPS,
    "I": Relation.INSIDE,
    "B": Relation.COVERED_BY,
    "C": Relation.CONTAINS,
    "V": Relation.COVERS,
    "E": Relation.EQUALS,
}

# The row is the relation of x and y, the column that of y and z; * is any.
_TABLE = """
  D      M       O      I       B      C      V       E
D *      DMOIB   DMOIB  DMOIB   DMOIB  D      D       D
M DMOCV  DMOBVE  DMOIB  OIB     MOIB   D      DM      M
O DMOCV  DMOCV   *      OIB     OIB    DMOCV  DMOCV   O
I D      D       DMOIB  I       I      *      DMOIB   I
B D      DM      DMOIB  I       IB     DMOCV  DMOBVE  B
C DMOCV  OCV     OCV    OIBCVE  OCV    C      C       C
V DMOCV  MOCV    OCV    OIB     OBVE   C      CV      V
E D      M       O      I       B      C      V       E
"""


def _parse(table: str) -> dict[tuple[Relation, Relation], frozenset[Relation]]:
    head, *rows = (line.split() for line in table.strip().splitlines())
    return {
        (_LETTERS[row[0]], _LETTERS[column]): frozenset(Relation if cell == "*" else map(_LETTERS.__getitem__, cell))
        for row in rows
        for column, cell in zip(head, row[1:], strict=True)
    }


_COMPOSITION = _parse(_TABLE)


def compose(first: Relation, second: Relation) -> frozenset[Relation]:
    """The relations that are possible for "x REL z" if "x first y" and "y second z"."""
    return _COMPOSITION[first, second]
