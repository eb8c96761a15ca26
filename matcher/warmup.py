"""Bringing the compiled code to life before the first message needs it.

On a machine where it has never run, numba compiles for some ten seconds and keeps the result in its cache; with
that, it is a second. What is compiled depends on the types of what is matched, so a small engine of every
kind of constraint is matched here in all the ways there are, and its answers are held to the plain code.
"""

import numpy as np

from matcher.constraints import (
    BoolTest,
    Constraint,
    NumberTest,
    Predicate,
    PresentTest,
    RegionTest,
    StringOp,
    StringTest,
    TimeTest,
    matches,
)
from matcher.engine import Engine
from matcher.places import Place
from matcher.planar import PlanarRegion, from_rings
from matcher.selector.tree import CompareOp, Relation, Time
from matcher.zone_index import ZoneIndex
from zones.shapes import Circle, MultiPolygon, Rectangle, Shape

__all__ = ["warm_up"]


def warm_up() -> None:
    """Match once in every way; an error here means that the compiled code can't be used on this machine."""
    predicates = dict(enumerate(_predicates()))
    events = [
        {"area": _square(3.5, 3.5, 3), "n": 3, "s": "abc", "b": True, "t": Time(5)},
        {"area": _square(0, 0, 2), "n": 99.5, "s": "zz", "b": False, "t": Time(50)},
        {"area": _ring_around(5, 5), "n": 3},
        {"n": 3, "s": "abc"},
    ]
    engine = Engine()
    for owner, predicate in predicates.items():
        engine.add(owner, predicate)
    _check(engine, predicates, events)
    engine.merge()
    _check(engine, predicates, events)
    for owner in range(0, len(predicates), 3):
        engine.remove(owner)
        del predicates[owner]
    _check(engine, predicates, events)
    engine.merge()
    _check(engine, predicates, events)
    _warm_up_zones()


def _warm_up_zones() -> None:
    shapes: dict[int, Shape] = {}
    for number in range(12):
        west, south = 3.0 * number % 7, 2.0 * number % 5
        square = ((west, south), (west + 4, south), (west + 4, south + 4), (west, south + 4), (west, south))
        shapes[3 * number] = Circle((west, south), 150_000.0)
        shapes[3 * number + 1] = Rectangle((west, south, west + 2, south + 2))
        shapes[3 * number + 2] = MultiPolygon(((square,), (tuple((lon + 20, lat) for lon, lat in square),)))
    index = ZoneIndex(shapes.items())
    for number in range(0, len(shapes), 5):
        index.remove(number)
        del shapes[number]
    points = [(lon / 2, lat / 2) for lon in range(-2, 60, 3) for lat in range(-2, 20, 3)]
    rows, slots = index.covering_many(np.array(points)[:, 0], np.array(points)[:, 1])
    found = [(row, index.key_of(slot)) for row, slot in zip(rows.tolist(), slots.tolist(), strict=True)]
    if set(found) != {(row, key) for row, point in enumerate(points) for key in index.covering(point)}:
        raise RuntimeError("the compiled index of zones and itself differ")
    places = {number: Place(shape) for number, shape in shapes.items()}
    if set(found) != {
        (row, key) for row, point in enumerate(points) for key, place in places.items() if place.covers(point)
    }:
        raise RuntimeError("the compiled index of zones and the plain code differ")


def _check(engine: Engine, predicates: dict[int, Predicate], events: list[dict[str, object]]) -> None:
    for event in events:
        wanted = {owner for owner, predicate in predicates.items() if matches(predicate, event)}  # type: ignore[arg-type]
        if engine.match(event) != wanted:
            raise RuntimeError("the compiled engine and the plain code differ")


def _predicates() -> list[Predicate]:
    numbers = [Constraint("n", NumberTest(op, value)) for op in CompareOp for value in (3, 2.5)]
    texts = [Constraint("s", StringTest(op, value)) for op in StringOp for value in ("abc", "z")]
    times = [Constraint("t", TimeTest(op, 5)) for op in CompareOp]
    others = [Constraint("b", BoolTest(True)), Constraint("b", PresentTest(False)), Constraint("n", PresentTest(True))]
    regions = [
        Constraint("area", RegionTest(relation, _square(x, y, size)))
        for relation in Relation
        for x in range(0, 10, 3)
        for y in range(0, 10, 3)
        for size in (2, 3.5)
    ]
    plain: list[Predicate] = [((each,),) for each in (*numbers, *texts, *times, *others, *regions)]
    joined: list[Predicate] = [
        ((one, other, texts[0]), (other,)) for one, other in zip(numbers * 8, regions, strict=False)
    ]
    return plain + joined


def _square(x: float, y: float, size: float) -> PlanarRegion:
    return from_rings([[(x, y), (x + size, y), (x + size, y + size), (x, y + size)]])


def _ring_around(x: float, y: float) -> PlanarRegion:
    hole = [(x - 1, y - 1), (x - 1, y + 1), (x + 1, y + 1), (x + 1, y - 1)]
    return from_rings([[(x - 4, y - 4), (x + 4, y - 4), (x + 4, y + 4), (x - 4, y + 4)], hole])


if __name__ == "__main__":
    warm_up()
