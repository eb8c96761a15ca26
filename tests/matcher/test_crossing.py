"""Crossing: what happens between two fixes, as walks along a line. The zone is from 0 to 100 m."""

import pytest

from matcher.anchors import MAX_CROSSING_MS, Anchor
from matcher.evaluation import Rule, fold
from matcher.events import Event
from matcher.once import Edge, Mode, OnceState, Service, Tos
from matcher.selector.tree import And, Compare, CompareOp, InZones, Literal, Name, Not, Or
from tests.matcher.tracing import METRE, Zones, east, rule, walk
from zones.antimeridian import normalise_lon
from zones.shapes import Circle, MultiPolygon, Rectangle, Shape
from zones.validation import check_shape

ZONES = Zones()
CROSSING = Service(crossing=True)
FAST = Compare(CompareOp.GT, Name("speed"), Literal(5))


def fixes(*metres: float | None, every_ms: int = 10_000, **pairs: object) -> list[Event]:
    return [
        Event(every_ms * number, None if at is None else east(at), pairs=dict(pairs))
        for number, at in enumerate(metres)
    ]


def told(service: Service, events: list[Event], **more) -> list[tuple[str, float, float | None]]:
    return walk([rule(service, ZONES, **more)], ZONES, events)


def test_passing_through_gives_enter_and_leave_at_the_boundary():
    assert told(CROSSING, fixes(-100, 300)) == [("enter", 2.5, 0.0), ("leave", 5.0, 100.0)]
    assert told(CROSSING, fixes(300, -100)) == [("enter", 5.0, 100.0), ("leave", 7.5, 0.0)]


def test_without_the_option_nobody_notices():
    assert told(Service(), fixes(-100, 300)) == []


def test_a_fix_inside_is_told_as_ever():
    assert told(CROSSING, fixes(-100, 50, 300)) == [("enter", 10.0, 50.0), ("leave", 20.0, 300.0)]


def test_edges_alternate_and_are_numbered():
    states: dict[str, OnceState] = {}
    walked = walk([rule(CROSSING, ZONES)], ZONES, fixes(-100, 300, 50, 300, -100), states)
    assert [mode for mode, *_ in walked] == ["enter", "leave", "enter", "leave", "enter", "leave"]
    assert states["x"] == OnceState(n=6)


def test_a_leave_knows_its_enter():
    first, second = fixes(-100, 300)
    folded = fold([rule(CROSSING, ZONES)], {}, first, second, ZONES)
    assert [each.edge for each in folded.edges] == [
        Edge(1, Mode.ENTER, 2500),
        Edge(2, Mode.LEAVE, 5000, visit=1, since=2500),
    ]


def test_each_stay_is_told_in_order():
    parts = [Rectangle((low * METRE, -0.01, high * METRE, 0.01)) for low, high in ((0, 100), (200, 300))]
    ring = [
        ((west, south), (east_, south), (east_, north), (west, north), (west, south))
        for west, south, east_, north in (part.bbox for part in parts)
    ]
    zones = Zones({"a": check_shape(MultiPolygon(tuple((each,) for each in ring)))})
    assert walk([rule(CROSSING, zones)], zones, fixes(-100, 400)) == [
        ("enter", 2.0, 0.0),
        ("leave", 4.0, 100.0),
        ("enter", 6.0, 200.0),
        ("leave", 8.0, 300.0),
    ]


def test_a_stay_has_to_be_as_long_as_the_dwell():
    assert told(Service(crossing=True, dwell_s=2), fixes(-100, 300)) == [("enter", 4.5, 80.0), ("leave", 5.0, 100.0)]
    assert told(Service(crossing=True, dwell_s=2.5), fixes(-100, 300)) == [("enter", 5.0, 100.0), ("leave", 5.0, 100.0)]
    assert told(Service(crossing=True, dwell_s=3), fixes(-100, 300)) == []
    # What was too short leaves nothing behind.
    assert told(Service(crossing=True, dwell_s=3), fixes(-100, 300, 300, 300, 300)) == []


def test_with_a_dead_band_the_middle_of_the_stay_has_to_be_deep():
    zones = Zones({"a": Circle((0.0, 0.0), 100.0)})
    deep, shallow = ([Event(0, (-300 * METRE, lat)), Event(6000, (300 * METRE, lat))] for lat in (0.0, 95 * METRE))
    service = Service(crossing=True, hysteresis_m=20)
    assert [mode for mode, *_ in walk([rule(service, zones)], zones, deep)] == ["enter", "leave"]
    assert walk([rule(service, zones)], zones, shallow) == []
    assert len(walk([rule(CROSSING, zones)], zones, shallow)) == 2


def test_who_still_counts_as_inside_has_not_crossed():
    service = Service(crossing=True, hysteresis_m=20)
    assert told(service, fixes(50, 110, -10, -300)) == [("enter", 0.0, 50.0), ("leave", 30.0, -300.0)]


def test_first_is_told_once():
    assert told(Service(tos=Tos.FIRST, crossing=True), fixes(-100, 300, -100)) == [("enter", 2.5, 0.0)]


def test_every_has_no_edges_to_interpolate():
    assert told(Service(tos=Tos.EVERY, crossing=True), fixes(-100, 300)) == []


def test_the_other_terms_are_judged_with_the_later_event():
    condition = And((InZones(("a",)), FAST))
    slow_then_fast = [Event(0, east(-100), pairs={"speed": 0}), Event(10_000, east(300), pairs={"speed": 9})]
    fast_then_slow = [Event(0, east(-100), pairs={"speed": 9}), Event(10_000, east(300), pairs={"speed": 0})]
    assert len(told(CROSSING, slow_then_fast, condition=condition)) == 2
    assert told(CROSSING, fast_then_slow, condition=condition) == []
    assert told(CROSSING, fixes(-100, 300), condition=condition) == []  # UNKNOWN


def test_a_binding_that_does_not_hang_on_the_zone_does_not_cross_it():
    either = Or((InZones(("a",)), FAST))
    assert told(CROSSING, fixes(-100, 300, speed=9), condition=either) == [("enter", 0.0, -100.0)]
    assert told(CROSSING, fixes(-100, 300, speed=0), condition=Not(InZones(("a",)))) == [("enter", 0.0, -100.0)]


def test_the_event_keeps_the_later_pairs():
    first, second = Event(0, east(-100), pairs={"load": 1}), Event(10_000, east(300), unc=7.0, pairs={"load": 2})
    for each in fold([rule(CROSSING, ZONES)], {}, first, second, ZONES).edges:
        assert (each.event.pairs, each.event.unc) == ({"load": 2}, 7.0)


@pytest.mark.parametrize(("gap_ms", "edges"), [(MAX_CROSSING_MS, 2), (MAX_CROSSING_MS + 1, 0)])
def test_after_a_long_silence_nobody_knows_the_way(gap_ms: int, edges: int):
    assert len(told(CROSSING, fixes(-100, 300, every_ms=gap_ms))) == edges


def test_an_event_without_a_place_breaks_the_way():
    assert told(CROSSING, fixes(-100, None, 300)) == []


def test_the_way_from_before_the_subscription_is_nobodys_to_know():
    bound = rule(CROSSING, ZONES)
    assert bound.anchor is not None

    def since(ts: int) -> Rule[str]:
        return Rule("x", bound.condition, bound.service, anchor=Anchor("a", ZONES["a"].boundary, since=ts))

    events = [Event(1000, east(-100)), Event(2000, east(300)), Event(3000, east(-100))]
    assert len(walk([since(999)], ZONES, events)) == 4
    assert len(walk([since(1000)], ZONES, events)) == 2
    assert walk([since(2000)], ZONES, events) == []


def test_expired_before_the_end_of_the_stay():
    assert told(Service(crossing=True, expires=4000), fixes(-100, 300)) == [("enter", 2.5, 0.0)]
    assert told(Service(crossing=True, expires=2000), fixes(-100, 300)) == []


def test_edges_of_several_bindings_come_in_the_order_of_time():
    zones = Zones(
        {name: Rectangle((low * METRE, -0.01, (low + 100) * METRE, 0.01)) for name, low in (("a", 200), ("b", 0))}
    )
    rules = [Rule(name, InZones((name,)), CROSSING, anchor=Anchor(name, zones[name].boundary)) for name in ("a", "b")]
    walked = walk(rules, zones, fixes(-100, 400))
    assert walked == sorted(walked, key=lambda each: each[1])


@pytest.mark.parametrize(
    "shape", [Rectangle((179.0, -1.0, -179.0, 1.0)), Circle((180.0, 0.0), 100_000.0)], ids=["rectangle", "circle"]
)
@pytest.mark.parametrize(("start", "end"), [(178.0, -178.0), (-178.0, 178.0)])
def test_across_the_antimeridian_the_way_is_the_short_one(shape: Shape, start: float, end: float):
    zones = Zones({"a": shape})
    events = [Event(0, (start, 0.0)), Event(10_000, (end, 0.0))]
    enter, leave = walk([rule(CROSSING, zones)], zones, events)
    assert (enter[0], leave[0]) == ("enter", "leave")
    assert 2.4 < enter[1] < 2.8
    assert 7.2 < leave[1] < 7.6
    assert abs(normalise_lon(enter[2] * METRE)) > 179 - 1e-6


def test_at_the_corner_nobody_enters():
    zones = Zones({"a": Rectangle((0.0, 0.0, 1.0, 1.0))})
    assert walk([rule(CROSSING, zones)], zones, [Event(0, (-1.0, 1.0)), Event(10_000, (1.0, -1.0))]) == []
