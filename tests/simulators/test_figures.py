"""What the demo counts, and that it would notice if something were lost, doubled or made up."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from agent_sdk.protocol.counts import Counts
from matcher.once import Mode
from simulators.demo.city import city_zones
from simulators.demo.figures import Edge, Traffic, Witness, describe_savings, disagreement
from zones.shapes import Circle, Rectangle

_ENTER = Edge("acme/van1", "SYSTEM.Xidan", Mode.ENTER)
_LEAVE = Edge("acme/van1", "SYSTEM.Xidan", Mode.LEAVE)
_SQUARE = Rectangle((0.0, 0.0, 1.0, 1.0))


def test_traffic_is_added_up_over_agents_and_directions() -> None:
    one, other = Counts(), Counts()
    for kind in ("hello", "report", "report", "renew"):
        one.add_sent(kind, 10)
    for kind in ("welcome", "plan", "ack", "ack", "lease", "notify"):
        one.add_received(kind, 10)
    other.add_sent("report", 5)
    other.add_received("plan", 5)
    traffic = Traffic.of([one, other])
    assert traffic == Traffic(reports=3, plans=2, greetings=2, acks=2, leases=2)
    assert traffic.messages_sent == 5


def test_savings_are_the_share_that_need_not_be_sent() -> None:
    assert Traffic(reports=15, plans=10).savings(100) == 0.75
    assert Traffic(reports=15, plans=10).savings(20) == -0.25
    assert Traffic().savings(0) == 0.0
    assert [describe_savings(share) for share in (0.75, 0.0, -0.25)] == [
        "75.0% saved",
        "0.0% saved",
        "nothing saved yet",
    ]


def test_the_witness_sees_edges_and_nothing_in_between() -> None:
    witness = Witness({"SYSTEM.Square": _SQUARE})
    for lon in (5.0, 0.5, 0.6, 1.0, 1.1, 2.0, 0.0):  # 1.0 and 0.0 are on the boundary, which counts
        witness.see("a", (lon, 0.5))
    assert witness.edges == {Edge("a", "SYSTEM.Square", Mode.ENTER): 2, Edge("a", "SYSTEM.Square", Mode.LEAVE): 1}


def test_the_witness_keeps_objects_and_zones_apart() -> None:
    witness = Witness({"A": _SQUARE, "B": Circle((10.0, 10.0), 1000.0)})
    witness.see("x", (0.5, 0.5))
    witness.see("y", (10.0, 10.0))
    witness.see("x", (10.0, 10.0))
    assert witness.edges == {
        Edge("x", "A", Mode.ENTER): 1,
        Edge("y", "B", Mode.ENTER): 1,
        Edge("x", "A", Mode.LEAVE): 1,
        Edge("x", "B", Mode.ENTER): 1,
    }


@given(st.integers(), st.integers(1, 60))
def test_every_place_is_left_as_often_as_entered_or_once_less(seed: int, fixes: int) -> None:
    witness, rng = Witness(city_zones()), random.Random(seed)
    for _ in range(fixes):
        witness.see("a", (rng.uniform(116.35, 116.40), rng.uniform(39.89, 39.925)))
    for name in city_zones():
        enters, leaves = (witness.edges[Edge("a", name, mode)] for mode in (Mode.ENTER, Mode.LEAVE))
        assert enters - leaves in (0, 1)


@given(st.lists(st.sampled_from([_ENTER, _LEAVE]), max_size=6), st.lists(st.sampled_from([_ENTER, _LEAVE]), max_size=6))
def test_only_the_same_edges_agree(happened: list[Edge], heard: list[Edge]) -> None:
    assert (disagreement(Counter(happened), Counter(heard)) is None) == (
        sorted(map(str, happened)) == sorted(map(str, heard))
    )


def test_a_disagreement_says_how_many_and_names_the_first() -> None:
    happened, heard = Counter({_ENTER: 2}), Counter({_LEAVE: 1})
    assert disagreement(happened, heard) == (
        "The subscriber did not hear what happened: 2 missing, the first enter of acme/van1 at SYSTEM.Xidan; "
        "1 too many, the first leave of acme/van1 at SYSTEM.Xidan."
    )
