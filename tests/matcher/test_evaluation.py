"""Folding events into the bindings of one object, against a plain reference."""

from hypothesis import given
from hypothesis import strategies as st

from matcher.evaluation import Rule, expire, fold, next_deadline
from matcher.events import Event
from matcher.once import Mode, OnceState, Service, Tos, interrupted
from matcher.selector.tree import And, Compare, CompareOp, InZones, Literal, Name
from tests.support.places import Covering

IN_A = InZones(("a",))


def covers(zone, point):
    """Zone "a" is lon 0..10, zone "b" is lon 5..15."""
    low = {"a": 0, "b": 5}[zone]
    return low <= point[0] <= low + 10


def at(ts, lon, **pairs):
    return Event(ts=ts, loc=None if lon is None else (float(lon), 0.0), pairs=pairs)


def told(rules, events, until=None):
    """All edges of a trace as (key, mode, ts, lon)."""
    states, last, edges = {}, None, []
    for event in events:
        folded = fold(rules, states, last, event, Covering(covers))
        states |= folded.states
        last = event
        edges += folded.edges
    if until is not None:
        edges += expire(rules, states, last, until).edges
    return [(h.key, h.edge.mode.value, h.edge.ts, h.event.loc and h.event.loc[0]) for h in edges]


def test_staying_inside_is_told_once():
    trace = [at(1, -5), at(2, 5), at(3, 6), at(4, 20)]
    assert told([Rule("x", IN_A)], trace) == [("x", "enter", 2, 5), ("x", "leave", 4, 20)]


def test_a_dwell_that_ended_between_two_events_carries_the_event_that_held():
    rule = Rule("x", IN_A, Service(dwell_s=2))
    trace = [at(1000, 3), at(2000, 4), at(9000, 20)]
    assert told([rule], trace) == [("x", "enter", 3000, 4), ("x", "leave", 9000, 20)]


def test_a_timer_and_the_next_event_bring_the_same_enter():
    rule = Rule("x", IN_A, Service(dwell_s=2))
    by_timer = told([rule], [at(1000, 3)], until=3000)
    by_event = told([rule], [at(1000, 3), at(3500, 3)])
    assert by_timer == by_event == [("x", "enter", 3000, 3)]


def test_a_dwell_begun_elsewhere_ends_without_a_place():
    rule = Rule("x", IN_A, Service(dwell_s=2))
    folded = expire([rule], {"x": OnceState(pending=1000)}, None, 3000)
    assert [(h.edge.mode, h.edge.ts, h.event.loc) for h in folded.edges] == [(Mode.ENTER, 3000, None)]


def test_edges_of_several_dwells_come_in_the_order_of_time():
    slow, quick = Rule("slow", IN_A, Service(dwell_s=5)), Rule("quick", IN_A, Service(dwell_s=1))
    assert [key for key, *_ in told([slow, quick], [at(0, 3), at(9000, 3)])] == ["quick", "slow"]


def test_the_next_deadline_is_the_earliest_and_none_without_a_dwell():
    rules = [Rule("slow", IN_A, Service(dwell_s=5)), Rule("quick", IN_A, Service(dwell_s=1)), Rule("none", IN_A)]
    states = fold(rules, {}, None, at(100, 3), Covering(covers)).states
    assert next_deadline(rules, states) == 1100
    assert next_deadline(rules, {}) is None


def test_unknown_changes_nothing():
    rule = Rule("x", And((IN_A, Compare(CompareOp.GT, Name("speed"), Literal(3)))))
    trace = [at(1, 5, speed=5), at(2, 5), at(3, 20), at(4, None), at(5, 5, speed=1)]
    # Without a speed the second fix leaves the state; outside the zone is false whatever the speed.
    assert told([rule], trace) == [("x", "enter", 1, 5), ("x", "leave", 3, 20)]


def test_a_dwell_does_not_survive_a_pause():
    assert interrupted(OnceState(n=4, pending=7)) == OnceState(n=4)
    kept = OnceState(holds=True, n=3, since=1, visit=3)
    assert interrupted(kept) is kept


def test_only_what_changed_comes_back():
    rules = [Rule("a", IN_A), Rule("b", InZones(("b",)))]
    states = fold(rules, {}, None, at(1, 2), Covering(covers)).states
    assert set(states) == {"a"}
    assert fold(rules, states, at(1, 2), at(2, 3), Covering(covers)).states == {}


def plain(service, truths):
    """What a binding tells of a list of (ts, truth), written down as simply as the words of the design."""
    inside_since, entered, edges = None, False, []
    for index, (ts, truth) in enumerate(truths):
        if service.tos is Tos.EVERY:
            if truth:
                edges.append(("match", ts, ts))
            continue
        due = None if inside_since is None else inside_since + service.dwell_ms
        if due is not None and not entered and due <= ts:
            edges.append(("enter", due, truths[index - 1][0]))
            entered = True
        if truth and inside_since is None:
            inside_since = ts
            if service.dwell_ms == 0:
                edges.append(("enter", ts, ts))
                entered = True
        if not truth:
            if entered:
                edges.append(("leave", ts, ts))
            inside_since, entered = None, False
    return edges[:1] if service.tos is Tos.FIRST else edges


@given(
    gaps=st.lists(st.tuples(st.integers(1, 5000), st.integers(-8, 22)), max_size=40),
    services=st.lists(
        st.builds(Service, tos=st.sampled_from(Tos), dwell_s=st.sampled_from([0.0, 0.5, 3.0, 7.25])),
        min_size=1,
        max_size=4,
    ),
)
def test_any_trace_gives_the_edges_of_the_plain_reference(gaps, services):
    trace, ts = [], 0
    for gap, lon in gaps:
        ts += gap
        trace.append(at(ts, lon))
    rules = [Rule(i, InZones((("a", "b")[i % 2],)), service) for i, service in enumerate(services)]
    happened = told(rules, trace)
    places = {event.ts: event.loc[0] for event in trace}
    for i, service in enumerate(services):
        truths = [(event.ts, covers(("a", "b")[i % 2], event.loc)) for event in trace]
        expected = [(mode, ts, places[held]) for mode, ts, held in plain(service, truths)]
        assert [rest for key, *rest in happened if key == i] == [list(edge) for edge in expected]


def test_edges_are_numbered_without_a_gap_for_any_order_of_rules():
    rules = [Rule("x", IN_A), Rule("y", IN_A, Service(tos=Tos.EVERY))]
    states, last, numbers = {}, None, {"x": [], "y": []}
    for ts, lon in enumerate([1, 20, 3, 4, 20, 5]):
        folded = fold(reversed(rules), states, last, at(ts, lon), Covering(covers))
        states |= folded.states
        last = at(ts, lon)
        for happening in folded.edges:
            numbers[happening.key].append(happening.edge.n)
    assert numbers == {"x": [1, 2, 3, 4, 5], "y": [1, 2, 3, 4]}
