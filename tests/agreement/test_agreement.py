"""Whoever evaluates, the subscriber reads the same: the server, a device with a bad connection, or plain words."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from agent_sdk.protocol.codec import JSON, MSGPACK
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.drawing import ORIGINS, TAGS, Fix, fences, fixes, moves, selectors, services, shapes
from tests.agreement.harness import Phone, Site, Template
from tests.agreement.plain import Plain, readable
from zones.shapes import Shape

LONG_LEASE_S = 30 * 86_400.0
SUBSCRIBERS = ("bob", "alice")
FIGURES: Counter[str] = Counter()


@dataclass(frozen=True)
class Place:
    name: str
    shape: Shape
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Story:
    """Zones, subscriptions and what happens then: fixes, time, and accidents that only concern the device's path."""

    places: tuple[Place, ...]
    subscriptions: tuple[tuple[str, NewSubscription], ...]
    steps: tuple[Any, ...]
    is_text: bool


@st.composite
def stories(draw: st.DrawFn, *, max_steps: int = 14, at_boundary: bool = False) -> Story:
    origin = draw(st.sampled_from(ORIGINS))
    names = ("SYSTEM.a", "SYSTEM.b", "SYSTEM.c")[: draw(st.integers(1, 3))]
    tags = st.sets(st.sampled_from(TAGS)).map(lambda found: tuple(sorted(found)))
    places = tuple(Place(name, draw(shapes(origin)), draw(tags)) for name in names)
    subscriptions = []
    for number in range(draw(st.integers(1, 3))):
        who = draw(st.sampled_from(SUBSCRIBERS))
        if at_boundary:
            subscriptions.append((who, draw(fences(f"s{number}", names))))
            continue
        selector = draw(selectors(origin, names, inline=who == "alice"))
        subscriptions.append((who, draw(services(f"s{number}", selector))))
    # What a killed device had not written down is that a fix was the newest: late ones would be news to it.
    kills = draw(st.booleans())
    accidents = st.sampled_from(["cut", "connect", "connect", "reopen", "kill" if kills else "restart"])
    losses = st.tuples(st.just("connect"), st.integers(0, 6))
    times = st.tuples(st.just("time"), st.sampled_from([1, 499, 1000, 5000, 61_000]))
    fix = moves(origin) if at_boundary else fixes(origin, late=not kills)
    steps = draw(st.lists(st.one_of(fix, fix, fix, times, accidents, losses), min_size=5, max_size=max_steps))
    return Story(places, tuple(subscriptions), tuple(steps), draw(st.booleans()))


def set_up(site: Site, story: Story) -> None:
    for place in story.places:
        site.put_zone(place.name, place.shape, place.tags)
    site.grant()
    for who, new in story.subscriptions:
        site.subscribe(new, who)


def check(template: Template, story: Story) -> None:
    codec = JSON if story.is_text else MSGPACK
    newest = None
    with Site(template, lease_s=LONG_LEASE_S) as server, Site(template, lease_s=LONG_LEASE_S) as remote:
        plain = Plain(clock=server.clock, granted_since=server.clock())
        for site in (server, remote):
            set_up(site, story)
        for place in story.places:
            plain.put_zone(place.name, place.shape, place.tags)
        for who, new in story.subscriptions:
            plain.subscribe(new, who)
        with Phone(remote, remote.enrol(), codec) as phone:
            phone.connect()
            for step in story.steps:
                if isinstance(step, Fix):
                    fix = step.event(newest)
                    newest = fix.ts if newest is None else max(newest, fix.ts)
                    server.clock.reach(fix.ts)
                    remote.clock.reach(fix.ts)
                    news = [plain.event(fix), bool(server.publish(fix)), phone.fix(fix)]
                    assert len(set(news)) == 1, (step, news)
                elif step[0] == "time":
                    for site in (server, remote):
                        site.clock.now += step[1]
                    plain.let_time_pass(server.clock.now)
                    server.let_time_pass()
                    phone.let_time_pass()
                elif step[0] == "connect":
                    phone.connect(lose_after=step[1])
                else:
                    accident(step, server, remote, phone)
            phone.drain()
        expected = plain.told
        for who in SUBSCRIBERS:
            here, there = server.told(who), remote.told(who)
            own = {new.name for name, new in story.subscriptions if name == who}
            wanted = {key: found for key, found in expected.items() if key[0] in own}
            assert readable(here) == wanted
            assert by_binding(there) == by_binding(here)
            FIGURES["notifications"] += len(here)
        FIGURES["examples"] += 1
        event("told" if any(expected.values()) else "silent")


def accident(step: str, server: Site, remote: Site, phone: Phone) -> None:
    if step == "cut":
        phone.disconnect()
    elif step == "connect":
        phone.connect()
    elif step == "restart":
        phone.restart()
    elif step == "kill":
        phone.kill()
    else:
        server.reopen()
        remote.reopen()
        phone.talk()


def by_binding(notifications: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """All of each notification, ids too, in order; only between bindings is there no order of edges at one instant."""
    lists: dict[Any, list[dict[str, Any]]] = {}
    for each in notifications:
        rest = {name: value for name, value in each.items() if name != "offset"}
        lists.setdefault((each["subscription"], each["target"]), []).append(rest)
    return lists


relaxed = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


@given(story=stories())
@settings(relaxed, max_examples=150)
def test_server_device_and_plain_words_tell_the_same(template: Template, story: Story) -> None:
    check(template, story)


@pytest.mark.slow
@given(story=stories(at_boundary=True))
@settings(relaxed, max_examples=200)
def test_dead_bands_and_crossings_are_the_same_everywhere(template: Template, story: Story) -> None:
    check(template, story)


@pytest.mark.slow
@given(story=stories())
@settings(relaxed, max_examples=30)
def test_a_server_that_dies_after_every_step_tells_the_same(template: Template, story: Story) -> None:
    with Site(template) as steady, Site(template) as dying:
        newest = None
        for site in (steady, dying):
            set_up(site, story)
        for step in story.steps:
            dying.reopen()
            if isinstance(step, Fix):
                fix = step.event(newest)
                newest = fix.ts if newest is None else max(newest, fix.ts)
                for site in (steady, dying):
                    site.clock.reach(fix.ts)
                    site.publish(fix)
            elif step[0] == "time":
                for site in (steady, dying):
                    site.clock.now += step[1]
                    site.let_time_pass()
        for who in SUBSCRIBERS:
            assert dying.told(who) == steady.told(who)


@pytest.mark.slow
@given(story=stories())
@settings(relaxed, max_examples=25)
def test_server_device_and_plain_words_tell_the_same_on_postgis(postgis_template: Template, story: Story) -> None:
    check(postgis_template, story)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_server_device_and_plain_words_tell_the_same_at_full_size(
    template: Template, record_result: Callable[[str, dict[str, Any]], None]
) -> None:
    @given(story=stories(max_steps=40))
    @settings(relaxed, max_examples=5000)
    def hold(story: Story) -> None:
        check(template, story)

    @given(story=stories(max_steps=40, at_boundary=True))
    @settings(relaxed, max_examples=3000)
    def hold_at_boundary(story: Story) -> None:
        check(template, story)

    FIGURES.clear()
    hold()
    hold_at_boundary()
    record_result("agreement", dict(FIGURES))
