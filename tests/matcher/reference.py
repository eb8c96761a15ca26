"""A plain evaluator of selectors, written from the text of the rules and from nothing else.

It knows no conditions, filters or bindings of the package: it walks the selector itself. Zones are a table from a
reference to sets of points, other objects one of distances.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite, trunc
from types import MappingProxyType
from typing import Any, Protocol

from matcher.events import Event, Region
from matcher.selector import tree as t
from zones.shapes import Circle, Shape


class Zone(Protocol):
    """What the evaluator asks of a zone."""

    def __contains__(self, point: tuple[float, float]) -> bool: ...

    def relation_of(self, shape: Shape) -> str: ...


World = dict[t.ZoneRef, dict[str, Zone]]  # reference -> zone id -> the zone
Others = Mapping[str, float | None]  # every other object that may be seen -> its distance, None if nobody knows


def evaluate(
    node: Any,
    event: Event,
    world: World,
    only: str | None = None,
    anchor: Any = None,
    others: Others = MappingProxyType({}),
) -> bool | None:
    """The selector's truth for the event; the term `anchor` sees the zone or object `only` and no other."""

    def walk(node: Any) -> bool | None:
        if isinstance(node, t.And):
            return _and([walk(item) for item in node.items])
        if isinstance(node, t.Or):
            return _not(_and([_not(walk(item)) for item in node.items]))
        if isinstance(node, t.Not):
            return _not(walk(node.item))
        if isinstance(node, t.Distance):
            named = [only] if only is not None and node is anchor else node.others or list(others)
            if event.oid.lower() != node.oid.lower():
                return False
            return near([oid for oid in named if oid.lower() != event.oid.lower()], node.metres, others)
        if isinstance(node, t.Within | t.Relate):
            zones = {key: zone for ref in node.zones for key, zone in world[ref].items()}
            if only is not None and node is anchor:
                zones = {only: zones[only]}
            if node.oids is not None and event.oid.lower() not in [oid.lower() for oid in node.oids]:
                return False
            if isinstance(node, t.Relate):
                return related(node, event, list(zones.values()))
            if not zones:
                return False
            return None if event.loc is None else any(event.loc in zone for zone in zones.values())
        return test(node, event)

    return walk(node)


def near(named: list[str], metres: float, others: Others) -> bool | None:
    distances = [others.get(oid) for oid in named]
    return _not(_and([None if distance is None else distance >= metres for distance in distances]))


def related(node: t.Relate, event: Event, zones: list[Zone]) -> bool | None:
    if node.attribute is not None:
        region = event.pairs.get(node.attribute)
    else:
        region = event.pairs.get("footprint")
        if region is None and event.loc is not None and event.unc:
            region = Region(Circle(event.loc, event.unc))
    apart = node.relation == "disjoint"  # which is said of the whole list
    if not zones and not apart:
        return False
    if region is None:
        return None
    if not isinstance(region, Region):
        return False
    found = [zone.relation_of(region.shape) == str(node.relation) for zone in zones]
    return all(found) if apart else any(found)


def test(node: Any, event: Event) -> bool | None:
    if isinstance(node, t.Compare):
        return compare(str(node.op), value(node.left, event), value(node.right, event))
    if isinstance(node, t.Between):
        x, low, high = (value(each, event) for each in (node.operand, node.low, node.high))
        if node.negated:
            return _not(_and([_not(compare("<", x, low)), _not(compare(">", x, high))]))
        return _and([compare(">=", x, low), compare("<=", x, high)])
    if isinstance(node, t.Truth):
        return compare("=", value(node.operand, event), True)
    x = value(t.Name(node.name), event)
    if isinstance(node, t.IsNull):
        return (x is not None) if node.negated else (x is None)
    if isinstance(node, t.In):
        found = _not(_and([_not(compare("=", x, each)) for each in node.values]))
    else:
        found = None if x is None else isinstance(x, str) and slow_like(x, node.pattern, node.escape)
    return _not(found) if node.negated else found


def value(node: Any, event: Event) -> Any:
    if isinstance(node, t.Literal):
        return node.value
    if isinstance(node, t.Name):
        own = {"oid": event.oid, "ts": t.Time(event.ts), "loc": event.loc, "unc": event.unc, "lpid": event.lpid}
        return own[node.name] if node.name in own else event.pairs.get(node.name)
    if isinstance(node, t.Negative):
        x = value(node.operand, event)
        return fits(-x) if kind(x) == "number" else None
    left, right = value(node.left, event), value(node.right, event)
    if kind(left) != "number" or kind(right) != "number":
        return None
    op = str(node.op)
    if op == "/":
        if right == 0:
            return None
        exact = isinstance(left, int) and isinstance(right, int)
        return fits(trunc(Fraction(left) / Fraction(right))) if exact else fits(left / right)
    return fits(left + right if op == "+" else left - right if op == "-" else left * right)


def fits(number: Any) -> Any:
    if isinstance(number, int):
        return number if -(2**63) <= number < 2**63 else None
    return number if isfinite(number) else None


def kind(x: Any) -> str:
    if isinstance(x, bool):
        return "boolean"
    names = {int: "number", float: "number", str: "string", t.Time: "time", type(None): "null"}
    return names.get(type(x), "place")


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if kind(left) != kind(right) or kind(left) == "place":
        return False
    if op in ("=", "<>"):
        return bool(left == right) if op == "=" else bool(left != right)
    if kind(left) not in ("number", "time"):
        return False
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]


def slow_like(text: str, pattern: str, escape: str | None) -> bool:
    """Character by character, trying everything."""
    if not pattern:
        return not text
    sign, rest = pattern[0], pattern[1:]
    if sign == escape:
        return text[:1] == rest[0] and slow_like(text[1:], rest[1:], escape)
    if sign == "%":
        return any(slow_like(text[i:], rest, escape) for i in range(len(text) + 1))
    return bool(text) and (sign in ("_", text[0])) and slow_like(text[1:], rest, escape)


def _and(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


# --- filters, for what bindings have to equal ----------------------------------------------------------


def filters(node: Any, negated: bool = False) -> list[list[tuple[Any, bool]]]:
    """The disjunctive normal form: lists of (term, is it negated)."""
    if isinstance(node, t.Not):
        return filters(node.item, not negated)
    if isinstance(node, t.And | t.Or):
        parts = [filters(item, negated) for item in node.items]
        if isinstance(node, t.Or) != negated:
            return [each for part in parts for each in part]
        found: list[list[tuple[Any, bool]]] = [[]]
        for part in parts:
            found = [one + other for one in found for other in part]
        return found
    return [[(node, negated)]]


def is_too_complex(written_out: list[list[tuple[Any, bool]]]) -> bool:
    return len(written_out) > 256 or sum(map(len, written_out)) > 4096


def anchor_of(terms: list[tuple[Any, bool]]) -> Any:
    return next((node for node, negated in terms if is_anchor(node) and not negated), None)


def targets_of(anchor: Any, oid: str, world: World, others: Others) -> list[str]:
    """What the bindings of a filter with this anchor are about; "" is the whole list."""
    if anchor is None:
        return [""]
    if isinstance(anchor, t.Distance):
        return [each for each in anchor.others or others if each in others and each.lower() != oid.lower()]
    return [key for ref in anchor.zones for key in world[ref]]


def is_anchor(node: Any) -> bool:
    return isinstance(node, t.Within | t.Distance) or (isinstance(node, t.Relate) and node.relation != "disjoint")


def speaks_of(terms: list[tuple[Any, bool]], oid: str) -> bool:
    spatial = [node for node, _ in terms if isinstance(node, t.Within | t.Relate | t.Distance)]
    lists = [anchor_of(terms)] if anchor_of(terms) else spatial
    return not lists or any(
        each is None or oid.lower() in [name.lower() for name in each] for each in map(oids_of, lists)
    )


def oids_of(node: Any) -> tuple[str, ...] | None:
    oids: tuple[str, ...] | None = (node.oid,) if isinstance(node, t.Distance) else node.oids
    return oids
