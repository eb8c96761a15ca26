"""Random selectors and events. Drawn from a `random.Random`, so that hypothesis can shrink what a loop can't.

Every tree is one that the parser can make; every event one that `parse_event` lets through.
"""

from random import Random
from typing import Any

from matcher.events import Event, Located, Region
from matcher.selector import tree as t
from zones.shapes import Rectangle
from zones.wkt import shape_from_wkt

OIDS = ("mike", "foo@acme.com", "acme/van7", "within")
NAMES = ("a", "b", "speed", "priority", "unc", "covered", "by")
STRINGS = ("", "a", "High", "it's", "100%", "a_b", "\\", "'", "日本", "AND")
NUMBERS = (0, 1, -1, 2, 7, -7, 0.5, -0.5, 1e300, -1e300, 2.0**-1074, 2**62, 2**63 - 1, -(2**63), 1.0, 3)
TIMES = (0, 1, 1_795_000_000_000, 253_402_300_799_999)
SHAPES = tuple(
    map(
        shape_from_wkt,
        (
            "CIRCLE(116.37 39.91, 250)",
            "CIRCLE(-0.1 51.5, 0.5)",
            "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1))",
            "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
        ),
    )
)
REFS: tuple[t.ZoneRef, ...] = (
    t.NamedZone("SYSTEM", "Xidan"),
    t.NamedZone("mike", "HOME"),
    t.NamedZone("foo@acme.com", "Office"),
    t.NamedZone("in", "and"),
    t.NamedZone("mike", "nowhere"),
    t.ZoneSet("SYSTEM"),
    t.ZoneSet("foo@acme.com"),
    t.ZoneTag("SYSTEM", "school"),
    t.ZoneTag("SYSTEM", "play ground"),
    *map(t.InlineZone, SHAPES),
)
PLACES = tuple((float(lon), float(lat)) for lon in range(3) for lat in range(3))


def draw_selector(rng: Random, depth: int = 3) -> Any:
    """A selector of all that there is."""
    kind = rng.randrange(7) if depth else 6
    if kind < 2:
        return t.And(_several(rng, lambda: draw_selector(rng, depth - 1)))
    if kind < 4:
        return t.Or(_several(rng, lambda: draw_selector(rng, depth - 1)))
    if kind < 5:
        return t.Not(draw_selector(rng, depth - 1))
    return draw_spatial(rng) if rng.randrange(2) else draw_test(rng)


def draw_spatial(rng: Random) -> Any:
    oids = None if rng.randrange(4) == 0 else tuple(rng.sample(OIDS, rng.randrange(1, 4)))
    refs = tuple(rng.sample(REFS, rng.randrange(1, 4)))
    kind = rng.randrange(5)
    if kind == 4:
        return t.Distance(rng.choice(OIDS), rng.choice((0.5, 500.0, 1e6)), oids)
    if kind == 1:
        return t.Relate(None, oids, rng.choice(list(t.Relation)), refs)
    if kind == 2:
        return t.Relate(rng.choice(("area", "footprint")), None, rng.choice(list(t.Relation)), refs)
    return t.Within(oids, refs)


def draw_test(rng: Random) -> Any:
    negated = bool(rng.randrange(2))
    kind = rng.randrange(7)
    if kind == 0:
        operands = [rng.choice((_numeric, _textual, _temporal, _boolean))(rng) for _ in range(2)]
        return t.Compare(rng.choice((t.CompareOp.EQ, t.CompareOp.NE)), *operands)
    if kind == 1:
        draw = rng.choice((_numeric, _numeric, _temporal))
        return t.Compare(rng.choice(list(t.CompareOp)), draw(rng), draw(rng))
    if kind == 2:
        draw = rng.choice((_numeric, _numeric, _temporal))
        return t.Between(draw(rng), draw(rng), draw(rng), negated)
    name = rng.choice((*NAMES, "oid", "lpid"))
    name = "a" if name == "unc" else name
    if kind == 3:
        return t.In(name, tuple(rng.choice((*STRINGS, *OIDS)) for _ in range(rng.randrange(1, 4))), negated)
    if kind == 4:
        pattern = "".join(rng.choice("aH_%i'") for _ in range(rng.randrange(5)))
        return t.Like(name, pattern, rng.choice((None, "\\", "!", "'")) if "'" not in pattern else None, negated)
    if kind == 5:
        return t.IsNull(rng.choice((*NAMES, "oid", "loc", "ts", "lpid")), negated)
    return t.Truth(t.Literal(negated) if rng.randrange(3) == 0 else t.Name(rng.choice(("a", "b", "priority"))))


def draw_event(rng: Random, oid: str | None = None) -> Event:
    def draw_value() -> Any:
        return rng.choice(
            (
                rng.choice(NUMBERS),
                rng.choice(NUMBERS),
                rng.choice(STRINGS),
                bool(rng.randrange(2)),
                t.Time(rng.choice(TIMES)),
                Located((1.0, 2.0)),
            )
        )

    names = rng.sample([name for name in NAMES if name != "unc"], rng.randrange(6))
    regions = {name: Region(draw_box(rng)) for name in ("area", "footprint") if rng.randrange(2)}
    return Event(
        ts=rng.choice(TIMES),
        loc=None if rng.randrange(4) == 0 else rng.choice(PLACES),
        oid=rng.choice(OIDS) if oid is None else oid,
        unc=rng.choice((None, 0.0, 0.5, 7.0)),
        lpid=rng.choice((None, "High", "CMCC")),
        pairs={name: draw_value() for name in names} | regions,
    )


def draw_box(rng: Random) -> Rectangle:
    """One of few, so that boxes often touch, hold and equal each other."""
    west, east = sorted(rng.sample(range(4), 2))
    south, north = sorted(rng.sample(range(4), 2))
    return Rectangle((float(west), float(south), float(east), float(north)))


def _several(rng: Random, draw: Any) -> tuple[Any, ...]:
    return tuple(draw() for _ in range(rng.randrange(2, 4)))


def _numeric(rng: Random, depth: int = 2) -> Any:
    kind = rng.randrange(5) if depth else rng.randrange(3)
    if kind == 3:
        operand = _numeric(rng, depth - 1)
        folds = isinstance(operand, t.Literal) and operand != t.Literal(-(2**63))
        return operand if folds else t.Negative(operand)
    if kind == 4:
        return t.Arith(rng.choice(list(t.ArithOp)), _numeric(rng, depth - 1), _numeric(rng, depth - 1))
    return t.Name(rng.choice(NAMES)) if kind == 0 else t.Literal(rng.choice(NUMBERS))


def _textual(rng: Random) -> Any:
    return rng.choice((t.Name(rng.choice(("a", "priority", "oid", "lpid"))), t.Literal(rng.choice(STRINGS))))


def _temporal(rng: Random) -> Any:
    return rng.choice((t.Name("ts"), t.Name(rng.choice(("a", "b"))), t.Literal(t.Time(rng.choice(TIMES)))))


def _boolean(rng: Random) -> Any:
    return rng.choice((t.Name("a"), t.Literal(True), t.Literal(False)))
