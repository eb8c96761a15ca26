"""Fences only say where to look: with the plain index, with the compiled one and without any the same is told."""

from random import Random

import pytest

from matcher.events import Event
from matcher.once import Tos
from server.pubsub.rules import Rulebook
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID, START, Site, Template
from zones.shapes import Circle, Rectangle, Shape

ZONES = 30
STEPS = 120


def shape(rng: Random) -> Shape:
    west, south = rng.randrange(10), rng.randrange(10)
    if rng.randrange(3) == 0:
        return Circle((float(west), float(south)), rng.uniform(20_000, 150_000))
    return Rectangle((float(west), float(south), west + rng.randrange(1, 5), south + rng.randrange(1, 5)))


def subscription(rng: Random, number: int) -> NewSubscription:
    zones = ", ".join(f"SYSTEM.z{zone}" for zone in rng.sample(range(ZONES), rng.randrange(1, 4)))
    who = rng.choice(["*", f"'{OID}'", f"'{OID}', alice"])
    selector = rng.choice(
        [
            f"({who}) within ({zones})",
            f"({who}) within (SYSTEM.*)",
            f"({who}) within ({zones}) AND speed > 4",
            f"NOT ({who}) within ({zones})",
            f"({who}) within ({zones}) OR speed > 7",
            f"({who}) within ({zones}) AND NOT ({who}) within (SYSTEM.z0)",
            f"({who}) within (CIRCLE(5 5, 200000)) AND (*) within ({zones})",
        ]
    )
    tos = rng.choice(["once", "once", "once", "first", "every"])
    dwell_s = rng.choice([0, 0, 90]) if tos != "every" else 0
    is_anchored = tos == "once" and not selector.startswith("NOT")
    crossing = is_anchored and rng.randrange(5) == 0
    hysteresis_m = 5_000.0 if is_anchored and rng.randrange(5) == 0 else 0.0
    return NewSubscription(
        f"s{number}", selector, tos=Tos(tos), dwell_s=dwell_s, crossing=crossing, hysteresis_m=hysteresis_m
    )


def told(template: Template, seed: int, *, compiled: bool = False) -> list[tuple[object, ...]]:
    rng = Random(seed)
    with Site(template) as site:
        if compiled:
            site.node.start_engine()
        site.grant()
        for number in range(ZONES):
            site.put_zone(f"SYSTEM.z{number}", shape(rng))
        names = {f"s{number}" for number in range(40)}
        for number in range(40):
            site.subscribe(subscription(rng, number))
        for minute in range(STEPS):
            change = rng.randrange(12)
            if change == 0:
                site.put_zone(f"SYSTEM.z{rng.randrange(ZONES)}", shape(rng))
            elif change == 1:
                new = subscription(rng, rng.randrange(40))
                names.add(new.name)
                site.subscribe(new)
            elif change == 2:
                gone = f"s{rng.randrange(40)}"
                if gone in names:
                    names.remove(gone)
                    site.unsubscribe(gone)
            loc = None if rng.randrange(15) == 0 else (rng.randrange(20) * 0.5, rng.randrange(20) * 0.5)
            pairs = {"speed": rng.randrange(10)} if rng.randrange(4) else {}
            event = Event(START + minute * 60_000, loc, OID, None, None, pairs)
            site.clock.reach(event.ts)
            site.publish(event)
        return sorted((each["ts"], each["subscription"], each["mode"], str(each["target"])) for each in site.told())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_fences_change_nothing_of_what_is_told(template: Template, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fenced = told(template, seed)
    assert len(fenced) > 100
    assert told(template, seed, compiled=True) == fenced
    monkeypatch.setattr(Rulebook, "_around", lambda *_: None)
    assert told(template, seed) == fenced
