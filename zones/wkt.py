"""Shapes as text inside selectors: WKT polygons, and `CIRCLE(lon lat, metres)`.

WKT is read here and not by shapely, which refuses an unclosed ring before anybody could say where it is open. Every
fault has the code it would have in GeoJSON. Numbers are written with as few digits as read back the same.
"""

import re
from collections.abc import Callable
from typing import TypeVar

from zones.antimeridian import plain_boxes, ring_of_box
from zones.errors import CoordinateInvalid, CoordinateNotFlat, ShapeEmpty, WktInvalid
from zones.names import shown
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Ring, Shape
from zones.validation import check_shape

__all__ = ["shape_from_wkt", "shape_to_wkt"]

_Item = TypeVar("_Item")

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_]+)|(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.])|(?P<sign>[(),]))",
    re.ASCII,
)
_HINT = "Write POLYGON ((lon lat, ...)), MULTIPOLYGON (((lon lat, ...)), ...) or CIRCLE(lon lat, metres)."


def shape_from_wkt(text: str) -> Shape:
    """A checked shape from its text."""
    return check_shape(_Reader(text).shape())


def shape_to_wkt(shape: Shape) -> str:
    """The text from which `shape_from_wkt` makes this shape; a rectangle comes back as a polygon."""
    if isinstance(shape, Circle):
        return f"CIRCLE({_pair(shape.center)}, {_digits(shape.radius_m)})"
    if isinstance(shape, Polygon):
        return f"POLYGON {_rings(shape.coordinates)}"
    if isinstance(shape, MultiPolygon):
        return f"MULTIPOLYGON ({', '.join(_rings(rings) for rings in shape.coordinates)})"
    parts = tuple((ring_of_box(box),) for box in plain_boxes(shape.bbox))
    return shape_to_wkt(Polygon(parts[0]) if len(parts) == 1 else MultiPolygon(parts))


class _Reader:
    """Reads one shape from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kind = ""
        self._token = ""
        self._next()

    def shape(self) -> Shape:
        kind = self._token.upper()
        if self._kind != "word" or kind not in ("POLYGON", "MULTIPOLYGON", "CIRCLE"):
            raise self._fault("POLYGON, MULTIPOLYGON or CIRCLE")
        self._next()
        self._refuse_variants(kind)
        shape: Shape
        if kind == "CIRCLE":
            shape = self._circle()
        elif kind == "POLYGON":
            shape = Polygon(self._polygon())
        else:
            shape = MultiPolygon(tuple(self._list(self._polygon)))
        if self._kind:
            raise self._fault("the end")
        return shape

    def _refuse_variants(self, kind: str) -> None:
        word = self._token.upper() if self._kind == "word" else ""
        if word == "EMPTY":
            raise ShapeEmpty(f"The shape {kind} EMPTY has no rings.", hint=_HINT)
        if word in ("Z", "M", "ZM"):
            raise CoordinateNotFlat(
                f"The shape {kind} {word} has more than two coordinates; positions are lon and lat only.", hint=_HINT
            )

    def _circle(self) -> Circle:
        self._sign("(")
        center = self._point()
        self._sign(",")
        radius_m = self._number()
        self._sign(")")
        return Circle(center, radius_m)

    def _polygon(self) -> tuple[Ring, ...]:
        return tuple(tuple(ring) for ring in self._list(lambda: self._list(self._point)))

    def _list(self, item: Callable[[], _Item]) -> list[_Item]:
        self._sign("(")
        items = [item()]
        while self._token == ",":
            self._next()
            items.append(item())
        self._sign(")")
        return items

    def _point(self) -> Point:
        point = self._number(), self._number()
        if self._kind == "number":
            third = self._token[:40]
            raise CoordinateNotFlat(
                f"The position {_pair(point)} {third} has a third coordinate; positions are lon and lat only.",
                hint=_HINT,
                lon=point[0],
                lat=point[1],
            )
        return point

    def _number(self) -> float:
        if self._kind == "word" and self._token.lower() in ("nan", "inf", "infinity"):
            raise CoordinateInvalid(f"{self._token[:40]} is not a finite number.", hint="Give lon and lat in degrees.")
        if self._kind != "number":
            raise self._fault("a number")
        number = float(self._token)
        self._next()
        return number

    def _sign(self, sign: str) -> None:
        if self._token != sign:
            raise self._fault(f"'{sign}'")
        self._next()

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found:
            self._at = found.end()
            self._kind, self._token = found.lastgroup or "", found[found.lastgroup or 0]
        elif rest := self._text[self._at :].strip():
            self._kind, self._token = "other", rest[:20]
        else:
            self._kind, self._token = "", ""

    def _fault(self, expected: str) -> WktInvalid:
        found = shown(self._token) if self._kind else "the end"
        return WktInvalid(f"The shape's text has {found} where {expected} should be.", hint=_HINT, found=self._token)


def _rings(rings: tuple[Ring, ...]) -> str:
    texts = [", ".join(map(_pair, ring)) for ring in rings]
    return "(" + ", ".join(f"({text})" for text in texts) + ")"


def _pair(point: Point) -> str:
    return f"{_digits(point[0])} {_digits(point[1])}"


def _digits(number: float) -> str:
    return repr(float(number)).removesuffix(".0")
