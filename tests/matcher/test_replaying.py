"""Replay looks at few bindings for each fix, and finds what looking at all of them finds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.anchors import Anchor, anchor_zone
from matcher.evaluation import Rule, expire, fold
from matcher.events import Event
from matcher.once import Mode, OnceState, Service, Tos
from matcher.replaying import Replay, ReplayZones, Told
from matcher.selector.binding import Bound, bind
from matcher.selector.parser import parse_selector
from zones.shapes import Circle, Polygon, Rectangle, Shape

# A corner of the globe drawn by hand: `a` and `b` overlap, `c` is apart, `date` lies on both sides of the antimeridian.
SHAPES: dict[str, Shape] = {
    "a": Rectangle((0.0, 0.0, 2.0, 2.0)),
    "b": Polygon((((1.0, 1.0), (4.0, 1.0), (4.0, 4.0), (1.0, 4.0), (1.0, 1.0)),)),
    "c": Circle((6.0, 0.0), 120_000.0),
    "date": Rectangle((179.0, -1.0, -179.0, 1.0)),
}
SELECTORS = [
    "(*) within (SYSTEM.*)",
    "(van) within (SYSTEM.a, SYSTEM.c) AND speed < 3",
    "(van) within (SYSTEM.a) OR (bus) within (SYSTEM.a) AND speed > 1",
    "(*) within (SYSTEM.a) OR (*) within (SYSTEM.*) AND NOT urgent",
    "(*) within (SYSTEM.b) AND NOT (*) within (SYSTEM.a)",
    "NOT (*) within (SYSTEM.a, SYSTEM.b)",
    "speed > 2",
    "oid = 'van' AND (*) within (SYSTEM.date)",
    "(*) within (CIRCLE(1 1, 100000), SYSTEM.a)",
    "(*) overlaps (SYSTEM.a, SYSTEM.b)",
    "(*) disjoint (SYSTEM.a) AND (*) within (SYSTEM.b)",
]
SERVICES = [
    Service(),
    Service(dwell_s=3.0),
    Service(tos=Tos.FIRST, modes=(Mode.ENTER,)),
    Service(tos=Tos.FIRST, modes=(Mode.ENTER,), dwell_s=2.0),
    Service(tos=Tos.EVERY, modes=(Mode.MATCH,)),
    Service(modes=(Mode.LEAVE,)),
    Service(hysteresis_m=30_000.0),
    Service(unc_factor=0.5, dwell_s=2.0),
    Service(crossing=True),
    Service(crossing=True, dwell_s=1.0, hysteresis_m=10_000.0),
    Service(tos=Tos.FIRST, modes=(Mode.ENTER,), crossing=True),
    Service(tos=Tos.EVERY, modes=(Mode.MATCH,), hysteresis_m=30_000.0),
]

places = st.one_of(
    st.tuples(st.integers(-1, 7).map(float), st.integers(-1, 5).map(float)),  # on boundaries and corners, often
    st.sampled_from([(180.0, 0.0), (-180.0, 0.5), (179.5, 1.0), (178.0, 0.0), (6.0, 0.9)]),
)
events = st.builds(
    Event,
    ts=st.integers(1, 40).map(lambda seconds: seconds * 1000),
    loc=st.none() | places,
    oid=st.sampled_from(["van", "bus", "Van"]),
    unc=st.sampled_from([None, 50_000.0]),
    pairs=st.fixed_dictionaries({}, optional={"speed": st.integers(0, 5), "urgent": st.booleans()}),
)


def plainly(selector: str, service: Service, trace: list[Event]) -> list[Told]:
    """Every binding of the object at every fix."""
    tree = parse_selector(selector)
    zones = ReplayZones(SHAPES, tree)
    told: list[Told] = []
    first: dict[str, str] = {}
    states: dict[str, dict[str, OnceState]] = {}
    last: dict[str, Event] = {}

    def tell(oid: str, folded) -> None:
        states[oid].update(folded.states)
        for each in folded.edges:
            if service.tells(each.edge.mode):
                told.append(Told(first[oid], each.edge.ts, zones.name(each.key), each.edge.mode, each.event.loc))

    def rules(oid: str) -> list[Rule[str]]:
        return [
            Rule(each.target, each.condition, service, anchor=anchor(each)) for each in bind(tree, first[oid], zones)
        ]

    def anchor(bound: Bound) -> Anchor | None:
        zone = anchor_zone(bound.target, bound.condition, service)
        return None if zone is None else Anchor(zone, zones.boundary(zone))

    for event in trace:
        oid = event.oid.lower()
        first.setdefault(oid, event.oid)
        states.setdefault(oid, {})
        if oid in last and event.ts <= last[oid].ts:
            continue
        tell(oid, fold(rules(oid), states[oid], last.get(oid), event, zones))
        last[oid] = event
    for oid in first:
        tell(oid, expire(rules(oid), states[oid], last[oid], max(each.ts for each in trace)))
    return told


@settings(max_examples=600)
@given(
    selector=st.sampled_from(SELECTORS),
    service=st.sampled_from(SERVICES),
    trace=st.lists(events, min_size=1, max_size=30),
    cut=st.integers(0, 30),
)
def test_looking_where_something_can_change_finds_all_that_changes(selector, service, trace, cut):
    tree = parse_selector(selector)
    replay = Replay(tree, service, ReplayZones(SHAPES, tree))
    told = replay.take(trace[:cut]) + replay.take(trace[cut:]) + replay.end()
    assert told == plainly(selector, service, trace)


def test_traces_of_the_property_enter_leave_and_match():
    """What the property compares is not always nothing."""
    path = [(-1.0, 0.0), (1.0, 1.0), (3.0, 3.0), (6.0, 0.0), (180.0, 0.0), (7.0, 5.0)]
    trace = [
        Event(ts=1000 * (place + 1), loc=loc, oid="van", unc=50_000.0, pairs={"speed": 2.5, "urgent": False})
        for place, loc in enumerate(path)
    ]
    assert [each.target for each in plainly(SELECTORS[0], Service(), trace)] == [
        *("SYSTEM.a", "SYSTEM.b", "SYSTEM.a", "SYSTEM.b", "SYSTEM.c", "SYSTEM.c", "SYSTEM.date", "SYSTEM.date"),
    ]
    assert all(plainly(selector, SERVICES[4], trace) for selector in SELECTORS)


def test_every_report_counts_and_only_what_was_asked_for_is_told():
    tree = parse_selector("(van) within (SYSTEM.a)")
    replay = Replay(tree, Service(modes=(Mode.LEAVE,)), ReplayZones(SHAPES, tree))
    trace = [Event(ts=place + 1, loc=loc, oid=oid) for place, (oid, loc) in enumerate([
        ("van", (1.0, 1.0)), ("bus", (1.0, 1.0)), ("van", (5.0, 5.0)), ("van", (1.0, 1.0)),
    ])]  # fmt: skip
    assert [(each.oid, each.mode, each.ts) for each in replay.take(trace)] == [("van", Mode.LEAVE, 3)]
    counts = replay.counts
    assert (counts.samples, counts.objects, counts.late) == (4, 2, 0)
    assert (counts.enters, counts.leaves, counts.matches) == (0, 1, 0)
    sent = counts.messages
    assert (sent.server, sent.device, sent.dispatch) == (4, 3, 1)  # a bus that nothing speaks of gets no plan


def test_a_dwell_ends_with_the_last_fix_of_all_if_its_own_object_is_silent():
    tree = parse_selector("(*) within (SYSTEM.a)")
    replay = Replay(tree, Service(dwell_s=60), ReplayZones(SHAPES, tree))
    assert replay.take([Event(ts=0, loc=(1.0, 1.0), oid="van"), Event(ts=59_999, loc=(9.0, 9.0), oid="bus")]) == []
    assert replay.end() == []
    replay.take([Event(ts=60_000, loc=(9.0, 9.0), oid="bus")])
    assert replay.end() == [Told("van", 60_000, "SYSTEM.a", Mode.ENTER, (1.0, 1.0))]
    assert replay.end() == []


def test_a_zone_that_was_passed_through_is_found_by_the_way_to_the_fix():
    tree = parse_selector("(*) within (SYSTEM.*)")
    trace = [Event(ts=0, loc=(-1.0, 0.5), oid="van"), Event(ts=8000, loc=(7.5, 0.5), oid="van")]
    trace += [Event(ts=9000, loc=(178.0, 0.0), oid="bus"), Event(ts=13_000, loc=(-178.0, 0.0), oid="bus")]
    replay = Replay(tree, Service(crossing=True), ReplayZones(SHAPES, tree))
    told = [(each.oid, each.target, each.mode) for each in replay.take(trace)]
    assert told == [
        ("van", "SYSTEM.a", Mode.ENTER),
        ("van", "SYSTEM.a", Mode.LEAVE),
        ("van", "SYSTEM.c", Mode.ENTER),
        ("van", "SYSTEM.c", Mode.LEAVE),
        ("bus", "SYSTEM.date", Mode.ENTER),
        ("bus", "SYSTEM.date", Mode.LEAVE),
    ]
    assert Replay(tree, Service(), ReplayZones(SHAPES, tree)).take(trace) == []


def test_distances_are_told_with_the_other_object():
    tree = parse_selector("(van) distance (2000, *) OR (van) within (SYSTEM.a)")
    trace = [
        Event(ts=1000, loc=(5.0, 5.0), oid="Van"),
        Event(ts=2000, loc=(5.0, 5.01), oid="bus"),
        Event(ts=3000, loc=(5.0, 6.0), oid="bus"),
        Event(ts=4000, loc=(1.0, 1.0), oid="van"),
        Event(ts=5000, loc=(5.0, 6.0), oid="tram"),
        Event(ts=400_000, loc=(1.0, 1.0), oid="bus"),  # nobody knows any more where the van is
    ]
    replay = Replay(tree, Service(), ReplayZones(SHAPES, tree), [event.oid for event in trace])
    told = [(each.oid, each.ts, each.target, each.mode, each.loc) for each in replay.take(trace) + replay.end()]
    assert told == [
        ("Van", 2000, "bus", Mode.ENTER, (5.0, 5.0)),
        ("Van", 3000, "bus", Mode.LEAVE, (5.0, 5.0)),
        ("Van", 4000, "SYSTEM.a", Mode.ENTER, (1.0, 1.0)),
    ]
    sent = replay.counts.messages
    assert (sent.server, sent.device, sent.dispatch) == (6, 7, 3)


def test_a_distance_may_be_a_condition_on_a_zone():
    tree = parse_selector("(van) within (SYSTEM.a) AND NOT (van) distance (2000, bus)")
    trace = [
        Event(ts=1000, loc=(1.0, 1.0), oid="bus"),
        Event(ts=2000, loc=(1.0, 1.0), oid="van"),
        Event(ts=3000, loc=(1.0, 3.0), oid="bus"),
        Event(ts=4000, loc=(3.0, 3.0), oid="van"),
    ]
    replay = Replay(tree, Service(), ReplayZones(SHAPES, tree), ["bus", "van"])
    told = [(each.oid, each.ts, each.target, each.mode) for each in replay.take(trace)]
    assert told == [("van", 3000, "SYSTEM.a", Mode.ENTER), ("van", 4000, "SYSTEM.a", Mode.LEAVE)]


def test_who_is_not_in_the_trace_is_near_to_nobody():
    tree = parse_selector("(van) distance (2000, bus)")
    replay = Replay(tree, Service(), ReplayZones(SHAPES, tree), ["tram"])
    assert replay.take([Event(ts=1000, loc=(1.0, 1.0), oid="tram")]) == []
    assert replay.counts.messages.dispatch == 0
