"""No event, no edge: edits, pauses, grants and deletions tell nobody anything, and meet the next event the same way
on both paths."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_sdk.protocol.codec import JSON, MSGPACK
from matcher.once import Mode, interrupted
from privacy.policies import Operation
from server.pubsub.entries import BindingKey
from server.pubsub.identifiers import notification_id
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.drawing import ORIGINS, TAGS, Fix, fences, fixes, moves, selectors, services, shapes
from tests.agreement.harness import ALL, Phone, Site, Template
from tests.agreement.plain import Plain, readable
from tests.agreement.test_agreement import LONG_LEASE_S, SUBSCRIBERS, by_binding
from zones.errors import FencepostError

ZONES = ("SYSTEM.a", "SYSTEM.b", "SYSTEM.c")
WHO = {"s0": "bob", "s1": "bob", "s2": "alice"}
MODES = {Operation.ENTER: Mode.ENTER, Operation.LEAVE: Mode.LEAVE, Operation.POSITION: Mode.MATCH}
FIGURES: Counter[str] = Counter()

relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


@st.composite
def edits(draw: st.DrawFn, origin: tuple[float, float], *, at_boundary: bool = False) -> tuple[Any, ...]:
    kind = draw(st.sampled_from(["zone", "no zone", "subscribe", "again", "pause", "pause", "unsubscribe", "grant"]))
    if kind == "zone":
        tags = tuple(sorted(draw(st.sets(st.sampled_from(TAGS)))))
        return kind, draw(st.sampled_from(ZONES)), draw(shapes(origin)), tags
    if kind == "no zone":
        return kind, draw(st.sampled_from(ZONES))
    if kind == "grant":
        return kind, draw(st.sampled_from([(), ALL, ALL, ALL, (Operation.ENTER,), (Operation.ENTER, Operation.LEAVE)]))
    name = draw(st.sampled_from(sorted(WHO)))
    if kind == "subscribe" and at_boundary:
        return kind, draw(fences(name, ZONES))
    if kind == "subscribe":
        selector = draw(selectors(origin, ZONES, inline=WHO[name] == "alice"))
        return kind, draw(services(name, selector))
    return kind, name


@st.composite
def histories(draw: st.DrawFn, max_steps: int = 16, *, at_boundary: bool = False) -> tuple[Any, ...]:
    origin = draw(st.sampled_from(ORIGINS))
    begin: list[Any] = [("zone", name, draw(shapes(origin)), (tag,)) for name, tag in zip(ZONES, TAGS, strict=False)]
    begin.append(("grant", ALL))
    for name in draw(st.sampled_from([("s0",), ("s0", "s1"), ("s0", "s2")])):
        if at_boundary:
            begin.append(("subscribe", draw(fences(name, ZONES[:2]))))
        else:
            begin.append(("subscribe", draw(services(name, draw(selectors(origin, ZONES[:2], inline=False))))))
    fix = moves(origin) if at_boundary else fixes(origin)
    times = st.tuples(st.just("time"), st.sampled_from([1, 499, 1000, 5000, 61_000]))
    accidents = st.sampled_from([("connect",), ("reopen",), ("restart",)])
    edit = edits(origin, at_boundary=at_boundary)
    step = st.one_of(*[fix] * (7 if at_boundary else 3), times, edit, edit, accidents)
    return (*begin, *draw(st.lists(step, min_size=10 if at_boundary else 6, max_size=max_steps)))


class Pair:
    """The same history on the server's path, on the device's and in plain words."""

    def __init__(self, server: Site, remote: Site, phone: Phone) -> None:
        self.server, self.remote, self.phone = server, remote, phone
        self.plain = Plain(clock=server.clock, granted=frozenset())
        self.newest: int | None = None

    def go(self, step: Any) -> None:
        if isinstance(step, Fix):
            self._fix(step)
        elif step[0] == "time":
            for site in (self.server, self.remote):
                site.clock.now += step[1]
            self.plain.let_time_pass(self.server.clock.now)
            self.server.let_time_pass()
            self.phone.let_time_pass()
        elif step[0] in ("connect", "reopen", "restart"):
            if step[0] == "reopen":
                self.server.reopen()
                self.remote.reopen()
            elif step[0] == "restart":
                self.phone.restart()
            self.phone.connect()
        else:
            before = self._counts()
            self._edit(*step)
            self.phone.talk()
            assert self._counts() == before, "an edit told somebody something"

    def _fix(self, step: Fix) -> None:
        fix = step.event(self.newest)
        self.newest = fix.ts if self.newest is None else max(self.newest, fix.ts)
        self.server.clock.reach(fix.ts)
        self.remote.clock.reach(fix.ts)
        news = [self.plain.event(fix), bool(self.server.publish(fix)), self.phone.fix(fix)]
        assert len(set(news)) == 1, news

    def edit_one(self, step: Any) -> None:
        """The same for one site, with no plain words to keep up."""
        before = len(self.server.told())
        self._edit(*step)
        assert len(self.server.told()) == before, "an edit told somebody something"

    def _edit(self, kind: str, what: Any, *rest: Any) -> None:
        plain = self.plain
        if kind == "zone":
            plain.put_zone(what, *rest)
            self._both(lambda site: site.put_zone(what, *rest))
        elif kind == "no zone":
            if self._both(lambda site: site.delete_zone(what)):
                plain.delete_zone(what)
        elif kind == "grant":
            plain.grant(frozenset(MODES[operation] for operation in what))
            self._both(lambda site: site.grant(what) if what else site.ungrant())
        elif kind == "unsubscribe":
            if self._both(lambda site: site.unsubscribe(what, WHO[what])):
                plain.unsubscribe(what)
        elif kind == "subscribe":
            self._subscribe(what)
        elif what in plain.subscriptions:
            old = plain.subscriptions[what].new
            change = {"paused": not old.paused} if kind == "pause" else {"purpose": old.purpose + "x"}
            self._subscribe(msgspec.structs.replace(old, **change))

    def _subscribe(self, new: NewSubscription) -> None:
        who = WHO[new.name]
        if self._both(lambda site: site.subscribe(new, who)):
            self.plain.subscribe(new, who)

    def _both(self, do: Any) -> bool:
        """Whether it was done, which is the same on both."""
        codes = []
        for site in dict.fromkeys((self.server, self.remote)):
            try:
                do(site)
            except FencepostError as error:
                codes.append(error.code)
        assert codes in ([], codes[:1] * 2) or self.server is self.remote
        return not codes

    def _counts(self) -> list[int]:
        return [len(site.told(who)) for site in (self.server, self.remote) for who in SUBSCRIBERS]

    def check(self) -> None:
        self.phone.drain()
        for site in (self.server, self.remote):
            site.grant()  # what was withdrawn can be read again
        for who in SUBSCRIBERS:
            here, there = self.server.told(who), self.remote.told(who)
            wanted = {key: found for key, found in self.plain.told.items() if WHO[key[0]] == who}
            assert readable(here) == wanted
            assert by_binding(there) == by_binding(here)
            FIGURES["notifications"] += len(here)
        assert settled(self.remote) == settled(self.server)
        FIGURES["examples"] += 1


def settled(site: Site) -> dict[Any, Any]:
    """Every state that is kept, but for dwells and what counts as inside, which the server does not hear of."""
    states = {key: interrupted(state) for key, state in site.node.world.states.items()}
    return {key: state for key, state in states.items() if state.n}


def check(template: Template, history: tuple[Any, ...], is_text: bool) -> None:
    with (
        Site(template, lease_s=LONG_LEASE_S) as server,
        Site(template, lease_s=LONG_LEASE_S) as remote,
        Phone(remote, remote.enrol(), JSON if is_text else MSGPACK) as phone,
    ):
        phone.connect()
        if is_text:
            server.node.start_engine()  # which must not change anything
        pair = Pair(server, remote, phone)
        for step in history:
            pair.go(step)
        pair.check()


@pytest.mark.slow
@given(history=histories(), is_text=st.booleans())
@settings(relaxed, max_examples=100)
def test_an_edit_tells_nobody_and_meets_the_next_event(
    template: Template, history: tuple[Any, ...], is_text: bool
) -> None:
    check(template, history, is_text)


@pytest.mark.slow
@given(history=histories(at_boundary=True), is_text=st.booleans())
@settings(relaxed, max_examples=100)
def test_an_edit_meets_the_next_event_at_the_boundary_too(
    template: Template, history: tuple[Any, ...], is_text: bool
) -> None:
    check(template, history, is_text)


@st.composite
def absences(draw: st.DrawFn, max_steps: int = 20) -> tuple[Any, ...]:
    """Edits of subscriptions with `once` and both modes, while the device is away half of the time."""
    origin = draw(st.sampled_from(ORIGINS))
    service = st.builds(
        NewSubscription,
        st.sampled_from(["s0", "s1"]),
        selectors(origin, ZONES[:2], inline=False),
        dwell_s=st.sampled_from([0.0, 0.0, 0.0, 1.0, 5.0]),
    )
    begin: list[Any] = [("zone", name, draw(shapes(origin)), (tag,)) for name, tag in zip(ZONES, TAGS, strict=False)]
    begin += [("grant", ALL), ("subscribe", draw(service))]
    fix, other = fixes(origin, late=False), edits(origin).filter(lambda edit: edit[0] != "subscribe")
    subscribe = st.tuples(st.just("subscribe"), service)
    life = st.sampled_from([("cut",), ("connect",), ("restart",), ("reopen",), ("time", 5000)])
    loss = st.tuples(st.just("connect"), st.integers(0, 6))
    step = st.one_of(fix, fix, fix, other, subscribe, life, life, loss)
    return (*begin, *draw(st.lists(step, min_size=6, max_size=max_steps)))


def check_absences(template: Template, history: tuple[Any, ...]) -> None:
    """An absent device decides by what it knew, so the server's path may tell other edges; these alternate as well."""
    with Site(template, lease_s=LONG_LEASE_S) as site, Phone(site, site.enrol()) as phone:
        phone.connect()
        pair = Pair(site, site, phone)
        newest = None
        for step in history:
            if isinstance(step, Fix):
                fix = step.event(newest)
                newest = fix.ts
                site.clock.reach(fix.ts)
                phone.fix(fix)
            elif step[0] == "time":
                site.clock.now += step[1]
                phone.let_time_pass()
            elif step[0] in ("cut", "connect", "reopen", "restart"):
                if step[0] == "reopen":
                    site.reopen()
                elif step[0] == "restart":
                    phone.restart()
                elif step[0] == "cut":
                    phone.disconnect()
                else:
                    phone.connect(*step[1:])
                phone.talk()
            else:
                pair.edit_one(step)
                phone.talk()
        site.grant()
        phone.drain()
        check_alternation(site, history)
        assert "protocol_violation" not in phone.byes
        FIGURES["absences"] += 1


def edits_of(history: tuple[Any, ...]) -> list[Any]:
    return [step for step in history if not isinstance(step, Fix)]


def check_alternation(site: Site, history: tuple[Any, ...]) -> None:
    """Per binding: enter, leave of that enter, enter, ... with rising numbers, whatever was deleted since."""
    world = site.node.world
    # Which binding and n an id is of is found by trying those that can be: their ids count up with the steps.
    subscriptions = range(1, 1 + sum(step[0] == "subscribe" for step in edits_of(history)))
    zones = range(1, 1 + sum(step[0] == "zone" for step in edits_of(history)))
    known = {
        notification_id(world.secret, key, n): (key, n)
        for key in (BindingKey(one, 1, target) for one in subscriptions for target in ["", *map(str, zones)])
        for n in range(1, len(history))
    }
    told: dict[BindingKey, list[tuple[int, dict[str, Any]]]] = {}
    for each in site.told():
        key, n = known[each["id"]]
        told.setdefault(key, []).append((n, each))
    for edges in told.values():
        assert [n for n, _ in edges] == sorted({n for n, _ in edges})
        assert [each["mode"] for _, each in edges] == [("enter", "leave")[i % 2] for i in range(len(edges))]
        for (_, enter), (_, leave) in zip(edges[::2], edges[1::2], strict=False):
            assert leave["visit"] == enter["id"]


@pytest.mark.slow
@given(history=absences())
@settings(relaxed, max_examples=100)
def test_edges_alternate_when_the_device_was_away_during_edits(template: Template, history: tuple[Any, ...]) -> None:
    check_absences(template, history)


@pytest.mark.slow
@given(history=histories(), is_text=st.booleans())
@settings(relaxed, max_examples=20)
def test_an_edit_tells_nobody_and_meets_the_next_event_on_postgis(
    postgis_template: Template, history: tuple[Any, ...], is_text: bool
) -> None:
    check(postgis_template, history, is_text)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_edits_at_full_size(template: Template, record_result: Callable[[str, dict[str, Any]], None]) -> None:
    @given(history=histories(max_steps=40), is_text=st.booleans())
    @settings(relaxed, max_examples=4000)
    def hold(history: tuple[Any, ...], is_text: bool) -> None:
        check(template, history, is_text)

    @given(history=histories(max_steps=40, at_boundary=True), is_text=st.booleans())
    @settings(relaxed, max_examples=2000)
    def hold_at_boundary(history: tuple[Any, ...], is_text: bool) -> None:
        check(template, history, is_text)

    @given(history=absences(max_steps=40))
    @settings(relaxed, max_examples=2000)
    def hold_absences(history: tuple[Any, ...]) -> None:
        check_absences(template, history)

    FIGURES.clear()
    hold()
    hold_at_boundary()
    hold_absences()
    record_result("agreement_edits", dict(FIGURES))
