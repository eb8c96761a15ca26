"""What is compiled for the engine must match whenever the condition is true; it may match more."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.compilation import ALWAYS, compile_condition
from matcher.constraints import matches
from matcher.engine import values_of
from matcher.planar import from_shape
from matcher.selector.binding import bind, bind_anybody
from matcher.selector.mentions import depends_on_object
from matcher.selector.parser import parse_selector
from matcher.selector.truth import truth
from tests.matcher.drawing import draw_event, draw_selector
from tests.matcher.reference import filters
from tests.matcher.test_random_selectors import Directory
from zones.shapes import Rectangle

randoms = st.randoms(use_true_random=False)


@given(randoms)
@settings(max_examples=400)
def test_what_is_true_of_an_object_is_matched_by_what_is_compiled_for_anybody(rng: Random) -> None:
    directory = Directory(rng)
    selector = draw_selector(rng)
    if len(filters(selector)) > 256:
        return
    compiled = {
        bound.target: compile_condition(bound.condition, directory.region)
        for bound in bind_anybody(selector, directory)
    }
    for _ in range(4):
        event = draw_event(rng)
        bounds = bind(selector, event.oid, directory)
        for bound in bounds:
            own = compile_condition(bound.condition, directory.region)
            if truth(bound.condition, event, directory):
                assert matches(own.filters, values_of(event))
                assert matches(compiled[bound.target].filters, values_of(event))
        if not depends_on_object(selector):
            assert bounds == bind_anybody(selector, directory)


class Square:
    """One zone."""

    def __init__(self, west: float) -> None:
        self.west = west

    def resolve(self, ref: object) -> tuple[str, ...]:
        return ("1",)

    def region(self, zone: str):
        return from_shape(Rectangle((self.west, 0.0, self.west + 1, 1.0)))


def compiled(text: str, west: float = 10.0):
    (bound,) = bind_anybody(parse_selector(text), Square(west))
    return compile_condition(bound.condition, Square(west).region)


def test_what_is_compiled_is_simplified_and_says_so() -> None:
    made = compiled("area overlaps (a.b) AND wind > 10 AND wind > 30")
    assert len(made.filters) == 1
    assert len(made.filters[0]) == 2
    assert [each.why for each in made.dropped] == ["wind > 30 says it already."]


@pytest.mark.parametrize(
    "text", ["(*) within (a.b)", "wind + 1 > 2", "NOT wind > 2", "name LIKE 'a_b'", "NOT area overlaps (a.b)"]
)
def test_what_a_constraint_can_not_say_is_left_to_the_condition(text: str) -> None:
    assert compiled(text).filters == ALWAYS


def test_a_zone_at_the_end_of_the_plane_is_left_to_the_condition() -> None:
    assert compiled("area overlaps (a.b)", west=179.0).filters == ALWAYS
    assert not compiled("area overlaps (a.b)", west=178.5).is_always


def test_too_many_filters_become_fewer_that_say_less() -> None:
    names = ", ".join(f"'{number}'" for number in range(20))
    made = compiled(f"area overlaps (a.b) AND a IN ({names}) AND b IN ({names})")
    assert 0 < len(made.filters) <= 256
    assert not made.is_always
