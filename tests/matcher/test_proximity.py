"""Distances between objects: the trigger graph tells what comparing everybody with everybody would."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import Mode, OnceState, Service, Tos
from matcher.planar import PlanarRegion
from matcher.proximity import Nearing, Proximity, Tie
from matcher.selector.binding import bind
from matcher.selector.conditions import is_condition, others_in
from matcher.selector.parser import parse_selector
from matcher.selector.tree import And, Condition, Const, InZones, NamedZone, Near, Not, Or, ZoneSet, ZoneTag
from zones.geodesy import destination, distance_m
from zones.shapes import Point

_HOME: Point = (116.36, 39.9)
_MINUTE = 60_000


def east(metres: float) -> Point:
    return destination(_HOME, 90, metres)


class Zones:
    """One zone: everything less than a kilometre from home."""

    def covers(self, zone: str, point: Point) -> bool:
        assert zone == "7"
        return distance_m(_HOME, point) <= 1000

    def region(self, zone: str) -> PlanarRegion:
        raise AssertionError(zone)

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        return ("7",)


class Objects:
    """Those that are there, by the first letter of their names."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def other(self, oid: str) -> str | None:
        return f"o:{oid}" if oid in self._names else None

    def others(self) -> tuple[str, ...]:
        return tuple(f"o:{name}" for name in self._names)


@dataclass
class Scene:
    """One subscription and its objects, as the server keeps them."""

    selector: str
    service: Service = field(default_factory=Service)
    objects: Sequence[str] = ("mike", "foo", "bar")

    def __post_init__(self) -> None:
        self.proximity: Proximity[tuple[str, str]] = Proximity(Zones())
        self.states: dict[tuple[str, str], OnceState] = {}
        self.ts = 0
        selector = parse_selector(self.selector)
        for name in self.objects:
            for bound in bind(selector, name, Zones(), Objects(*self.objects)):
                rule = Rule((name, bound.target), bound.condition, self.service)
                target = bound.target if bound.target.startswith("o:") else ""
                self.proximity.link(Tie(rule, f"o:{name}", target=target))

    def move(self, name: str, metres: float | None, *, minutes: float = 1, ts: int | None = None, **pairs: int) -> str:
        self.ts = self.ts + round(minutes * _MINUTE) if ts is None else ts
        event = Event(self.ts, None if metres is None else east(metres), name, pairs=pairs)  # type: ignore[arg-type]
        folded = self.proximity.fold(f"o:{name}", event, self.states)
        if folded is None:
            return "late"
        self.states |= folded.states
        self.edges = folded.edges
        return " ".join(map(said, folded.edges))


def said(nearing: Nearing[tuple[str, str]]) -> str:
    left, target = nearing.key
    return f"{nearing.edge.mode} {left}~{target.removeprefix('o:') or 'all'}"


# --- one pair ----------------------------------------------------------------------------------------


def test_a_buddy_comes_near_and_goes_and_each_is_told_once():
    scene = Scene("(mike) distance (200, foo)")
    assert scene.move("mike", 0) == ""
    assert scene.move("foo", 900) == ""
    assert scene.move("foo", 150) == "enter mike~foo"
    assert scene.move("foo", 100) == ""
    assert scene.move("mike", 50) == ""
    assert scene.move("mike", -150) == "leave mike~foo"
    assert scene.move("mike", -151) == ""


def test_what_is_told_has_the_left_ones_event_and_the_others_place_whoever_moved():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0, speed=3)
    scene.move("foo", 100, speed=99)
    (nearing,) = scene.edges
    assert nearing.event == Event(_MINUTE, east(0), "mike", pairs={"speed": 3})
    assert nearing.target_loc == east(100)
    assert nearing.edge.ts == 2 * _MINUTE
    assert scene.move("mike", 500) == "leave mike~foo"
    (nearing,) = scene.edges
    assert (nearing.event.loc, nearing.target_loc, nearing.edge.ts) == (east(500), east(100), 3 * _MINUTE)


def test_exactly_the_distance_is_not_near():
    scene = Scene(f"(mike) distance ({distance_m(east(0), east(200))!r}, foo)")
    scene.move("mike", 0)
    assert scene.move("foo", 200) == ""
    assert scene.move("foo", 199.99999) == "enter mike~foo"


@pytest.mark.parametrize(("minutes", "expected"), [(5, "enter mike~foo"), (5.001, "")])
def test_a_partner_of_whom_nothing_was_heard_for_too_long_is_not_known(minutes: float, expected: str):
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0)
    assert scene.move("foo", 100, minutes=minutes) == expected


def test_the_age_that_counts_is_an_option():
    scene = Scene("(mike) distance (200, foo)", Service(stale_s=30))
    scene.move("mike", 0)
    assert scene.move("foo", 100, minutes=0.6) == ""
    assert scene.move("mike", 0, minutes=0.5) == "enter mike~foo"


def test_a_pair_that_is_not_known_any_more_does_not_leave():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0)
    assert scene.move("foo", 100) == "enter mike~foo"
    assert scene.move("foo", 5000, minutes=10) == ""
    assert scene.move("mike", 0) == "leave mike~foo"


def test_an_event_without_a_place_decides_nothing():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0)
    assert scene.move("foo", None) == ""
    assert scene.move("foo", 100) == "enter mike~foo"
    assert scene.move("mike", None) == ""
    assert scene.move("foo", 3000) == ""
    assert scene.move("mike", 0) == "leave mike~foo"


def test_a_late_event_changes_nothing():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0)
    assert scene.move("foo", 900) == ""
    assert scene.move("foo", 100, ts=scene.ts) == "late"
    assert scene.move("foo", 100, ts=scene.ts - 1) == "late"
    assert scene.move("mike", 1) == ""


def test_the_past_of_a_pair_is_not_looked_at():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("foo", 900)
    scene.move("mike", 0, minutes=10)
    scene.move("foo", 100, minutes=1)
    assert said(scene.edges[0]) == "enter mike~foo"
    scene = Scene("(mike) distance (200, foo)")
    scene.move("foo", 900, ts=100)
    scene.move("mike", 0, ts=5000)
    assert scene.move("foo", 100, ts=4000) == ""  # newer than foo's newest, and older than mike's
    assert scene.move("mike", 1, ts=6000) == "enter mike~foo"
    assert scene.edges[0].target_loc == east(100)


def test_both_may_move_at_the_same_instant():
    scene = Scene("(mike) distance (200, foo)")
    scene.move("mike", 0, ts=1000)
    assert scene.move("foo", 100, ts=1000) == "enter mike~foo"


def test_two_left_ones_have_two_bindings():
    scene = Scene("(mike) distance (200, foo) OR (foo) distance (200, mike)")
    scene.move("mike", 0)
    scene.move("foo", 100)
    assert sorted(map(said, scene.edges)) == ["enter foo~mike", "enter mike~foo"]


# --- types of service --------------------------------------------------------------------------------


def test_every_tells_each_event_of_either_while_they_are_near():
    scene = Scene("(mike) distance (200, foo)", Service(tos=Tos.EVERY, modes=(Mode.MATCH,)))
    scene.move("mike", 0)
    assert scene.move("foo", 100) == "match mike~foo"
    assert scene.move("mike", 10) == "match mike~foo"
    assert scene.move("foo", 900) == ""
    assert [state.n for state in scene.states.values()] == [2]


def test_first_tells_one_enter_ever():
    scene = Scene("(mike) distance (200, foo)", Service(tos=Tos.FIRST, modes=(Mode.ENTER,)))
    scene.move("mike", 0)
    assert [scene.move("foo", metres) for metres in (100, 900, 100)] == ["enter mike~foo", "", ""]


def test_an_enter_after_a_dwell_is_dated_then_and_has_the_places_that_held():
    scene = Scene("(mike) distance (200, foo)", Service(dwell_s=90))
    scene.move("mike", 0)
    assert scene.move("foo", 100) == ""
    started = scene.ts
    assert scene.move("mike", 20) == ""
    assert scene.move("foo", 900) == "enter mike~foo leave mike~foo"
    enter, leave = scene.edges
    assert enter.edge.ts == started + 90_000
    assert (enter.event.loc, enter.target_loc) == (east(20), east(100))
    assert (leave.event.loc, leave.target_loc) == (east(20), east(900))


def test_a_dwell_ends_by_the_clock_too_and_nothing_older_leaves_after_it():
    scene = Scene("(mike) distance (200, foo)", Service(dwell_s=90))
    scene.move("mike", 0, ts=0)
    scene.move("foo", 100, ts=1000)
    ties = list(scene.proximity.ties("o:mike"))
    assert scene.proximity.next_deadline(ties, scene.states) == 91_000
    assert scene.proximity.expire(ties, scene.states, 90_999).edges == []
    folded = scene.proximity.expire(ties, scene.states, 91_000)
    assert [(said(each), each.edge.ts) for each in folded.edges] == [("enter mike~foo", 91_000)]
    scene.states |= folded.states
    assert scene.move("foo", 900, ts=80_000) == ""  # the leave would be older than its enter
    assert scene.move("foo", 901, ts=92_000) == "leave mike~foo"


# --- mixed with other terms --------------------------------------------------------------------------


def test_everybody_who_may_be_seen_has_a_binding_and_nobody_is_near_themselves():
    scene = Scene("(mike) distance (200, *)")
    scene.move("mike", 0)
    assert scene.move("foo", 100) == "enter mike~foo"
    assert scene.move("bar", 110) == "enter mike~bar"
    assert scene.move("foo", 900) == "leave mike~foo"


def test_a_condition_on_the_left_ones_pairs_is_asked_of_its_newest_event():
    scene = Scene("(mike) distance (200, foo) AND speed > 3")
    scene.move("mike", 0, speed=2)
    assert scene.move("foo", 100, speed=50) == ""
    assert scene.move("mike", 0, speed=4) == "enter mike~foo"
    assert scene.move("foo", 120) == ""
    assert scene.move("mike", 0) == ""  # no speed: UNKNOWN
    assert scene.move("mike", 0, speed=1) == "leave mike~foo"


def test_a_distance_that_is_not_the_anchor_means_any_of_the_list():
    scene = Scene("(mike) within (a.b) AND (mike) distance (200, foo, bar)")
    scene.move("bar", 5000)
    scene.move("foo", 5000)
    assert scene.move("mike", 0) == ""
    assert scene.move("bar", 100) == "enter mike~7"
    assert scene.edges[0].target_loc is None
    assert scene.move("foo", 100) == ""
    assert scene.move("bar", 5000) == ""
    assert scene.move("mike", 100, minutes=0.1) == ""
    assert scene.move("foo", 5000, minutes=0.1) == "leave mike~7"


def test_not_near_anybody_has_one_binding_and_needs_to_know_of_all():
    scene = Scene("NOT (mike) distance (200, foo, bar)")
    scene.move("mike", 0)
    assert scene.move("foo", 900) == ""  # nothing is known of bar
    assert scene.move("bar", 900) == "enter mike~all"
    assert scene.move("bar", 100) == "leave mike~all"
    assert scene.move("mike", -500) == "enter mike~all"


@pytest.mark.parametrize(
    ("selector", "there", "expected"),
    [
        ("(mike) distance (9, foo, bar)", "foo bar", {"o:foo": Near(("o:foo",), 9.0), "o:bar": Near(("o:bar",), 9.0)}),
        ("(mike) distance (9, foo, bar)", "bar", {"o:bar": Near(("o:bar",), 9.0)}),
        ("(mike) distance (9, mike)", "mike", {}),
        ("(mike) distance (9, *)", "mike foo", {"o:foo": Near(("o:foo",), 9.0)}),
        ("(foo) distance (9, mike)", "mike foo", {}),  # that is foo's
        ("NOT (mike) distance (9, foo)", "foo", {"": Not(Near(("o:foo",), 9.0))}),
        ("NOT (mike) distance (9, foo)", "", {"": Not(Or((Near((), 9.0), Const(None))))}),
        ("NOT (mike) distance (9, *)", "mike", {"": Not(Near((), 9.0))}),
        (
            "(mike) within (a.b) AND (mike) distance (9, foo, bar)",
            "foo",
            {"7": And((InZones(("7",)), Or((Near(("o:foo",), 9.0), Const(None)))))},
        ),
        (
            "(mike) distance (9, foo) AND (mike) within (a.b)",
            "foo",
            {"o:foo": And((Near(("o:foo",), 9.0), InZones(("7",))))},
        ),
        (
            "(mike) distance (9, foo) AND (bar) within (a.b)",
            "foo",
            {"o:foo": Const(False)},
        ),
        (
            "(mike) distance (9, foo) OR (mike) within (a.b)",
            "foo",
            {"o:foo": Near(("o:foo",), 9.0), "7": InZones(("7",))},
        ),
        (
            "(mike) distance (9, foo) OR (mike) distance (5, foo, bar) AND hot",
            "foo bar",
            {
                "o:foo": Or((Near(("o:foo",), 9.0), And((Near(("o:foo",), 5.0), parse_selector("hot"))))),
                "o:bar": And((Near(("o:bar",), 5.0), parse_selector("hot"))),
            },
        ),
    ],
)
def test_bindings_of_a_distance(selector: str, there: str, expected: dict[str, Condition]):
    parsed = parse_selector(selector)
    found = bind(parsed, "mike", Zones(), Objects(*there.split()))
    assert {bound.target: bound.condition for bound in found} == expected
    for other in there.split():
        alone = bind(parsed, "mike", Zones(), Objects(*there.split()), other=other)
        pairs = {bound.target: bound.condition for bound in alone if bound.target.startswith("o:")}
        assert pairs == {target: condition for target, condition in expected.items() if target == f"o:{other}"}


def test_where_nobody_says_who_there_is_no_binding_is_to_another_and_conditions_still_say_that_they_depend():
    parsed = parse_selector("(mike) distance (9, foo) OR (mike) within (a.b) AND (mike) distance (9, bar)")
    (bound,) = bind(parsed, "mike", Zones())
    assert bound.condition == And((InZones(("7",)), Near((), 9.0)))
    assert not is_condition(bound.condition)  # no device is given this
    assert list(others_in(bound.condition)) == []


# --- everybody with everybody ------------------------------------------------------------------------

_NAMES = "abcdefg"


@dataclass
class Plain:
    """Every pair that was asked for, looked at again at every event of one of the two."""

    asked: dict[tuple[str, str], float]
    stale_s: float

    def __post_init__(self) -> None:
        self.newest: dict[str, tuple[int, Point]] = {}
        self.near: set[tuple[str, str]] = set()

    def move(self, name: str, ts: int, loc: Point) -> list[str]:
        if name in self.newest and ts <= self.newest[name][0]:
            return []
        self.newest[name] = ts, loc
        told = []
        for pair, metres in self.asked.items():
            left, other = pair
            if name not in pair or left not in self.newest or other not in self.newest:
                continue
            (left_ts, left_loc), (other_ts, other_loc) = self.newest[left], self.newest[other]
            if not all(0 <= ts - each <= self.stale_s * 1000 for each in (left_ts, other_ts)):
                continue
            if (distance_m(left_loc, other_loc) < metres) is not (pair in self.near):
                self.near ^= {pair}
                told.append(f"{'enter' if pair in self.near else 'leave'} {left}~{other} {left_loc} {other_loc} {ts}")
        return sorted(told)


_PAIRS = st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES)).filter(lambda pair: pair[0] != pair[1])
_MOVES = st.tuples(st.sampled_from(_NAMES), st.integers(-20, 200), st.integers(0, 8), st.integers(0, 8))


@settings(max_examples=300)
@given(
    st.dictionaries(_PAIRS, st.sampled_from((50.0, 100.0, 111.0, 250.0)), max_size=25), st.lists(_MOVES, max_size=60)
)
def test_the_graph_tells_what_comparing_all_pairs_would(asked: dict[tuple[str, str], float], moves: list[tuple]):
    service = Service(stale_s=300)
    plain = Plain(asked, service.stale_s)
    proximity: Proximity[tuple[str, str]] = Proximity(Zones())
    states: dict[tuple[str, str], OnceState] = {}
    for (left, other), metres in asked.items():
        rule = Rule((left, f"o:{other}"), Near((f"o:{other}",), metres), service)
        proximity.link(Tie(rule, f"o:{left}", target=f"o:{other}"))
    ts = 100_000
    for name, seconds, x, y in moves:
        ts += seconds * 1000
        loc = 116.36 + x * 0.0005, 39.9 + y * 0.0005
        folded = proximity.fold(f"o:{name}", Event(ts, loc, name), states)
        told = []
        if folded is not None:
            states |= folded.states
            told = sorted(f"{said(n)} {n.event.loc} {n.target_loc} {n.edge.ts}" for n in folded.edges)
        assert told == plain.move(name, ts, loc)


@settings(max_examples=100)
@given(st.lists(_MOVES, max_size=40), st.booleans())
def test_the_short_way_for_a_pair_and_the_way_of_all_conditions_tell_the_same(moves: list[tuple], dwells: bool):
    service = Service(dwell_s=120 if dwells else 0)
    condition = Near(("o:b",), 100.0)
    both: list[tuple[Proximity[str], dict[str, OnceState]]] = []
    for each in (condition, And((condition, Const(True)))):
        proximity: Proximity[str] = Proximity(Zones())
        proximity.link(Tie(Rule("k", each, service), "o:a", target="o:b"))
        both.append((proximity, {}))
    ts = 100_000
    for name, seconds, x, y in moves:
        ts += seconds * 1000
        told = []
        for proximity, states in both:
            mover = "ab"[name > "c"]
            folded = proximity.fold(f"o:{mover}", Event(ts, (116.36 + x * 0.0005, 39.9 + y * 0.0005)), states)
            states |= {} if folded is None else folded.states
            told.append((states, folded))
        assert told[0] == told[1]


def test_an_object_without_edges_is_compared_with_nobody():
    scene = Scene("(mike) distance (200, foo)")
    assert not scene.proximity.is_linked("o:bar")
    assert scene.move("bar", 0) == ""
    assert [tie.objects for tie in scene.proximity.ties("o:foo")] == [("o:mike", "o:foo")]
    scene.move("foo", 10)
    assert scene.proximity.sighting("o:foo") is not None
    for tie in list(scene.proximity.ties("o:foo")):
        scene.proximity.unlink(tie)
    assert not scene.proximity.is_linked("o:foo")
    assert not scene.proximity.is_linked("o:mike")
    assert scene.proximity.sighting("o:foo") is None
    scene.move("mike", 0)
    assert scene.move("foo", 0) == ""
