"""Vans in the demo's city: when each has its fixes, where it is then, and which edges that gives.

All vans take turns, so that fixes come evenly. Where a van is depends on the seed and its number only, not on how
many others there are or in which process it runs.
"""

import random
from collections import Counter
from collections.abc import Iterator

import msgspec

from matcher.once import Mode
from simulators.demo.city import CITY, city_zones
from simulators.mobility.streets import drive, position, set_out
from zones.covers import prepare
from zones.shapes import Point
from zones.validation import check_shape

__all__ = ["Edge", "Fix", "Timetable", "fixes_of", "reference_edges"]

_SPEED_M_S = (8.0, 14.0)


class Timetable(msgspec.Struct, frozen=True):
    """`fixes` for each of `vans`, `per_second` in all."""

    vans: int
    fixes: int
    per_second: float
    seed: int

    @property
    def total(self) -> int:
        return self.vans * self.fixes

    def due_ms(self, van: int, number: int) -> int:
        return round((number * self.vans + van) * 1000 / self.per_second)


class Fix(msgspec.Struct, frozen=True):
    van: int
    due_ms: int  # from the start
    point: Point


class Edge(msgspec.Struct, frozen=True):
    van: int
    due_ms: int
    target: str
    mode: Mode


def fixes_of(timetable: Timetable, vans: range) -> list[Fix]:
    """The fixes of some of the vans, in the order of time."""
    fixes = [fix for van in vans for fix in _trip(timetable, van)]
    return sorted(fixes, key=lambda fix: (fix.due_ms, fix.van))


def reference_edges(timetable: Timetable) -> Counter[Edge]:
    """What there is to be told, decided here: point by point and zone by zone."""
    areas = {f"SYSTEM.{name}": prepare(check_shape(shape)) for name, shape in city_zones().items()}
    edges: Counter[Edge] = Counter()
    for van in range(timetable.vans):
        inside: set[str] = set()
        for fix in _trip(timetable, van):
            now = {name for name, area in areas.items() if area.covers(fix.point)}
            edges.update(Edge(van, fix.due_ms, name, Mode.ENTER) for name in now - inside)
            edges.update(Edge(van, fix.due_ms, name, Mode.LEAVE) for name in inside - now)
            inside = now
    return edges


def _trip(timetable: Timetable, van: int) -> Iterator[Fix]:
    rng = random.Random(f"{timetable.seed}/{van}")
    traveller = set_out(CITY, rng.random)
    metres = rng.uniform(*_SPEED_M_S) * timetable.vans / timetable.per_second
    for number in range(timetable.fixes):
        yield Fix(van, timetable.due_ms(van, number), position(CITY, traveller))
        traveller = drive(CITY, traveller, metres, rng.random)
