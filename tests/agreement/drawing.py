"""Random worlds on a coarse grid, where fixes fall on boundaries and corners all the time."""

from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import assume
from hypothesis import strategies as st

from matcher.events import Event, Region
from matcher.once import Mode, Tos
from matcher.selector.format import format_zone_ref
from matcher.selector.mentions import is_anchored_within
from matcher.selector.parser import parse_selector
from matcher.selector.tree import InlineZone, Relation
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID, START
from zones.antimeridian import normalise_lon
from zones.errors import ShapeInvalid
from zones.geodesy import distance_m
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape
from zones.validation import check_shape

__all__ = [
    "Fix",
    "at_the_boundary",
    "conditions",
    "fences",
    "fixes",
    "moves",
    "places",
    "selectors",
    "services",
    "shapes",
]

SIZE = 6  # steps of a degree; fixes fall on half steps
ORIGINS = ((10.0, 40.0), (177.0, -3.0))  # the second grid lies across the antimeridian
TAGS = ("school", "shop")
PAIRS = {
    "speed": (0, 5, 20.0, 50),
    "battery": (10, 20.5, 90),
    "priority": ("High", "Low", "H_%"),
    "urgent": (True, False),
}
CONDITIONS = (
    "speed > 5", "speed BETWEEN 5 AND 20", "speed NOT BETWEEN 1 AND 20", "battery < 20.5", "speed * 2 >= battery",
    "priority = 'High'", "priority <> 'Low'", "priority LIKE 'H!_%' ESCAPE '!'", "priority NOT LIKE 'H%'",
    "priority IN ('Low', 'High')", "priority NOT IN ('Low')", "priority IS NULL", "speed IS NOT NULL", "urgent",
    "urgent = FALSE", "unc < 50", "oid LIKE 'alice/%'", f"oid = '{OID}'", "weight > 1", "weight IS NULL",
)  # fmt: skip


@dataclass(frozen=True)
class Fix:
    """`step_ms` from the newest fix so far: negative is late, 0 is as new."""

    step_ms: int
    loc: Point | None
    pairs: tuple[tuple[str, Any], ...]
    unc: float | None = None

    def event(self, newest: int | None) -> Event:
        base = START if newest is None else newest
        return Event(base + self.step_ms, self.loc, "", self.unc, None, dict(self.pairs))


def _grid(limit: int = SIZE) -> st.SearchStrategy[int]:
    return st.integers(0, limit)


@st.composite
def shapes(draw: st.DrawFn, origin: tuple[float, float]) -> Shape:
    kind = draw(st.sampled_from(["box", "triangle", "holed", "pair", "star", "circle"]))

    def at(x: float, y: float) -> Point:
        return (origin[0] + x, origin[1] + y)

    def box(x: int, y: int, width: int, height: int) -> Ring:
        return (at(x, y), at(x + width, y), at(x + width, y + height), at(x, y + height), at(x, y))

    x, y = draw(_grid(3)), draw(_grid(3))
    width, height = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    if kind == "box":
        west, south = at(x, y)
        east, north = at(x + width, y + height)
        return Rectangle((west, south, east, north))
    if kind == "circle":
        centre, rim = at(x, y), at(*draw(st.tuples(_grid(), _grid())))
        assume(centre != rim)
        middle = (normalise_lon(centre[0]), centre[1])
        # The rim goes through a place of the grid.
        return Circle(middle, min(distance_m(middle, (normalise_lon(rim[0]), rim[1])), 900_000.0))
    if kind == "holed":
        hole = (at(x + 1, y + 1), at(x + 1, y + 2), at(x + 2, y + 2), at(x + 1, y + 1))
        return Polygon((box(x, y, 3, 3), hole))
    if kind == "pair":
        return MultiPolygon(((box(0, y, 2, height),), (box(3, x, width, 2),)))
    corners = [at(x, y), at(x + width, y), at(x, y + height)]
    if kind == "star":
        corners = [at(0, 3), at(2, 2), at(3, 0), at(4, 2), at(SIZE, 3), at(4, 4), at(3, SIZE), at(2, 4)]
    shape = Polygon(((*corners, corners[0]),))
    try:
        check_shape(shape)
    except ShapeInvalid:
        assume(False)
    return shape


def places(origin: tuple[float, float]) -> st.SearchStrategy[Point]:
    middle = st.integers(2, 8)  # where most shapes are
    return (st.tuples(_grid(2 * SIZE), _grid(2 * SIZE)) | st.tuples(middle, middle)).map(
        lambda at: (normalise_lon(origin[0] + at[0] / 2), origin[1] + at[1] / 2)
    )


@st.composite
def fixes(draw: st.DrawFn, origin: tuple[float, float], *, late: bool = True) -> Fix:
    steps = [1, 500, 1000, 1000, 3000, 10_000, 60_000, 3_600_000]
    if late:
        steps += [0, -1, -2000]
    loc = draw(places(origin)) if draw(st.integers(0, 9)) else None
    pairs: dict[str, Any] = {name: draw(st.sampled_from(values) | st.none()) for name, values in PAIRS.items()}
    for name in ("area", "footprint"):
        pairs[name] = None if draw(st.integers(0, 2)) else Region(check_shape(draw(shapes(origin))))
    known = tuple((name, value) for name, value in pairs.items() if value is not None)
    return Fix(draw(st.sampled_from(steps)), loc, known, draw(st.sampled_from([None, None, 5.0, 80.0, 30_000.0])))


@st.composite
def moves(draw: st.DrawFn, origin: tuple[float, float]) -> Fix:
    """Fixes of something on its way: nearly all with a place, minutes apart, and little else."""
    step_ms = draw(st.sampled_from([1, 1000, 10_000, 10_000, 60_000, 300_000, 300_001]))
    # Around the grid: from one of these to another one crosses what is in between.
    around = [(-1, 4), (7, 3), (3, -1), (4, 7), (-1, 1), (7, 5), (1, -1), (2, 7)]
    outside = st.sampled_from([(normalise_lon(origin[0] + x), origin[1] + y) for x, y in around])
    loc = draw(st.one_of(outside, outside, places(origin))) if draw(st.integers(0, 19)) else None
    speed = draw(st.sampled_from([0, 20, 20, None]))
    unc = draw(st.sampled_from([None, None, 5.0, 30_000.0]))
    return Fix(step_ms, loc, () if speed is None else (("speed", speed),), unc)


def conditions() -> st.SearchStrategy[str]:
    return st.sampled_from(CONDITIONS)


@st.composite
def selectors(draw: st.DrawFn, origin: tuple[float, float], zones: tuple[str, ...], *, inline: bool) -> str:
    """`inline` zones go to devices only if they are the device owner's own."""

    def reference() -> str:
        kinds = ["named", "named", "named", "set", "tag"] + (["inline"] if inline else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "named":
            return draw(st.sampled_from(zones))
        if kind == "inline":
            return format_zone_ref(InlineZone(draw(shapes(origin))))
        return "SYSTEM.*" if kind == "set" else f"SYSTEM.#{draw(st.sampled_from(TAGS))}"

    def within() -> str:
        subject = draw(st.sampled_from([f"('{OID}')", f"('{OID}')", "(*)"]))
        listed = ", ".join(dict.fromkeys(reference() for _ in range(draw(st.integers(1, 2)))))
        if draw(st.integers(0, 2)):
            return f"{subject} within ({listed})"
        return f"{draw(st.sampled_from([subject, 'area']))} {draw(st.sampled_from(list(Relation)))} ({listed})"

    def expression(depth: int) -> str:
        kind = draw(st.sampled_from(["within", "within", "not", "and", "or"])) if depth else "within"
        if kind == "within":
            return within()
        if kind == "not":
            return f"NOT ({expression(depth - 1)})"
        other = draw(conditions()) if draw(st.booleans()) else expression(depth - 1)
        both = [expression(depth - 1), other]
        if draw(st.booleans()):
            both.reverse()
        return f"({both[0]}) {kind.upper()} ({both[1]})"

    return expression(draw(st.integers(0, 2)))


@st.composite
def fences(draw: st.DrawFn, name: str, zones: tuple[str, ...]) -> NewSubscription:
    """Subscriptions whose bindings all look closer at the boundary of their zone."""
    some = draw(st.sampled_from([zones, zones[:1], zones[-1:], ("SYSTEM.*",), ("SYSTEM.#school",)]))
    subject = draw(st.sampled_from([f"('{OID}')", "(*)"]))
    more = ["", "", " AND speed > 5", f" AND NOT (*) within ({zones[-1]})", f" AND (*) within ({zones[0]})"]
    selector = f"{subject} within ({', '.join(some)}){draw(st.sampled_from(more))}"
    return draw(at_the_boundary(draw(services(name, selector))))


@st.composite
def services(draw: st.DrawFn, name: str, selector: str) -> NewSubscription:
    tos = draw(st.sampled_from([Tos.ONCE, Tos.ONCE, Tos.ONCE, Tos.EVERY, Tos.FIRST]))
    modes = None
    if tos is Tos.ONCE:
        modes = draw(st.sampled_from([None, None, None, (Mode.ENTER,), (Mode.LEAVE,)]))
    dwell_s = 0.0 if tos is Tos.EVERY else draw(st.sampled_from([0.0, 0.0, 0.5, 1.0, 5.0, 61.0]))
    expires = draw(st.sampled_from([None, None, None, None, START + 15_000]))
    new = NewSubscription(name, selector, tos, modes, dwell_s, expires)
    return draw(at_the_boundary(new)) if draw(st.booleans()) else new


@st.composite
def at_the_boundary(draw: st.DrawFn, new: NewSubscription) -> NewSubscription:
    """The same with options that look closer at the boundary, where they have a meaning."""
    if not is_anchored_within(parse_selector(new.selector)):
        return new
    return msgspec.structs.replace(
        new,
        hysteresis_m=draw(st.sampled_from([0.0, 0.0, 1.0, 20_000.0, 60_000.0, 100_000.0])),
        unc_factor=draw(st.sampled_from([0.0, 0.0, 0.5, 3.0])),
        crossing=new.tos is not Tos.EVERY and draw(st.sampled_from([True, True, False])),
    )
