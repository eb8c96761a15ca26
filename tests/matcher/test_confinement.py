"""A condition that holds does so in one of the zones it is confined to."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from matcher.confinement import zones_around
from matcher.events import Event
from matcher.selector.tree import And, Compare, CompareOp, Const, InZones, Literal, Name, Not, Or
from matcher.selector.truth import truth

FAST = Compare(CompareOp.GT, Name("speed"), Literal(3))
ZONES = ("a", "b", "c", "d")


class Inside:
    """The object is in these zones, whatever its point."""

    def __init__(self, zones: frozenset[str]) -> None:
        self.zones = zones

    def covers(self, zone: str, point: object) -> bool:
        return zone in self.zones


def draw(rng: Random, depth: int = 3):
    kind = rng.randrange(6) if depth else rng.randrange(3)
    if kind == 0:
        return InZones(tuple(rng.sample(ZONES, rng.randrange(3))))
    if kind == 1:
        return FAST
    if kind == 2:
        return Const(rng.choice([True, False, None]))
    if kind == 3:
        return Not(draw(rng, depth - 1))
    items = tuple(draw(rng, depth - 1) for _ in range(rng.randrange(1, 4)))
    return And(items) if kind == 4 else Or(items)


@given(st.randoms(use_true_random=False))
def test_outside_of_its_zones_no_condition_holds(rng: Random) -> None:
    condition = draw(rng)
    around = zones_around(condition)
    inside = frozenset(rng.sample(ZONES, rng.randrange(len(ZONES) + 1)))
    event = Event(0, (0.0, 0.0), pairs=rng.choice([{}, {"speed": 2}, {"speed": 4}]))
    if around is not None and truth(condition, event, Inside(inside)):
        assert around & inside


def test_what_else_a_filter_asks_leaves_its_zone_as_it_is() -> None:
    assert zones_around(And((FAST, InZones(("a",)), InZones(("a", "b"))))) == frozenset("a")


def test_alternatives_are_confined_if_all_of_them_are() -> None:
    assert zones_around(Or((InZones(("a",)), And((FAST, InZones(("b",))))))) == frozenset("ab")
    assert zones_around(Or((InZones(("a",)), FAST))) is None


def test_not_in_a_zone_is_anywhere() -> None:
    assert zones_around(Not(InZones(("a",)))) is None


def test_what_never_holds_is_confined_to_nowhere() -> None:
    assert zones_around(Const(False)) == frozenset()
    assert zones_around(Const(None)) is None
