"""What has to hold for one selector, drawn at random or broken at random; the tests differ in how many they try."""

import time
from functools import cache
from random import Random

import msgspec
import pytest

from matcher.errors import SelectorError, SelectorNotSupported, SelectorTooComplex, SelectorTooLong
from matcher.events import Event, Region
from matcher.planar import Box, PlanarRegion, from_shape
from matcher.relations import relate
from matcher.selector import tree as t
from matcher.selector.binding import Bound, bind
from matcher.selector.format import format_selector, format_zone_ref
from matcher.selector.mentions import inline_zones, named_oids
from matcher.selector.parser import parse_selector
from matcher.selector.truth import truth
from tests.matcher.drawing import OIDS, PLACES, REFS, draw_box, draw_event, draw_selector
from tests.matcher.mutations import mutate
from tests.matcher.reference import Others, World, anchor_of, evaluate, filters, is_too_complex, speaks_of, targets_of
from tests.matcher.spelling import spell
from tests.support.places import Covering
from zones.shapes import Rectangle, Shape

__all__ = ["Answer", "Directory", "answer_to", "check_text", "check_truth", "draw_broken"]


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
        self.distances: Others = {oid: rng.choice((None, 0.2, 499.0, 500.0, 2e6)) for oid in OIDS if rng.randrange(4)}
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

    def other(self, oid: str) -> str | None:
        return next((each for each in self.distances if each.lower() == oid.lower()), None)

    def others(self) -> tuple[str, ...]:
        return tuple(self.distances)

    def is_near(self, others: tuple[str, ...], metres: float) -> bool | None:
        known = [self.distances[oid] for oid in others]
        return any_of([None if distance is None else distance < metres for distance in known])


def any_of(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def check_text(rng: Random, selector: t.Selector) -> None:
    """However it is written it is the same selector, and what is made of it is always the same text."""
    text = format_selector(selector)
    if is_too_complex(filters(selector)):
        for each in (text, spell(rng, selector)):
            with pytest.raises(SelectorTooComplex):
                parse_selector(each)
        return
    for each in (text, spell(rng, selector)):
        parsed = parse_selector(each)
        assert parsed == selector, each
        assert format_selector(parsed) == text, each


def check_truth(rng: Random, selector: t.Selector, directory: Directory) -> bool | None:
    """Its bindings hold for an event when the plain reference says so; what the reference says of the selector."""
    event = draw_event(rng)
    written_out = filters(selector)
    if is_too_complex(written_out):
        with pytest.raises(SelectorTooComplex):
            bind(selector, event.oid, directory, directory)
        return evaluate(selector, event, directory.world, others=directory.distances)
    bounds = bind(selector, event.oid, directory, directory)
    got = {bound.target: truth(bound.condition, event, directory) for bound in bounds}
    plain = evaluate(selector, event, directory.world, others=directory.distances)

    # Each binding is the OR of the filters that speak of the object and are anchored at its target.
    wanted: dict[str, list[bool | None]] = {}
    for terms in written_out:
        if speaks_of(terms, event.oid):
            anchor = anchor_of(terms)
            signed = [t.Not(node) if negated else node for node, negated in terms]
            for target in dict.fromkeys(targets_of(anchor, event.oid, directory.world, directory.distances)):
                together = t.And(tuple(signed))
                value = evaluate(together, event, directory.world, target or None, anchor, directory.distances)
                wanted.setdefault(target, []).append(value)
    for target, values in wanted.items():
        assert got.pop(target) == any_of(values), target
    assert got == {}

    # No binding holds unless the selector does, and all together they are the selector, unless it says of objects
    # that it does not name where they are not, or names objects that are not there.
    over_all = any_of([truth(bound.condition, event, directory) for bound in bounds])
    assert over_all is not True or plain is True
    if all(speaks_of(terms, event.oid) or anchor_of(terms) for terms in written_out):
        absent = [oid for oid in named_oids(selector) if directory.other(oid) is None]
        assert over_all == plain or absent

    # A device does not know its oid, gets the conditions over the wire, and comes to the same.
    sent = msgspec.json.decode(msgspec.json.encode(bounds), type=tuple[Bound, ...])
    assert sent == bounds
    nameless = msgspec.structs.replace(event, oid="")
    assert any_of([truth(bound.condition, nameless, directory) for bound in sent]) == over_all
    return plain


class Answer(msgspec.Struct):
    """What came of a text that may be no selector; `cpu_s` is what it took to say so."""

    outcome: str
    cpu_s: float


_LONG_TEXT = "a" * 16_000  # as long as an event's may be


class Everywhere(Covering):
    """Every zone covers every point, has a region of its own, and everybody is near."""

    @cache  # noqa: B019 - there is one, for as long as the tests run
    def region(self, zone: str) -> PlanarRegion:
        return from_shape(_BOX)

    def is_near(self, others: tuple[str, ...], metres: float) -> bool | None:
        return True


_BOX = Rectangle((0.0, 0.0, 2.0, 2.0))
_EVERYWHERE = Everywhere(lambda zone, point: True)


def draw_broken(rng: Random) -> tuple[str, str, Event]:
    """How it was broken, the text, and an event for it if it is a selector still."""
    selector, other = (spell(rng, draw_selector(rng, rng.randrange(1, 4))) for _ in range(2))
    kind, text = mutate(rng, selector, other)
    event = draw_event(rng, OIDS[0])
    if rng.randrange(2):
        event = msgspec.structs.replace(event, pairs=event.pairs | {"a": _LONG_TEXT})
    return kind, text, event


def answer_to(text: str, event: Event) -> Answer:
    """Parse it, write it, bind it and evaluate it, or be told what is wrong with it; anything else is a failure."""
    parse_selector.cache_clear()
    for value in event.pairs.values():
        if isinstance(value, Region):
            value.related.clear()
    began = time.process_time()
    try:
        selector = parse_selector(text)
        formatted = format_selector(selector)
        bounds = bind(selector, event.oid, Anywhere())
        values = [truth(bound.condition, event, _EVERYWHERE) for bound in bounds]
    except SelectorError as error:
        cpu_s = time.process_time() - began
        check_refusal(error, text)
        return Answer(error.code, cpu_s)
    cpu_s = time.process_time() - began
    assert set(values) <= {True, False, None}
    check_reading(formatted, selector)
    return Answer("taken", cpu_s)


def check_reading(formatted: str, selector: t.Selector) -> None:
    if len(formatted.encode()) <= 8192:
        assert parse_selector(formatted) == selector
    else:  # spaces and digits written out make it longer
        with pytest.raises(SelectorTooLong):
            parse_selector(formatted)


def check_refusal(error: SelectorError, text: str) -> None:
    """A sentence and a hint of a readable length, and a place in the text."""
    if isinstance(error, SelectorNotSupported):
        return
    assert error.sentence.endswith("."), error.sentence
    assert len(error.sentence) < 1000, error.sentence
    assert error.sentence.isprintable(), error.sentence
    assert "Token(" not in error.sentence
    assert error.hint, error.sentence
    if error.code in ("selector_invalid", "selector_too_deep"):
        assert 1 <= error.details["column"] <= len(text) + 1, error.sentence


class Anywhere:
    """Every reference names one zone of its own."""

    def resolve(self, ref: t.NamedZone | t.ZoneSet | t.ZoneTag) -> tuple[str, ...]:
        return (format_zone_ref(ref),)
