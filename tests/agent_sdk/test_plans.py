"""Plans as wholes: deltas, etags, and what a device keeps of its own."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agent_sdk.evaluator import Evaluator
from agent_sdk.protocol.messages import Plan, PlanItem, PlanZone
from agent_sdk.protocol.plans import FullPlan, applied, as_full, difference, etag, merged_states
from matcher.events import Event
from matcher.once import Mode, OnceState, Service, Tos
from matcher.selector.tree import Const, InZones
from zones.shapes import Circle

conditions = st.sampled_from([Const(True), InZones(("z1",)), InZones(("z2",)), InZones(("z1", "z2"))])
states = st.builds(OnceState, holds=st.booleans(), n=st.integers(0, 5), pending=st.none() | st.just(7))
items = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(PlanItem, st.just(""), conditions, st.builds(Service, st.sampled_from(Tos)), states, st.just("exact")),
).map(lambda d: {key: PlanItem(key, i.condition, i.service, i.state, i.precision) for key, i in d.items()})
zones = st.dictionaries(st.sampled_from(["z1", "z2", "z3"]), st.floats(1, 3)).map(
    lambda d: {key: PlanZone(key, Circle((0.0, 0.0), radius)) for key, radius in d.items()}
)
plans = st.builds(FullPlan, st.integers(1, 2), items, zones)


def tasks(plan):
    """The plan without states and order."""
    return (
        plan.generation,
        {key: (i.condition, i.service, i.precision) for key, i in plan.items.items()},
        dict(plan.zones),
    )


@given(plans, plans)
def test_the_difference_applied_to_the_old_plan_gives_the_new_one(old, new):
    message = difference(old, new, lease_s=60)
    if message is None:
        assert tasks(old) == tasks(new)
    else:
        assert tasks(applied(message, old)) == tasks(new)
        assert message.etag == etag(new)


@given(plans, plans)
def test_the_full_plan_does_not_depend_on_what_was_there(old, new):
    assert tasks(applied(as_full(new, lease_s=60), old)) == tasks(new)


@given(plans, plans)
def test_etags_are_equal_for_the_same_tasks_and_only_then(one, other):
    assert (etag(one) == etag(other)) == (tasks(one)[1:] == tasks(other)[1:])


def test_an_etag_does_not_look_at_states_or_order():
    a, b = PlanItem("a", Const(True)), PlanItem("b", Const(True))
    moved_on = PlanItem("a", Const(True), state=OnceState(True, 3))
    assert etag(FullPlan(1, {"a": a, "b": b})) == etag(FullPlan(2, {"b": b, "a": moved_on}))


def test_an_etag_does_not_depend_on_whether_a_service_was_made_or_loaded():
    made = Service(dwell_s=float("0"), modes=(Mode.ENTER, Mode.LEAVE))
    loaded = msgspec.json.decode(b"{}", type=Service)
    assert made == loaded
    one, other = (FullPlan(1, {"a": PlanItem("a", Const(True), service)}) for service in (made, loaded))
    assert etag(one) == etag(other)


def test_unchanged_items_are_not_sent_again():
    old = FullPlan(1, {"a": PlanItem("a", Const(True)), "b": PlanItem("b", Const(True))})
    new = FullPlan(1, {"a": PlanItem("a", Const(True), state=OnceState(True, 9)), "c": PlanItem("c", Const(False))})
    message = difference(old, new, lease_s=60)
    assert [item.handle for item in message.items] == ["c"]
    assert message.drop == ("b",)
    assert not message.full


def test_a_new_generation_is_said_in_full():
    same = {"a": PlanItem("a", Const(True))}
    message = difference(FullPlan(1, same), FullPlan(2, same), lease_s=60, newest=5)
    assert message.full
    assert message.newest == 5


def test_the_devices_own_state_stands_unless_the_plan_knows_of_more_edges():
    old = FullPlan(1, {"a": PlanItem("a", Const(True)), "b": PlanItem("b", Const(True))})
    own = {"a": OnceState(True, 5), "b": OnceState(True, 5)}
    message = Plan(1, "e", True, 60, (
        PlanItem("a", Const(True), state=OnceState(False, 4)), PlanItem("b", Const(True), state=OnceState(False, 6)),
    ))  # fmt: skip
    assert merged_states(message, old, own) == {"a": OnceState(True, 5), "b": OnceState(False, 6)}


def test_a_paused_binding_goes_on_counting_where_it_was():
    old = FullPlan(1, {"a": PlanItem("a", Const(True))})
    own = {"a": OnceState(True, 5, since=3, visit=5)}
    paused = merged_states(Plan(1, "e", False, 60, drop=("a",)), old, own)
    resumed = Plan(1, "f", False, 60, (PlanItem("a", Const(True), state=OnceState(True, 5)),))
    assert merged_states(resumed, FullPlan(1), paused) == own


def test_a_dwell_ends_with_its_condition_and_survives_the_same_one():
    old = FullPlan(1, {"a": PlanItem("a", Const(True), Service(dwell_s=5))})
    own = {"a": OnceState(n=2, pending=100)}
    again = Plan(1, "e", True, 60, (PlanItem("a", Const(True), Service(dwell_s=5)),))
    edited = Plan(1, "e", False, 60, (PlanItem("a", Const(False), Service(dwell_s=5)),))
    dropped = Plan(1, "e", True, 60)
    assert merged_states(again, old, own) == own
    assert merged_states(edited, old, own) == {"a": OnceState(n=2)}
    assert merged_states(dropped, old, own) == {"a": OnceState(n=2)}


def test_a_new_generation_forgets_every_earlier_state():
    old = FullPlan(1, {"a": PlanItem("a", Const(True))})
    own = {"a": OnceState(True, 9), "gone": OnceState(True, 1)}
    message = Plan(2, "e", True, 60, (PlanItem("a", Const(True), state=OnceState(False, 2)),))
    assert merged_states(message, old, own) == {"a": OnceState(False, 2)}


def test_a_fix_still_holds_after_the_end_of_a_dwell_and_a_new_plan():
    """The second enter lost its place, because the first one had made `newest` later than the fix."""
    short, long = (PlanItem(key, Const(True), Service(dwell_s=dwell)) for key, dwell in (("a", 1), ("b", 2)))
    device = Evaluator().with_plan(Plan(1, "e", True, 60, (short, long)))
    device.accept(device.fix(Event(ts=1000, loc=(5.0, 6.0))))
    device.accept(device.advance(2000))
    for newest in (None, 1500, 2000):
        changed = device.with_plan(Plan(1, "f", False, 60, (PlanItem("c", Const(True)),), newest=newest))
        (happening,) = changed.advance(3000).edges
        assert (happening.key, happening.edge.ts, happening.event.loc) == ("b", 3000, (5.0, 6.0))


def test_a_fix_no_longer_holds_when_the_server_has_seen_a_later_one():
    device = Evaluator().with_plan(Plan(1, "e", True, 60, (PlanItem("a", Const(True), Service(dwell_s=1)),)))
    device.accept(device.fix(Event(ts=1000, loc=(5.0, 6.0))))
    changed = device.with_plan(Plan(1, "f", False, 60, newest=1001))
    assert [happening.event.loc for happening in changed.advance(3000).edges] == [None]
    assert changed.fix(Event(ts=1001)).late
