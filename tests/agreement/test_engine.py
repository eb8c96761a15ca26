"""The engine only says where to look: with it, without it and through merges the same is told."""

from random import Random

import pytest

from matcher.events import Event, Region
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID, START, Site, Template
from zones.shapes import Rectangle

ZONES = 40
WORDS = ("overlaps", "meets", "inside", "contains", "covers", "covered-by", "equals", "disjoint")


def box(rng: Random, most: int = 6) -> Rectangle:
    west, south = float(rng.randrange(20)), float(rng.randrange(20))
    return Rectangle((west, south, west + rng.randrange(1, most) * 0.5, south + rng.randrange(1, most) * 0.5))


def selector(rng: Random) -> str:
    zones = ", ".join(f"SYSTEM.z{number}" for number in rng.sample(range(ZONES), rng.randrange(1, 3)))
    parts = [f"area {rng.choice(WORDS)} ({zones})", f"wind {rng.choice('<>')} {rng.randrange(10)}"]
    parts.append(rng.choice(["level IN ('red', 'amber')", "NOT level = 'red'", "oid LIKE 'alice%'", "wind + 1 > 3"]))
    return rng.choice([" AND ", " OR "]).join(rng.sample(parts, rng.randrange(1, 4)))


def message(rng: Random, minute: int) -> Event:
    pairs = {"area": Region(box(rng, 30)), "wind": rng.randrange(10), "level": rng.choice(["red", "amber", "green"])}
    kept = {name: value for name, value in pairs.items() if rng.randrange(5)}
    oid = OID if rng.randrange(4) else ""
    return Event(START + minute * 60_000, None, oid, None, None, kept)


def told(template: Template, seed: int, with_engine: bool) -> list[dict[str, object]]:
    rng = Random(seed)
    with Site(template) as site:
        if with_engine:
            site.node.start_engine()
        site.grant()
        for number in range(ZONES):
            site.put_zone(f"SYSTEM.z{number}", box(rng))
        for number in range(150):
            site.subscribe(NewSubscription(f"s{number}", selector(rng)))
        for minute in range(60):
            candidates = site.node.world.rulebook.candidates
            if minute % 15 == 10:
                merge = candidates.begin_merge() if with_engine else None
                site.put_zone(f"SYSTEM.z{rng.randrange(ZONES)}", box(rng))
                site.unsubscribe(f"s{minute}")
                if merge is not None:
                    candidates.finish_merge(merge.build())
            event = message(rng, minute)
            site.clock.reach(event.ts)
            site.publish(event)
            assert site.node.world.rulebook.candidates is candidates, "the work was rolled back"
        return site.told()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_engine_changes_nothing_of_what_is_told(template: Template, seed: int) -> None:
    plain = told(template, seed, with_engine=False)
    assert len(plain) > 300
    assert told(template, seed, with_engine=True) == plain
