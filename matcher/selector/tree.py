"""The typed tree of a selector.

Two families share the inner nodes. A *selector* is what a subscriber wrote: its spatial terms name objects and
zones. A *condition* is what is left for one binding after names were resolved (`matcher.selector.binding`): its
spatial leaves are `InZones`, `Related` and `Near` with opaque ids of zones and objects, and oids are gone. Conditions
travel to devices, so every node is a tagged struct and the device needs no parser. (`Near` never does: a device knows
of no other.)
"""

from enum import StrEnum

import msgspec

from zones.shapes import Shape

__all__ = [
    "And", "Arith", "ArithOp", "Between", "Compare", "CompareOp", "Condition", "Const", "DeviceCondition", "Distance",
    "In", "InZones", "InlineZone", "IsNull", "Like", "Literal", "NamedZone", "Name", "Near", "Negative", "Not",
    "Operand", "Or", "Plain", "Relate", "Related", "Relation", "Selector", "Time", "Truth", "Within", "ZoneRef",
    "ZoneSet", "ZoneTag",
]  # fmt: skip


class _Node(msgspec.Struct, frozen=True, tag_field="t"):
    pass


class Time(_Node, frozen=True, order=True, tag="time"):
    """A moment as a value: what `TIMESTAMP '...'` and an event's `ts` are."""

    ms: int


class CompareOp(StrEnum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class ArithOp(StrEnum):
    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"


class Relation(StrEnum):
    """The eight relations, read "subject REL zone"."""

    DISJOINT = "disjoint"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    EQUALS = "equals"
    INSIDE = "inside"
    CONTAINS = "contains"
    COVERS = "covers"
    COVERED_BY = "covered-by"


# --- operands: what is compared -------------------------------------------------------------------


class Name(_Node, frozen=True, tag="name"):
    """An attribute of the event: one of its pairs, or oid, ts, unc, lpid."""

    name: str


class Literal(_Node, frozen=True, tag="lit"):
    """A value as written. 1, 1.0 and TRUE are three: they compare and divide differently, whatever Python thinks."""

    value: bool | int | float | str | Time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


class Negative(_Node, frozen=True, tag="neg"):
    operand: "Operand"


class Arith(_Node, frozen=True, tag="arith"):
    op: ArithOp
    left: "Operand"
    right: "Operand"


Operand = Name | Literal | Negative | Arith


# --- zones as a subscriber writes them -------------------------------------------------------------


class NamedZone(_Node, frozen=True, tag="zone"):
    owner: str
    local: str


class ZoneSet(_Node, frozen=True, tag="set"):
    """`OWNER.*`: every zone of that owner, now and later."""

    owner: str


class ZoneTag(_Node, frozen=True, tag="tagged"):
    """`OWNER.#tag`: every zone of that owner with the tag."""

    owner: str
    tag: str


class InlineZone(_Node, frozen=True, tag="inline"):
    shape: Shape


ZoneRef = NamedZone | ZoneSet | ZoneTag | InlineZone


# --- conditions ------------------------------------------------------------------------------------


class Compare(_Node, frozen=True, tag="cmp"):
    op: CompareOp
    left: Operand
    right: Operand


class Between(_Node, frozen=True, tag="between"):
    operand: Operand
    low: Operand
    high: Operand
    negated: bool = False


class In(_Node, frozen=True, tag="in"):
    name: str
    values: tuple[str, ...]
    negated: bool = False


class Like(_Node, frozen=True, tag="like"):
    name: str
    pattern: str
    escape: str | None = None
    negated: bool = False


class IsNull(_Node, frozen=True, tag="null"):
    name: str
    negated: bool = False


class Truth(_Node, frozen=True, tag="truth"):
    """A boolean attribute or literal that stands by itself: `urgent AND ...`."""

    operand: Name | Literal


class Not(_Node, frozen=True, tag="not"):
    item: "Selector | Condition"


class And(_Node, frozen=True, tag="and"):
    items: tuple["Selector | Condition", ...]


class Or(_Node, frozen=True, tag="or"):
    items: tuple["Selector | Condition", ...]


# --- spatial terms, only in selectors --------------------------------------------------------------


class Within(_Node, frozen=True, tag="within"):
    """`(oid, ...) within (zone, ...)`; oids None is `(*)`."""

    oids: tuple[str, ...] | None
    zones: tuple[ZoneRef, ...]


class Distance(_Node, frozen=True, tag="distance"):
    """`(oid) distance (D, oid, ...)`; others None is `*`: every other object the subscriber may see."""

    oid: str
    metres: float
    others: tuple[str, ...] | None


class Relate(_Node, frozen=True, tag="relate"):
    """`attribute REL (zone, ...)`, or with oids the object's own region (then attribute is None)."""

    attribute: str | None
    oids: tuple[str, ...] | None
    relation: Relation
    zones: tuple[ZoneRef, ...]


# --- spatial leaves, only in conditions ------------------------------------------------------------


class InZones(_Node, frozen=True, tag="inzones"):
    """The event's loc is in at least one of these zones, or on its boundary."""

    zones: tuple[str, ...]


class Related(_Node, frozen=True, tag="related"):
    """The event's region of that name has the relation to at least one of these zones; for `disjoint`, to all of them.

    Without a name it is the region of the object itself: its `footprint`, else the disk of its `unc`.
    """

    attribute: str | None
    relation: Relation
    zones: tuple[str, ...]


class Near(_Node, frozen=True, tag="near"):
    """The object is less than so many metres away from at least one of these other objects."""

    others: tuple[str, ...]
    metres: float


class Const(_Node, frozen=True, tag="const"):
    """A term decided while binding, for example "is this object in the list"."""

    value: bool | None


Plain = Compare | Between | In | Like | IsNull | Truth
Selector = And | Or | Not | Within | Distance | Relate | Plain
Condition = And | Or | Not | InZones | Related | Near | Const | Plain
DeviceCondition = And | Or | Not | InZones | Related | Const | Plain  # what travels: no device knows where others are
