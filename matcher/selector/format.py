"""Tree to selector text: the inverse of the parser, for every tree that the parser makes.

Parentheses stand only where the grammar needs them, so text that comes from a tree is never nested deeper than the
text the tree came from. It can be longer, because spaces and digits are written out.
"""

from matcher.instants import format_instant
from matcher.selector.tree import (
    And,
    Arith,
    ArithOp,
    Between,
    Compare,
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
    Selector,
    Time,
    Truth,
    Within,
    ZoneRef,
    ZoneSet,
)
from matcher.selector.words import is_plain_name, is_plain_part, quoted
from zones.wkt import shape_to_wkt

__all__ = ["format_selector", "format_zone_ref"]


def format_selector(selector: Selector) -> str:
    """The selector as text."""
    if isinstance(selector, Or):
        return " OR ".join(_inside(item, Or) for item in selector.items)
    if isinstance(selector, And):
        return " AND ".join(_inside(item, Or, And) for item in selector.items)
    if isinstance(selector, Not):
        return f"NOT {_inside(selector.item, Or, And)}"
    if isinstance(selector, Within):
        return f"{_oids(selector.oids)} within {_zones(selector.zones)}"
    if isinstance(selector, Relate):
        subject = _oids(selector.oids) if selector.attribute is None else selector.attribute
        return f"{subject} {selector.relation} {_zones(selector.zones)}"
    if isinstance(selector, Distance):
        others = "*" if selector.others is None else _names(selector.others)
        return f"({_name(selector.oid)}) distance ({selector.metres!r}, {others})"
    return _test(selector)


def format_zone_ref(ref: ZoneRef) -> str:
    """A zone as selectors write it."""
    if isinstance(ref, InlineZone):
        return shape_to_wkt(ref.shape)
    plain = is_plain_part(ref.owner)
    if isinstance(ref, ZoneSet):
        text = f"{ref.owner}.*"
    elif isinstance(ref, NamedZone):
        text, plain = f"{ref.owner}.{ref.local}", plain and is_plain_part(ref.local)
    else:
        text, plain = f"{ref.owner}.#{ref.tag}", plain and is_plain_part(ref.tag)
    return text if plain else quoted(text)


def _inside(item: object, *looser: type) -> str:
    text = format_selector(item)  # type: ignore[arg-type] # a selector holds no condition's leaves
    return f"({text})" if isinstance(item, looser) else text


def _test(node: Compare | Between | In | Like | IsNull | Truth) -> str:
    if isinstance(node, Compare):
        return f"{_operand(node.left)} {node.op} {_operand(node.right)}"
    if isinstance(node, Truth):
        return _operand(node.operand)
    no = "NOT " if node.negated else ""
    if isinstance(node, Between):
        return f"{_operand(node.operand)} {no}BETWEEN {_operand(node.low)} AND {_operand(node.high)}"
    if isinstance(node, In):
        return f"{node.name} {no}IN ({', '.join(map(quoted, node.values))})"
    if isinstance(node, Like):
        escape = "" if node.escape is None else f" ESCAPE {quoted(node.escape)}"
        return f"{node.name} {no}LIKE {quoted(node.pattern)}{escape}"
    return f"{node.name} IS {no}NULL"


def _operand(node: Operand) -> str:
    if isinstance(node, Name):
        return node.name
    if isinstance(node, Literal):
        return _literal(node.value)
    if isinstance(node, Negative):
        return f"-{_bracketed(node.operand, _SIGNED)}"
    level = _SUM if node.op in (ArithOp.ADD, ArithOp.SUB) else _PRODUCT
    # From the left: a - b - c is (a - b) - c, so only the right side needs them at the same level.
    return f"{_bracketed(node.left, level)} {node.op} {_bracketed(node.right, level + 1)}"


_SUM, _PRODUCT, _SIGNED = 1, 2, 3


def _bracketed(node: Operand, level: int) -> str:
    """In parentheses if it binds less than the level asks for."""
    text = _operand(node)
    own = _SIGNED
    if isinstance(node, Arith):
        own = _SUM if node.op in (ArithOp.ADD, ArithOp.SUB) else _PRODUCT
    return f"({text})" if own < level else text


def _literal(value: bool | int | float | str | Time) -> str:
    if isinstance(value, Time):
        return f"TIMESTAMP '{format_instant(value.ms)}'"
    if isinstance(value, str):
        return quoted(value)
    return str(value).upper() if isinstance(value, bool) else repr(value)


def _oids(oids: tuple[str, ...] | None) -> str:
    return "(*)" if oids is None else f"({_names(oids)})"


def _names(oids: tuple[str, ...]) -> str:
    return ", ".join(map(_name, oids))


def _name(oid: str) -> str:
    return oid if is_plain_name(oid) else quoted(oid)


def _zones(zones: tuple[ZoneRef, ...]) -> str:
    return f"({', '.join(map(format_zone_ref, zones))})"
