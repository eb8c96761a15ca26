"""No event, no edge: edits, pauses, grants and deletions tell nobody anything, and meet the next event the same way
on both paths."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_sdk.protocol.codec import JSON, MSGPACK
from matcher.once import Mode
from privacy.policies import Operation
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.drawing import ORIGINS, TAGS, Fix, fixes, selectors, services, shapes
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
def edits(draw: st.DrawFn, origin: tuple[float, float]) -> tuple[Any, ...]:
    kind = draw(st.sampled_from(["zone", "no zone", "subscribe", "again", "pause", "pause", "unsubscribe", "grant"]))
    if kind == "zone":
        tags = tuple(sorted(draw(st.sets(st.sampled_from(TAGS)))))
        return kind, draw(st.sampled_from(ZONES)), draw(shapes(origin)), tags
    if kind == "no zone":
        return kind, draw(st.sampled_from(ZONES))
    if kind == "grant":
        return kind, draw(st.sampled_from([(), ALL, ALL, ALL, (Operation.ENTER,), (Operation.ENTER, Operation.LEAVE)]))
    name = draw(st.sampled_from(sorted(WHO)))
    if kind == "subscribe":
        selector = draw(selectors(origin, ZONES, inline=WHO[name] == "alice"))
        return kind, draw(services(name, selector))
    return kind, name


@st.composite
def histories(draw: st.DrawFn, max_steps: int = 16) -> tuple[Any, ...]:
    origin = draw(st.sampled_from(ORIGINS))
    begin: list[Any] = [("zone", name, draw(shapes(origin)), (tag,)) for name, tag in zip(ZONES, TAGS, strict=False)]
    begin.append(("grant", ALL))
    for name in draw(st.sampled_from([("s0",), ("s0", "s1"), ("s0", "s2")])):
        begin.append(("subscribe", draw(services(name, draw(selectors(origin, ZONES[:2], inline=False))))))
    fix = fixes(origin)
    times = st.tuples(st.just("time"), st.sampled_from([1, 499, 1000, 5000, 61_000]))
    accidents = st.sampled_from([("connect",), ("reopen",), ("restart",)])
    step = st.one_of(fix, fix, fix, times, edits(origin), edits(origin), accidents)
    return (*begin, *draw(st.lists(step, min_size=6, max_size=max_steps)))


class Pair:
    """The same history on the server's path, on the device's and in plain words."""

    def __init__(self, server: Site, remote: Site, phone: Phone) -> None:
        self.server, self.remote, self.phone = server, remote, phone
        self.plain = Plain()
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
        for site in (self.server, self.remote):
            try:
                do(site)
            except FencepostError as error:
                codes.append(error.code)
        assert codes in ([], codes[:1] * 2)
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
    """Every state that is kept, but for dwells, which the server does not hear of."""
    states = {key: msgspec.structs.replace(state, pending=None) for key, state in site.node.world.states.items()}
    return {key: state for key, state in states.items() if state.n}


def check(template: Template, history: tuple[Any, ...], is_text: bool) -> None:
    with (
        Site(template, lease_s=LONG_LEASE_S) as server,
        Site(template, lease_s=LONG_LEASE_S) as remote,
        Phone(remote, remote.enrol(), JSON if is_text else MSGPACK) as phone,
    ):
        phone.connect()
        pair = Pair(server, remote, phone)
        for step in history:
            pair.go(step)
        pair.check()


@given(history=histories(), is_text=st.booleans())
@settings(relaxed, max_examples=250)
def test_an_edit_tells_nobody_and_meets_the_next_event(
    template: Template, history: tuple[Any, ...], is_text: bool
) -> None:
    check(template, history, is_text)


@pytest.mark.slow
@given(history=histories(), is_text=st.booleans())
@settings(relaxed, max_examples=20)
def test_an_edit_tells_nobody_and_meets_the_next_event_on_postgis(
    postgis_template: Template, history: tuple[Any, ...], is_text: bool
) -> None:
    check(postgis_template, history, is_text)
