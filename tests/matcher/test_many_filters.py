"""What a selector with many filters costs: filters repeat terms, and no term is worked out twice for that."""

import pytest

from matcher.events import Event, Region
from matcher.planar import PlanarRegion
from matcher.selector import truth as truths
from matcher.selector.binding import bind
from matcher.selector.parser import parse_selector
from matcher.selector.tree import Relation
from matcher.selector.truth import truth
from tests.matcher.selector_checks import Anywhere, Everywhere
from zones.shapes import Rectangle


def test_a_relation_is_worked_out_once_however_many_filters_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """A selector of 6 kB took a quarter of a second for one event."""
    asked = []

    def relate(region: PlanarRegion, zone: PlanarRegion) -> Relation:
        asked.append(zone)
        return Relation.OVERLAPS

    monkeypatch.setattr(truths, "relate_on_globe", relate)
    either = "(area meets (mike.A, mike.B) OR area covers (mike.C, mike.D))"
    others = " AND ".join(f"(area inside (mike.Z{n}) OR area equals (mike.Y{n}))" for n in range(6))
    selector = parse_selector(f"(*) overlaps (mike.P, mike.Q) AND NOT area disjoint (mike.R) AND {either} AND {others}")
    event = Event(ts=0, oid="mike", pairs={"area": Region(Rectangle((0.0, 0.0, 1.0, 1.0)))})
    event.pairs["footprint"] = event.pairs["area"]
    places = Everywhere(lambda zone, point: True)
    bounds = bind(selector, "mike", Anywhere())
    assert len(bounds) == 2
    for bound in bounds:
        truth(bound.condition, event, places)
    assert len(asked) == len({id(zone) for zone in asked}) > 5


def test_terms_that_filters_repeat_are_bound_once() -> None:
    """The same conditions, not equal ones: 256 filters of 16 terms are written out of 16."""
    selector = parse_selector(" AND ".join(f"(a = {n} OR (mike) within (mike.Z{n}))" for n in range(8)))
    bounds = bind(selector, "mike", Anywhere())
    seen = {id(item) for bound in bounds for item in walk(bound.condition)}
    assert len(bounds) == 9
    assert len(seen) <= 3 * 16


def walk(node: object) -> list[object]:
    items = getattr(node, "items", None)
    return [node] if items is None else [leaf for item in items for leaf in walk(item)]
