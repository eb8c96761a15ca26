"""What holds for every selector: text and tree agree, truth agrees with a plain reference, bindings with both."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.selector.binding import bind
from matcher.selector.mentions import named_oids, subjects, zone_refs
from tests.matcher.drawing import OIDS, draw_selector
from tests.matcher.selector_checks import Directory, answer_to, check_text, check_truth, draw_broken
from zones.names import fold

randoms = st.randoms(use_true_random=False)


@given(randoms)
@settings(max_examples=200)
def test_text_made_from_a_tree_gives_the_tree(rng: Random) -> None:
    check_text(rng, draw_selector(rng))


@given(randoms)
@settings(max_examples=200)
def test_bindings_hold_when_a_plain_reference_says_so(rng: Random) -> None:
    check_truth(rng, draw_selector(rng), Directory(rng))


@given(randoms)
def test_bindings_are_only_of_subjects_and_zones_that_are_named(rng: Random) -> None:
    directory = Directory(rng)
    selector = draw_selector(rng, depth=2)
    meant = subjects(selector)
    targets = {key for ref in zone_refs(selector) for key in directory.world[ref]} | set(directory.others())
    for oid in OIDS:
        bounds = bind(selector, oid, directory, directory)
        assert bind(selector, oid, directory, directory) == bounds
        assert {bound.target for bound in bounds} <= targets | {""}
        assert not bounds or meant is None or fold(oid) in meant
    if meant is not None:
        assert meant <= {fold(oid) for oid in named_oids(selector)}


@given(randoms)
@settings(max_examples=200)
def test_a_broken_selector_is_refused_with_a_sentence(rng: Random) -> None:
    _, text, event = draw_broken(rng)
    answer_to(text, event)
