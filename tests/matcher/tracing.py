"""Traces as text: an object walks along a line of letters, and what is told stands below them."""

from collections.abc import Mapping, Sequence

from matcher.anchors import Anchor
from matcher.evaluation import Folded, Rule, expire, fold
from matcher.events import Event
from matcher.once import OnceState, Service
from matcher.places import Place
from matcher.planar import PlanarRegion
from matcher.selector.tree import Condition, InZones
from zones.geodesy import distance_m
from zones.shapes import Point, Rectangle, Shape

__all__ = ["METRE", "Told", "Zones", "east", "rule", "walk"]

METRE = 1 / distance_m((0.0, 0.0), (1.0, 0.0))  # in degrees of lon, at the equator
Told = list[tuple[str, float, float | None]]  # mode, seconds, metres east of lon 0


def east(metres: float) -> Point:
    return (metres * METRE, 0.0)


class Zones(dict[str, Place]):
    """Zones by their names (`matcher.places`). Zone "a" is 0 to 100 m east of lon 0, and high."""

    def __init__(self, shapes: Mapping[str, Shape] | None = None) -> None:
        shapes = shapes or {"a": Rectangle((0.0, -0.01, 100 * METRE, 0.01))}
        super().__init__({name: Place(shape) for name, shape in shapes.items()})

    def covers(self, zone: str, point: Point) -> bool:
        return self[zone].covers(point)

    def region(self, zone: str) -> PlanarRegion:
        return self[zone].region


def rule(service: Service, zones: Zones, condition: Condition | None = None, zone: str = "a") -> Rule[str]:
    condition = InZones((zone,)) if condition is None else condition
    return Rule("x", condition, service, anchor=Anchor(zone, zones[zone].boundary))


def walk(
    rules: Sequence[Rule[str]],
    zones: Zones,
    events: Sequence[Event],
    states: dict[str, OnceState] | None = None,
    until: int | None = None,
) -> Told:
    """All edges of a trace: mode, seconds, and how many metres east."""
    states = {} if states is None else states
    last, found = None, []

    def take(folded: Folded[str]) -> None:
        states.update(folded.states)
        found.extend(folded.edges)

    for event in events:
        take(fold(rules, states, last, event, zones))
        last = event
    if until is not None:
        take(expire(rules, states, last, until))
    return [
        (
            each.edge.mode.value,
            each.edge.ts / 1000,
            None if each.event.loc is None else round(each.event.loc[0] / METRE, 3),
        )
        for each in found
    ]
