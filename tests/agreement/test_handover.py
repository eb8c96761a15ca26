"""One evaluator at a time: devices come, go, are wiped and replaced, and the edges of a binding stay one sequence.

The reference knows the rule that makes this so: the server has taken the first n edges of a binding, whoever
evaluates next goes on from there, and edges that a lost device never sent are found anew from the next event. How
many of a device's edges had arrived is the one thing it asks the server.
"""

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_sdk.protocol.codec import JSON, MSGPACK
from matcher.events import Event
from matcher.once import Mode, Tos
from server.errors import ObjectHasAgent
from server.pubsub.identifiers import notification_id
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.drawing import ORIGINS, Fix, at_the_boundary, conditions, fixes, moves, shapes
from tests.agreement.harness import OID, Phone, Site, Template
from tests.agreement.plain import Plain, readable
from zones.shapes import Shape

LEASE_S = 600.0
ZONES = ("SYSTEM.a", "SYSTEM.b")
FIGURES: Counter[str] = Counter()
Book = dict[tuple[str, str], list[tuple[Mode, Event]]]  # the edges of each binding: subscription and target

relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


@dataclass(frozen=True)
class Story:
    shapes: tuple[Shape, ...]
    subscriptions: tuple[NewSubscription, ...]
    steps: tuple[Any, ...]


@st.composite
def stories(draw: st.DrawFn, *, dwells: bool = False, max_steps: int = 24) -> Story:
    origin = draw(st.sampled_from(ORIGINS))
    drawn = tuple(draw(shapes(origin)) for _ in ZONES)
    subscriptions = []
    for number in range(draw(st.integers(1, 3))):
        selector = f"('{OID}') within ({', '.join(draw(st.sampled_from([ZONES, ZONES[:1], ZONES[1:]])))})"
        selector = draw(
            st.sampled_from([selector, selector, f"NOT {selector}", f"{selector} AND {draw(conditions())}"])
        )
        tos = draw(st.sampled_from([Tos.ONCE, Tos.ONCE, Tos.ONCE, Tos.EVERY, Tos.FIRST]))
        modes = draw(st.sampled_from([None, None, (Mode.ENTER,), (Mode.LEAVE,)])) if tos is Tos.ONCE else None
        dwell_s = draw(st.sampled_from([0.0, 1.0, 5.0])) if dwells and tos is not Tos.EVERY else 0.0
        new = NewSubscription(f"s{number}", selector, tos, modes, dwell_s)
        subscriptions.append(draw(at_the_boundary(new)) if dwells else new)
    late = fixes(origin, late=draw(st.booleans()))
    fix = st.one_of(late, moves(origin)) if dwells else late
    life = [
        "arrive",
        "arrive",
        "enrol",
        "revoke",
        "wipe",
        "kill",
        "restart",
        "expire",
        "reopen",
        "cut",
        "connect",
        "connect",
    ]
    other = st.sampled_from([*life, "time"] if dwells else life)
    loss = st.tuples(st.just("connect"), st.integers(0, 5))
    zombie = st.tuples(st.just("zombie"), st.sampled_from(["fix", "connect", "wipe"]))
    steps = draw(st.lists(st.one_of(fix, fix, fix, other, other, loss, zombie), min_size=6, max_size=max_steps))
    arrived = draw(st.sampled_from([(), ("arrive",), ("arrive",)]))
    return Story(drawn, tuple(subscriptions), (*arrived, *steps))


@dataclass
class Scene:
    """A server, the devices that are or were its object's agent, and the edges as they must be."""

    site: Site
    codec: Any
    truth: Plain
    taken: Book
    phones: list[Phone] = field(default_factory=list)
    forks: list[tuple[int, Book]] = field(default_factory=list)  # of each phone: its generation and edges
    newest: int | None = None
    last: Event | None = None
    is_followed: bool = True

    @property
    def current(self) -> Phone | None:
        """The phone that was enrolled last, unless it knows that it is revoked."""
        return self.phones[-1] if self.phones and not self.phones[-1].is_revoked else None

    def go(self, step: Any) -> None:
        if isinstance(step, Fix):
            self._fix(step)
        elif step[0] == "zombie":
            self._zombie(step[1])
        elif step in ("enrol", "arrive"):
            self.phones.append(Phone(self.site, self.site.enrol(), self.codec))
            self.forks.append((0, {}))
            if step == "arrive":
                self.phones[-1].connect()
        elif step == "expire":
            self.site.clock.now += round(LEASE_S * 1000) + 1
        elif step == "reopen":
            self.site.reopen()
        elif step == "time":
            self.site.clock.now += 5000
            self.site.let_time_pass()
            if self.current is not None:
                self.current.let_time_pass()
        elif self.current is not None:
            self._of_phone(self.current, step)
        self._follow()

    def _of_phone(self, phone: Phone, step: Any) -> None:
        if step == "revoke":
            self.site.revoke()
            phone.talk()
            phone.is_revoked = True
        elif step == "cut":
            phone.disconnect()
        elif step == "connect":
            phone.connect()
        elif isinstance(step, tuple):
            phone.connect(lose_after=step[1])
        else:
            getattr(phone, step)()

    def _zombie(self, what: str) -> None:
        """Somebody who has been replaced goes on as if nothing had happened."""
        if len(self.phones) < 2:
            return
        phone = self.phones[-2]
        if what == "fix" and self.last is not None:
            phone.fix(msgspec.structs.replace(self.last, ts=self.last.ts + 1, loc=(0.0, 0.0)))
        elif what == "connect":
            phone.connect()
        elif what == "wipe":
            phone.wipe()

    def _fix(self, step: Fix) -> None:
        fix = step.event(self.newest)
        self.newest = fix.ts if self.newest is None else max(self.newest, fix.ts)
        self.site.clock.reach(fix.ts)
        self.last = fix
        try:
            accepted = self.site.publish(fix)
        except ObjectHasAgent:
            phone = self.phones[-1]
            self._follow()
            if phone.fix(fix):
                self._evaluate(self.forks[-1][1], fix)
        else:
            if accepted:
                self._evaluate(self.taken, fix)

    def _evaluate(self, book: Book, fix: Event) -> None:
        for subscription in self.truth.subscriptions.values():
            for target, binding in self.truth._of(subscription).items():
                edges = book.setdefault((subscription.new.name, target), [])
                truth = self.truth._truth(binding, fix)
                tos = subscription.new.tos
                if truth is None or (tos is Tos.FIRST and edges):
                    continue
                holds = bool(edges) and edges[-1][0] is Mode.ENTER
                if tos is Tos.EVERY:
                    edges += [(Mode.MATCH, fix)] if truth else []
                elif truth is not holds:
                    edges.append((Mode.ENTER if truth else Mode.LEAVE, fix))

    def _follow(self) -> None:
        """What the server has taken of the current device's edges counts; a new generation starts from there."""
        world = self.site.node.world
        entry = world.object(OID)
        if entry is None or not self.phones or not self.is_followed:
            return
        agent = world.agents.get(entry.id)
        is_current = agent is not None and agent.id == self.site.agents[-1]
        generation, book = self.forks[-1]
        held = self.phones[-1].device.generation
        if is_current and generation and generation == entry.generation:
            for key, edges in book.items():
                n, before = self._n(key), self.taken.get(key, [])
                assert len(before) <= n <= len(edges)
                assert edges[: len(before)] == before
                self.taken[key] = edges[:n]
        if held != generation:
            self.forks[-1] = (held, deepcopy(self.taken))

    def _n(self, key: tuple[str, str]) -> int:
        return next((state.n for each, state in self.site.node.world.states.items() if self._named(each) == key), 0)

    def _named(self, key: Any) -> tuple[str, str]:
        """The binding as the plain words know it."""
        world = self.site.node.world
        zone = world.zones.get(key.target)
        target = "" if zone is None else self.truth.zones[str(zone.zone.name)].uid
        return world.subscriptions[key.subscription_id].name, target

    def finish(self) -> None:
        if self.current is not None:
            self.current.drain()
            self._follow()
        assert not any("report_gap" in phone.byes for phone in self.phones)


def begin(site: Site, story: Story, codec: Any) -> Scene:
    plain = Plain()
    site.grant()
    for name, shape in zip(ZONES, story.shapes, strict=True):
        site.put_zone(name, shape)
        plain.put_zone(name, shape)
    for new in story.subscriptions:
        site.subscribe(new)
        plain.subscribe(new, "bob")
    return Scene(site, codec, plain, {})


def check_numbers(site: Site) -> None:
    """The ids told of each binding are those of n = 1, 2, ... in order, and edges alternate."""
    world = site.node.world
    ns = {
        notification_id(world.secret, key, n): (key, n)
        for key, state in world.states.items()
        for n in range(1, state.n + 1)
    }
    lists: dict[Any, list[tuple[int, str]]] = {}
    for each in site.told():
        key, n = ns[each["id"]]
        lists.setdefault(key, []).append((n, each["mode"]))
    for key, found in lists.items():
        service, numbers = world.subscriptions[key.subscription_id].service, [n for n, _ in found]
        assert numbers == sorted(set(numbers))
        if len(service.modes) == 2 or service.tos is not Tos.ONCE:
            assert numbers == list(range(1, world.states[key].n + 1))
        if service.tos is Tos.ONCE:
            assert all(mode == ("enter" if n % 2 else "leave") for n, mode in found)
        FIGURES["notifications"] += len(found)


def check(template: Template, story: Story, codec: Any) -> None:
    with Site(template, lease_s=LEASE_S) as site:
        scene = begin(site, story, codec)
        try:
            for step in story.steps:
                scene.go(step)
            scene.finish()
            expected = Plain(zones=scene.truth.zones, subscriptions=scene.truth.subscriptions)
            for (name, target), edges in scene.taken.items():
                replay(expected, name, target, edges)
            assert readable(site.told()) == expected.told
            check_numbers(site)
        finally:
            for phone in scene.phones:
                phone.__exit__()
        FIGURES["examples"] += 1


def replay(plain: Plain, name: str, target: str, edges: list[tuple[Mode, Event]]) -> None:
    """Tell these edges as the plain words would."""
    binding = plain._of(plain.subscriptions[name])[target]
    state = plain._state(binding)
    for mode, fix in edges:
        if mode is Mode.ENTER:
            plain._enter(binding, fix.ts, fix)
        elif mode is Mode.MATCH:
            plain._tell(binding, mode, fix.ts, fix)
        else:
            duration_s = (fix.ts - state.since) / 1000
            plain._tell(binding, mode, fix.ts, fix, visit=state.visit, duration_s=duration_s)


@pytest.mark.slow
@given(story=stories(), is_text=st.booleans())
@settings(relaxed, max_examples=200)
def test_edges_stay_one_sequence_whoever_evaluates(template: Template, story: Story, is_text: bool) -> None:
    check(template, story, JSON if is_text else MSGPACK)


@pytest.mark.slow
@given(story=stories(dwells=True))
@settings(relaxed, max_examples=60)
def test_edges_alternate_when_dwells_and_dead_bands_are_handed_over(template: Template, story: Story) -> None:
    with Site(template, lease_s=LEASE_S) as site:
        scene = begin(site, story, MSGPACK)
        scene.is_followed = False  # a dwell's progress, and what counts as inside, are the evaluator's alone to know
        try:
            for step in story.steps:
                scene.go(step)
            scene.finish()
            check_numbers(site)
        finally:
            for phone in scene.phones:
                phone.__exit__()


@pytest.mark.slow
@given(story=stories(), is_text=st.booleans())
@settings(relaxed, max_examples=20)
def test_edges_stay_one_sequence_whoever_evaluates_on_postgis(
    postgis_template: Template, story: Story, is_text: bool
) -> None:
    check(postgis_template, story, JSON if is_text else MSGPACK)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_handover_at_full_size(template: Template, record_result: Callable[[str, dict[str, Any]], None]) -> None:
    @given(story=stories(max_steps=60), is_text=st.booleans())
    @settings(relaxed, max_examples=5000)
    def hold(story: Story, is_text: bool) -> None:
        check(template, story, JSON if is_text else MSGPACK)

    FIGURES.clear()
    hold()
    record_result("agreement_handover", dict(FIGURES))
