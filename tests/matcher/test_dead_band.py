"""The dead band, as walks across a zone from 0 to 100 m: a fix each second, and the edge it gives below it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import OnceState, Service, Tos, interrupted
from matcher.selector.tree import And, Compare, CompareOp, Condition, InZones, Literal, Name, Not
from tests.matcher.tracing import METRE, Zones, east, rule, walk
from zones.shapes import Rectangle

ZONES = Zones()
FAST = Compare(CompareOp.GT, Name("speed"), Literal(5))


def fixes(*metres: float | None, unc: float | None = None, **pairs: object) -> list[Event]:
    return [
        Event(1000 * second, None if at is None else east(at), unc=unc, pairs=dict(pairs))
        for second, at in enumerate(metres)
    ]


def told(service: Service, events: list[Event], condition: Condition | None = None) -> str:
    """`E`, `L` and `M` where a fix gave an edge, else `-`."""
    edges = {seconds: mode[0].upper() for mode, seconds, _ in walk([rule(service, ZONES, condition)], ZONES, events)}
    return " ".join(edges.get(second, "-") for second in range(len(events)))


@pytest.mark.parametrize(
    ("metres", "plain", "with_band"),
    [
        ((-50, -5, 5, -5, 5, -5, -50), "- - E L E L -", "- - - - - - -"),  # never deep enough
        ((-50, 5, 15, 50, 95, 50), "- E - - - -", "- - E - - -"),
        ((50, 95, 105, 95, 105, 109, 111), "E - L E L - -", "E - - - - - L"),  # leaves when it is certain
        ((50, 105, -5, 5, -15), "E L - E L", "E - - - L"),  # in the band on the other side it still counts
        ((5, 5, 5, 15), "E - - -", "- - - E"),  # before the first event a binding is false
        ((15, None, 105, None, 115), "E - L - -", "E - - - L"),  # no place, nothing new
    ],
)
def test_walks(metres: tuple[float | None, ...], plain: str, with_band: str):
    assert told(Service(), fixes(*metres)) == plain
    assert told(Service(hysteresis_m=10), fixes(*metres)) == with_band


def test_an_uncertain_fix_has_to_be_deeper():
    metres = (5, 15, 25, 105, 115, 125)
    assert told(Service(unc_factor=1), fixes(*metres, unc=20)) == "- - E - - L"
    assert told(Service(unc_factor=2), fixes(*metres, unc=6)) == "- E - - L -"
    assert told(Service(hysteresis_m=10, unc_factor=1), fixes(*metres, unc=11)) == "- - E - - L"
    assert told(Service(unc_factor=1), fixes(*metres)) == "E - - L - -"  # nobody said how uncertain


def test_unc_is_not_looked_at_unless_asked_for():
    assert told(Service(hysteresis_m=10), fixes(5, 15, 105, 115, unc=500)) == "- E - L"


def test_the_band_is_never_wider_than_the_zone_allows():
    # The zone is 100 m wide: one is at most 50 m deep in it, and the band is at most half of that.
    metres = (20, 26, 50, 105, 120, 130)
    assert told(Service(hysteresis_m=10_000), fixes(*metres)) == "- E - - - L"
    assert told(Service(unc_factor=3), fixes(*metres, unc=5_000)) == "- E - - - L"


def test_other_terms_see_the_zone_as_it_counts():
    events = [
        Event(second * 1000, east(at), pairs={"speed": speed})
        for second, (at, speed) in enumerate([(50, 0), (5, 9), (-5, 9), (-5, 0), (-5, 9), (-15, 9), (5, 9)])
    ]
    # It became slow deep inside. In the band it still counts as inside, and speed alone decides.
    assert told(Service(hysteresis_m=10), events, And((InZones(("a",)), FAST))) == "- E - L E L -"


def test_a_negated_term_about_the_same_zone_agrees_with_it():
    never = And((InZones(("a",)), Not(InZones(("a",)))))
    assert told(Service(hysteresis_m=10), fixes(-50, 5, 50, 5, -5, -50), never) == "- - - - - -"


def test_other_zones_are_as_they_are_drawn():
    zones = Zones(
        {"a": Rectangle((0.0, -0.01, 100 * METRE, 0.01)), "b": Rectangle((-100 * METRE, -0.01, 52 * METRE, 0.01))}
    )
    both = rule(Service(hysteresis_m=10), zones, And((InZones(("a",)), InZones(("b",)))))
    assert [mode for mode, *_ in walk([both], zones, fixes(50, 53, 51))] == ["enter", "leave", "enter"]


def test_every_tells_each_event_that_counts_as_inside():
    assert told(Service(tos=Tos.EVERY, hysteresis_m=10), fixes(5, 15, 5, -5, -15, 5)) == "- M M M - -"


def test_first_needs_to_be_deep_once():
    assert told(Service(tos=Tos.FIRST, hysteresis_m=10), fixes(5, 15, -50, 50)) == "- E - -"


def test_a_dwell_runs_on_in_the_band_and_ends_outside_of_it():
    service = Service(dwell_s=3, hysteresis_m=10)
    walked = walk([rule(service, ZONES)], ZONES, fixes(50, -5, 5, -5, -15))
    assert walked == [("enter", 3.0, 5.0), ("leave", 4.0, -15.0)]
    assert walk([rule(service, ZONES)], ZONES, fixes(50, -15, 50, -5, -15)) == []


def test_what_counts_as_inside_is_handed_over_with_the_state():
    condition = And((InZones(("a",)), FAST))
    slow, fast = {"speed": 0}, {"speed": 9}
    bound = rule(Service(hysteresis_m=10), ZONES, condition)
    states: dict[str, OnceState] = {}
    walk([bound], ZONES, [Event(0, east(50), pairs=slow)], states)
    assert states == {"x": OnceState(inside=True)}
    assert states["x"].is_live  # it has to be looked at when the object is far away
    assert walk([bound], ZONES, [Event(1000, east(-5), pairs=fast)], dict(states)) == [("enter", 1.0, -5.0)]
    # Where it is not known, the last edge counts.
    assert walk([bound], ZONES, [Event(1000, east(-5), pairs=fast)], {"x": interrupted(states["x"])}) == []


def test_a_band_that_is_turned_on_while_inside_does_not_leave():
    states: dict[str, OnceState] = {}
    assert len(walk([Rule("x", InZones(("a",)))], ZONES, fixes(5), states)) == 1
    later = [Event(5000, east(5)), Event(6000, east(-5)), Event(7000, east(-15))]
    assert walk([rule(Service(hysteresis_m=10), ZONES)], ZONES, later, states) == [("leave", 7.0, -15.0)]


def test_states_are_no_longer_than_needed():
    states: dict[str, OnceState] = {}
    walk([rule(Service(hysteresis_m=10), ZONES)], ZONES, fixes(-50, 5, 50, -5), states)
    assert states["x"] == OnceState(holds=True, n=1, since=2000, visit=1)
    walk([rule(Service(hysteresis_m=10), ZONES)], ZONES, fixes(-50), states)
    assert states["x"] == OnceState(n=2)


@given(
    st.lists(st.tuples(st.integers(-60, 160), st.booleans()), max_size=30),
    st.sampled_from([0, 1, 10, 25, 60]),
    st.sampled_from([None, 3.0, 40.0]),
)
def test_walks_agree_with_words(trace, hysteresis_m, unc):
    """In when deeper than the band, out when further than the band, else as before."""
    service = Service(hysteresis_m=hysteresis_m, unc_factor=0.5)
    band_m = min(hysteresis_m + 0.5 * (unc or 0), 25)
    counts, holds, expected = False, False, []
    events = [
        Event(second * 1000, east(at), unc=unc, pairs={"speed": 9 if fast else 0})
        for second, (at, fast) in enumerate(trace)
    ]
    for second, (at, fast) in enumerate(trace):
        depth = min(at, 100 - at)
        # The measured depth is up to half a percent smaller.
        if (depth >= 0) is not counts and band_m and abs(abs(depth) - band_m) <= 0.2:
            return
        if (depth >= 0) is not counts and abs(depth) >= band_m:
            counts = not counts
        if (counts and fast) is not holds:
            holds = not holds
            expected.append(("enter" if holds else "leave", float(second), float(at)))
    found = walk([rule(service, ZONES, And((InZones(("a",)), FAST)))], ZONES, events)
    assert found == expected
