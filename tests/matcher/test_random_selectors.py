"""What holds for every selector: text and tree agree, truth agrees with a plain reference, bindings with both."""

import time
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.errors import SelectorError, SelectorNotSupported, SelectorTooComplex
from matcher.planar import Box, PlanarRegion, from_shape
from matcher.relations import relate
from matcher.selector import tree as t
from matcher.selector.binding import Bound, bind, inline_zones, named_oids, subjects, zone_refs
from matcher.selector.format import format_selector
from matcher.selector.parser import parse_selector
from matcher.selector.truth import truth
from tests.matcher.drawing import OIDS, PLACES, REFS, draw_box, draw_event, draw_selector
from tests.matcher.reference import World, anchor_of, evaluate, filters, speaks_of
from tests.support.places import Covering
from zones.names import fold
from zones.shapes import Rectangle, Shape

randoms = st.randoms(use_true_random=False)


class Spot:
    """A zone of the tests: some points for `within`, and a box for relations."""

    def __init__(self, rng: Random) -> None:
        self._points = frozenset(rng.sample(PLACES, rng.randrange(6)))
        self.box = draw_box(rng)

    def __contains__(self, point: tuple[float, float]) -> bool:
        return point in self._points

    def relation_of(self, shape: Shape) -> str:
        if not isinstance(shape, Rectangle):
            return str(relate(from_shape(shape), from_shape(self.box)))
        return relation_of_boxes(shape.bbox, self.box.bbox)


def relation_of_boxes(one: Box, other: Box) -> str:
    """By the places of their sides only."""
    (w, s, e, n), (west, south, east, north) = one, other
    if one == other:
        return "equals"
    if e < west or east < w or n < south or north < s:
        return "disjoint"
    if e == west or east == w or n == south or north == s:
        return "meets"
    if west <= w and e <= east and south <= s and n <= north:
        return "inside" if west < w and e < east and south < s and n < north else "covered-by"
    if w <= west and east <= e and s <= south and north <= n:
        return "contains" if w < west and east < e and s < south and north < n else "covers"
    return "overlaps"


class Directory:
    """The same table for the package, by ids, as for the reference."""

    def __init__(self, rng: Random) -> None:
        ids = [str(number) for number in range(1, 6)]
        self.points = {key: Spot(rng) for key in ids}
        self.named = {
            ref: tuple(rng.sample(ids, rng.randrange(4))) for ref in REFS if not isinstance(ref, t.InlineZone)
        }
        self.named[t.NamedZone("mike", "nowhere")] = ()
        self.world: World = {ref: {key: self.points[key] for key in keys} for ref, keys in self.named.items()}
        for ref in REFS:
            if isinstance(ref, t.InlineZone):
                (key,) = inline_zones(t.Within(None, (ref,)))
                self.points[key] = Spot(rng)
                self.world[ref] = {key: self.points[key]}

    def resolve(self, ref: t.NamedZone | t.ZoneSet | t.ZoneTag) -> tuple[str, ...]:
        return self.named[ref]

    def covers(self, zone: str, point: tuple[float, float]) -> bool:
        return point in self.points[zone]

    def region(self, zone: str) -> PlanarRegion:
        return from_shape(self.points[zone].box)


def any_of(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def check_text(rng: Random) -> None:
    selector = draw_selector(rng, all_terms=True)
    text = format_selector(selector)
    try:
        assert parse_selector(text) == selector
    except SelectorTooComplex:
        assert len(filters(selector)) > 256


def check_bindings(rng: Random) -> None:
    directory = Directory(rng)
    selector = draw_selector(rng)
    event = draw_event(rng)
    written_out = filters(selector)
    if len(written_out) > 256:
        with pytest.raises(SelectorTooComplex):
            bind(selector, event.oid, directory)
        return
    bounds = bind(selector, event.oid, directory)
    got = {bound.target: truth(bound.condition, event, directory) for bound in bounds}
    plain = evaluate(selector, event, directory.world)

    # Each binding is the OR of the filters that speak of the object and are anchored at its target.
    wanted: dict[str, list[bool | None]] = {}
    for terms in written_out:
        if speaks_of(terms, event.oid):
            anchor = anchor_of(terms)
            signed = [t.Not(node) if negated else node for node, negated in terms]
            zones = [key for ref in anchor.zones for key in directory.world[ref]] if anchor else [""]
            for target in dict.fromkeys(zones):
                value = evaluate(t.And(tuple(signed)), event, directory.world, target or None, anchor)
                wanted.setdefault(target, []).append(value)
    for target, values in wanted.items():
        assert got.pop(target) == any_of(values), target
    assert got == {}

    # No binding holds unless the selector does, and all together they are the selector, unless it says of objects
    # that it does not name where they are not.
    over_all = any_of([truth(bound.condition, event, directory) for bound in bounds])
    assert over_all is not True or plain is True
    if all(speaks_of(terms, event.oid) or anchor_of(terms) for terms in written_out):
        assert over_all == plain

    # A device does not know its oid, gets the conditions over the wire, and comes to the same.
    sent = msgspec.json.decode(msgspec.json.encode(bounds), type=tuple[Bound, ...])
    assert sent == bounds
    nameless = msgspec.structs.replace(event, oid="")
    assert any_of([truth(bound.condition, nameless, directory) for bound in sent]) == over_all


@given(randoms)
@settings(max_examples=400)
def test_text_made_from_a_tree_gives_the_tree(rng: Random) -> None:
    check_text(rng)


@given(randoms)
@settings(max_examples=400)
def test_bindings_hold_when_a_plain_reference_says_so(rng: Random) -> None:
    check_bindings(rng)


@given(randoms)
def test_bindings_are_only_of_subjects_and_zones_that_are_named(rng: Random) -> None:
    directory = Directory(rng)
    selector = draw_selector(rng, depth=2)
    meant = subjects(selector)
    zones = {key for ref in zone_refs(selector) for key in directory.world[ref]}
    for oid in OIDS:
        bounds = bind(selector, oid, directory)
        assert bind(selector, oid, directory) == bounds
        assert {bound.target for bound in bounds} <= zones | {""}
        assert not bounds or meant is None or fold(oid) in meant
    if meant is not None:
        assert meant <= {fold(oid) for oid in named_oids(selector)}


def mutated(rng: Random, text: str) -> str:
    pieces = [
        "(",
        ")",
        "'",
        ",",
        " AND ",
        " OR ",
        " NOT ",
        "-",
        "*",
        "within",
        "1e",
        "0x",
        "..",
        "POLYGON((",
        "é",
        "\0",
        "\ud800",
    ]
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[at + rng.randrange(1, 4) :]
        elif kind == 1:
            text = text[:at] + rng.choice(pieces) + text[at:]
        elif kind == 2:
            text = text[:at] + text[rng.randrange(len(text) + 1) :]
        elif kind == 3:
            text = text[:at] + rng.choice(pieces) * rng.randrange(1, 400) + text[at:]
        else:
            text = text[:at] + chr(rng.randrange(0x250)) + text[at + 1 :]
    return text


def check_mutation(rng: Random) -> float:
    text = mutated(rng, format_selector(draw_selector(rng, all_terms=True)))
    started = time.process_time()
    selector, error = None, None
    try:
        selector = parse_selector(text)
    except SelectorError as raised:
        error = raised
    if error is not None:
        assert error.sentence.endswith(".")
        assert "Token(" not in error.sentence
        assert 1 <= error.details.get("column", 1) <= len(text) + 1
    else:
        assert parse_selector(format_selector(selector)) == selector
        try:
            bounds = bind(selector, OIDS[0], Anywhere())
        except SelectorNotSupported:
            bounds = ()
        event = draw_event(rng, OIDS[0])
        places = Covering(lambda zone, point: True, Rectangle((0.0, 0.0, 2.0, 2.0)))
        assert all(truth(bound.condition, event, places) in (True, False, None) for bound in bounds)
    return time.process_time() - started


class Anywhere:
    """Every reference names one zone."""

    def resolve(self, ref: t.NamedZone | t.ZoneSet | t.ZoneTag) -> tuple[str, ...]:
        return ("1",)


@given(randoms)
@settings(max_examples=400)
def test_a_broken_selector_is_refused_with_a_sentence(rng: Random) -> None:
    check_mutation(rng)


@pytest.mark.slow
def test_a_million_random_selectors(full_size: bool, record_result) -> None:  # type: ignore[no-untyped-def]
    """The promise is a million of each; the suite tries a part of them, with the same seed."""
    rng, slowest = Random(20260119), 0.0
    rounds = 1_000_000 if full_size else 4_000
    for _ in range(rounds):
        check_text(rng)
        check_bindings(rng)
        slowest = max(slowest, check_mutation(rng))
    record_result("selectors", {"selectors": rounds, "mutated": rounds, "slowest_mutated_s": slowest})
    assert slowest < 0.5 if not full_size else slowest < 0.05
