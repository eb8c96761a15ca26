"""Builds the tree while the parser recognises rules.

What a thing is (a condition, a number, a string, ...) is kept beside each node, so that what JMS forbids and can be
seen in the text (to order strings, to add them) is refused with its column. The depth is counted here too: no tree
that is too deep to walk ever comes into being.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from lark import Token, Transformer, v_args

from matcher.errors import SelectorInvalid, SelectorTooComplex, SelectorTooDeep
from matcher.instants import parse_instant
from matcher.selector.like import has_dangling_escape
from matcher.selector.tree import (
    And,
    Arith,
    ArithOp,
    Between,
    Compare,
    CompareOp,
    Distance,
    In,
    InlineZone,
    IsNull,
    Like,
    Literal,
    Name,
    NamedZone,
    Negative,
    Not,
    Operand,
    Or,
    Relate,
    Relation,
    Selector,
    Time,
    Truth,
    Within,
    ZoneRef,
    ZoneSet,
    ZoneTag,
)
from zones.errors import CallerError, ZoneNameInvalid
from zones.names import check_owner_name, check_text, parse_zone_name, shown
from zones.oids import parse_oid
from zones.wkt import shape_from_wkt

__all__ = ["MAX_DEPTH", "MAX_TERMS", "Builder", "Part", "as_condition"]

MAX_DEPTH = 32  # of nodes and written parentheses
MAX_TERMS = 256  # comparisons and other tests, spatial ones included
_MAX_TAG = 100

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Part:
    """A node with what the text tells about it. The kind of an attribute is "anything" unless it is built in."""

    node: Selector | Operand
    kind: str
    column: int
    depth: int
    terms: int = 1


_CONDITION, _ANYTHING, _NUMBER, _STRING, _BOOLEAN, _TIME, _PLACE = (
    "a condition",
    "anything",
    "a number",
    "a string",
    "a boolean",
    "a time",
    "a place",
)
_KNOWN = {"oid": _STRING, "lpid": _STRING, "ts": _TIME, "unc": _NUMBER, "loc": _PLACE}
_ORDERED = frozenset({_ANYTHING, _NUMBER, _TIME})
_ARITHMETIC = frozenset({_ANYTHING, _NUMBER})


def _made(node: Selector | Operand, kind: str, column: int, *parts: Part) -> Part:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAX_DEPTH:
        raise SelectorTooDeep(
            f"The selector is nested more than {MAX_DEPTH} levels deep, from column {column} on.",
            hint="Leave out needless parentheses and NOTs, or split it into several subscriptions.",
            column=column,
        )
    return Part(node, kind, column, depth)


def _join(node: And | Or, parts: Sequence[Part]) -> Part:
    """AND or OR; refused at the part with which there are too many terms."""
    terms = 0
    for part in parts:
        terms += part.terms
        if terms > MAX_TERMS:
            raise SelectorTooComplex(
                f"The selector has more than {MAX_TERMS} terms, from column {part.column} on.",
                hint="Use IN, a list of zones, or several subscriptions.",
                column=part.column,
            )
    return replace(_made(node, _CONDITION, parts[0].column, *parts), terms=terms)


def as_condition(part: Part) -> Selector:
    node = part.node
    if part.kind is _CONDITION:
        return cast("Selector", node)
    if isinstance(node, (Name, Literal)) and part.kind in (_BOOLEAN, _ANYTHING):
        return Truth(node)
    raise SelectorInvalid(
        f"Expected a condition at column {part.column}, but found {part.kind} by itself.",
        hint="Compare it with something, for example speed > 5.",
        column=part.column,
    )


def _operand(part: Part, allowed: frozenset[str] | None = None, use: str = "") -> Operand:
    if part.kind is _CONDITION:
        raise SelectorInvalid(
            f"Expected an attribute or a value at column {part.column}, but found a condition.",
            hint="A condition can't be compared or computed with; join conditions with AND, OR and NOT.",
            column=part.column,
        )
    if part.kind is _PLACE:
        raise SelectorInvalid(
            f"Expected a value at column {part.column}, but found a place, which can't be {use}.",
            hint="Of loc speak within, distance, the relations, and IS NULL.",
            column=part.column,
        )
    if allowed is not None and part.kind not in allowed:
        raise SelectorInvalid(
            f"Expected a number at column {part.column}, but found {part.kind}, which can't be {use}.",
            hint="Strings and booleans know = and <> only; times can be ordered, but not computed with.",
            column=part.column,
        )
    return cast("Operand", part.node)


def _attribute(part: Part, before: str, allowed: frozenset[str] | None = None) -> str:
    if not isinstance(part.node, Name) or (allowed is not None and part.kind not in allowed):
        raise SelectorInvalid(
            f"Expected an attribute before {before} at column {part.column}, but found "
            f"{'a computed value' if part.kind is _ANYTHING else part.kind}.",
            hint=f"Write the name of an attribute before {before}, for example priority.",
            column=part.column,
        )
    return part.node.name


def _refuse_mixed(parts: Sequence[Part]) -> None:
    """Times are ordered among themselves only."""
    kinds = {part.kind for part in parts}
    if _TIME in kinds and _NUMBER in kinds:
        number = next(part for part in parts if part.kind is _NUMBER)
        raise SelectorInvalid(
            f"Expected a time at column {number.column}, but found a number.",
            hint="Write a time as TIMESTAMP '2026-11-18T07:00:00Z'.",
            column=number.column,
        )


@v_args(inline=True)
class Builder(Transformer[Token, Part]):
    """Called by the parser with the parts of each rule as it is recognised."""

    def any_of(self, *parts: Part) -> Part:
        return _join(Or(tuple(map(as_condition, parts))), parts)

    def all_of(self, *parts: Part) -> Part:
        return _join(And(tuple(map(as_condition, parts))), parts)

    def negated(self, word: Token, part: Part) -> Part:
        return replace(_made(Not(as_condition(part)), _CONDITION, _column(word), part), terms=part.terms)

    def group(self, part: Part) -> Part:
        return replace(_made(part.node, part.kind, part.column, part), terms=part.terms)

    # --- tests

    def compared(self, left: Part, sign: Token, right: Part) -> Part:
        op = CompareOp(str(sign))
        allowed = frozenset({_ANYTHING, _NUMBER, _TIME, _STRING, _BOOLEAN})
        if op not in (CompareOp.EQ, CompareOp.NE):
            allowed = _ORDERED
            _refuse_mixed((left, right))
        node = Compare(op, _operand(left, allowed, "compared so"), _operand(right, allowed, "compared so"))
        return _made(node, _CONDITION, left.column, left, right)

    def between(self, part: Part, negated: Token | None, low: Part, high: Part) -> Part:
        _refuse_mixed((part, low, high))
        value, least, most = (_operand(each, _ORDERED, "compared with BETWEEN") for each in (part, low, high))
        node = Between(value, least, most, negated is not None)
        return _made(node, _CONDITION, part.column, part, low, high)

    def among(self, part: Part, negated: Token | None, *strings: Token) -> Part:
        name = _attribute(part, "IN", frozenset({_ANYTHING, _STRING}))
        return _made(In(name, tuple(map(_unquoted, strings)), negated is not None), _CONDITION, part.column, part)

    def like(self, part: Part, negated: Token | None, pattern: Token, escape: Token | None) -> Part:
        name = _attribute(part, "LIKE", frozenset({_ANYTHING, _STRING}))
        sign = None if escape is None else _unquoted(escape)
        if escape is not None and len(sign or "") != 1:
            raise SelectorInvalid(
                f"Expected one character in the quotes after ESCAPE at column {_column(escape)}.",
                hint="For example ESCAPE '\\'.",
                column=_column(escape),
            )
        if has_dangling_escape(_unquoted(pattern), sign):
            raise SelectorInvalid(
                f"Expected a character behind the last {shown(sign or '')} of the text at column {_column(pattern)}.",
                hint="The escape character stands before a %, a _ or itself.",
                column=_column(pattern),
            )
        node = Like(name, _unquoted(pattern), sign, negated is not None)
        return _made(node, _CONDITION, part.column, part)

    def null(self, part: Part, negated: Token | None) -> Part:
        return _made(IsNull(_attribute(part, "IS"), negated is not None), _CONDITION, part.column, part)

    # --- spatial terms

    def within(self, oids: list[Token], zones: tuple[ZoneRef, ...]) -> Part:
        return _made(Within(_names(oids), zones), _CONDITION, _column(oids[0]))

    def related(self, oids: list[Token], relation: Token, zones: tuple[ZoneRef, ...]) -> Part:
        node = Relate(None, _names(oids), Relation(relation.lower()), zones)
        return _made(node, _CONDITION, _column(oids[0]))

    def attribute_related(self, part: Part, relation: Token, zones: tuple[ZoneRef, ...]) -> Part:
        name = _attribute(part, f"'{relation}'", frozenset({_ANYTHING}))
        return _made(Relate(name, None, Relation(relation.lower()), zones), _CONDITION, part.column, part)

    def distance(self, oids: list[Token], metres: Token, others: list[Token]) -> Part:
        names = _names(oids)
        if names is None or len(names) != 1:
            raise SelectorInvalid(
                f"Expected one object's name before 'distance' at column {_column(oids[0])}.",
                hint="Write (mike) distance (500, foo, bar).",
                column=_column(oids[0]),
            )
        value = float(_number(metres))
        if value == 0:
            raise SelectorInvalid(
                f"Expected a distance above 0 metres at column {_column(metres)}.",
                hint="No distance is less than 0.",
                column=_column(metres),
            )
        return _made(Distance(names[0], value, _names(others)), _CONDITION, _column(oids[0]))

    def oids(self, items: list[Token]) -> list[Token]:
        return items

    def others(self, *items: Token) -> list[Token]:
        return list(items)

    def oid(self, token: Token) -> Token:
        _checked(token, parse_oid, _text(token))
        return token

    def zones(self, *zones: ZoneRef) -> tuple[ZoneRef, ...]:
        return zones

    def zone(self, token: Token) -> ZoneRef:
        if token.type == "SHAPE":
            return InlineZone(_checked(token, shape_from_wkt, str(token)))
        return _checked(token, _zone_ref, _text(token))

    def metres(self, token: Token) -> Token:
        return token

    # --- values

    def arith(self, left: Part, sign: Token, right: Part) -> Part:
        op = ArithOp(str(sign))
        node = Arith(op, _operand(left, _ARITHMETIC, "computed with"), _operand(right, _ARITHMETIC, "computed with"))
        return _made(node, _NUMBER, left.column, left, right)

    def negative(self, sign: Token, part: Part) -> Part:
        operand = _operand(part, _ARITHMETIC, "negative")
        if isinstance(operand, Literal) and operand.value != -(2**63):
            return Part(Literal(-cast("float", operand.value)), _NUMBER, _column(sign), part.depth)
        return _made(Negative(operand), _NUMBER, _column(sign), part)

    def positive(self, sign: Token, part: Part) -> Part:
        operand = _operand(part, _ARITHMETIC, "positive")
        return Part(operand, _NUMBER, _column(sign), part.depth)

    def name(self, token: Token) -> Part:
        return _made(Name(str(token)), _KNOWN.get(str(token), _ANYTHING), _column(token))

    def string(self, token: Token) -> Part:
        return _made(Literal(_unquoted(token)), _STRING, _column(token))

    def exact(self, token: Token) -> Part:
        return _made(Literal(_number(token)), _NUMBER, _column(token))

    def approximate(self, token: Token) -> Part:
        return _made(Literal(_number(token)), _NUMBER, _column(token))

    def true(self, token: Token) -> Part:
        return _made(Literal(True), _BOOLEAN, _column(token))

    def false(self, token: Token) -> Part:
        return _made(Literal(False), _BOOLEAN, _column(token))

    def timestamp(self, token: Token) -> Part:
        return _made(Literal(Time(_checked(token, parse_instant, _unquoted(token)))), _TIME, _column(token))


def _column(token: Token) -> int:
    return cast("int", token.column)


def _unquoted(token: Token) -> str:
    return str(token)[1:-1].replace("''", "'")


def _text(token: Token) -> str:
    return _unquoted(token) if token.type == "STRING" else str(token)


def _number(token: Token) -> int | float:
    digits = token.upper()
    return int(digits.rstrip("L"), 0) if token.type == "INT" else float(digits.rstrip("FD"))


def _names(tokens: list[Token]) -> tuple[str, ...] | None:
    return None if tokens[0].type == "STAR" else tuple(map(_text, tokens))


def _zone_ref(text: str) -> ZoneRef:
    owner, _, local = text.rpartition(".")
    if local == "*" and owner:
        return ZoneSet(check_owner_name(owner))
    if local.startswith("#") and owner:
        check_text(local[1:], "tag", _MAX_TAG, ZoneNameInvalid)
        return ZoneTag(check_owner_name(owner), local[1:])
    name = parse_zone_name(text)
    return NamedZone(name.owner, name.local)


def _checked(token: Token, function: Callable[[str], _T], text: str) -> _T:
    """What the function makes of the text; its refusal gets the token's column."""
    try:
        return function(text)
    except CallerError as fault:
        raise SelectorInvalid(
            f"At column {_column(token)}: {fault.sentence}", hint=fault.hint, column=_column(token), cause=fault.code
        ) from fault
