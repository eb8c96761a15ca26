"""The trigger graph of the world: whatever changed and in whatever order, it is the one that is made afresh."""

import re
from random import Random

from matcher.once import Mode, Service, Tos
from matcher.selector.parser import parse_selector
from matcher.selector.tree import Condition
from privacy.policies import Grant, Operation
from server.pubsub.entries import BindingKey, ObjectEntry, SubscriptionEntry
from server.pubsub.nearby import Nearby
from server.pubsub.world import World
from zones.shapes import Circle
from zones.zone import Zone

_USERS = ("SYSTEM", "ann", "bob", "cid", "dan")
_OIDS = ("ann", "bob", "cid", "dan", "bob/van", "cid/bike", "dan/dog")
_SELECTORS = (
    "(bob) distance (200, cid)",
    "(bob) distance (200, cid, dan, 'bob/van')",
    "(ann) distance (200, *)",
    "('bob/van') distance (50, *) AND speed > 3",
    "NOT (bob) distance (200, cid, dan)",
    "NOT (ann) distance (200, *)",
    "(bob) within (ann.Home) AND (bob) distance (100, 'dan/dog', ann)",
    "(bob) within (ann.Home) OR (cid) distance (100, 'dan/dog', ann)",
    "(bob) distance (100, ann) AND (bob) distance (300, 'cid/bike')",
    "(*) within (ann.Home) AND (bob) distance (100, *)",
    "(bob) within (ann.Home)",
    "(BOB) distance (10, Cid, bob)",
)


class Town:
    """What there is, apart from the world that is told of it; from this another world can be made at any time."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.objects: list[ObjectEntry] = []
        self.subscriptions: dict[int, SubscriptionEntry] = {}
        self.grants: dict[int, Grant] = {}
        self.zones: dict[int, Zone] = {}
        self.numbers = 0
        self.now = 1000
        self.world = self.fresh()

    def fresh(self) -> World:
        world = World()
        for number, name in enumerate(_USERS):
            world.put_user(number, name, 0)
        for entry in self.objects:
            world.put_object(entry)
        for grant in self.grants.values():
            world.put_grant(grant)
        for zone in self.zones.values():
            world.put_zone(zone, _USERS.index(zone.owner))
        for subscription in self.subscriptions.values():
            world.put_subscription(subscription)
        return world

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def change(self) -> None:
        often = (self.appear, self.subscribe, self.grant) * 3
        self.rng.choice((*often, self.unsubscribe, self.revoke, self.draw, self.erase, self.wait))()

    def appear(self) -> None:
        oid = self.rng.choice(_OIDS)
        if all(entry.oid != oid for entry in self.objects):
            entry = ObjectEntry(self.number(), oid, _USERS.index(oid.split("/")[0]), None, None, 0)
            self.objects.append(entry)
            self.world.put_object(entry)

    def subscribe(self) -> None:
        number = self.rng.randrange(1, 9)
        tos = self.rng.choice((Tos.ONCE, Tos.ONCE, Tos.EVERY))
        text = self.rng.choice(_SELECTORS)
        expires = self.rng.choice((*[None] * 9, self.now + 20))
        modes = (Mode.MATCH,) if tos is Tos.EVERY else (Mode.ENTER, Mode.LEAVE)
        service = Service(tos=tos, modes=modes, expires=expires)
        paused = self.rng.random() < 0.1
        entry = SubscriptionEntry(
            number, number % 4 + 1, f"s{number}", text, parse_selector(text), service, "", paused, self.now
        )
        self.subscriptions[number] = entry
        self.world.put_subscription(entry)

    def unsubscribe(self) -> None:
        if self.subscriptions:
            number = self.rng.choice(sorted(self.subscriptions))
            del self.subscriptions[number]
            self.world.remove_subscription(number)

    def grant(self) -> None:
        owner, who = self.rng.sample(range(1, 5), 2)
        operations = frozenset(self.rng.sample(list(Operation), self.rng.randrange(2, 6)))
        grant = Grant(self.number(), owner, who, operations)
        self.grants[grant.id] = grant
        self.world.put_grant(grant)

    def revoke(self) -> None:
        if self.grants:
            grant = self.grants.pop(self.rng.choice(sorted(self.grants)))
            self.world.remove_grant(grant.owner_id, grant.id)

    def draw(self) -> None:
        if not self.zones:
            zone = Zone(self.number(), "ann", "Home", 1, Circle((1.0, 1.0), 50.0))
            self.zones[zone.id] = zone
            self.world.put_zone(zone, 1)

    def erase(self) -> None:
        for number in list(self.zones):
            del self.zones[number]
            self.world.remove_zone(number)

    def wait(self) -> None:
        self.now += self.rng.randrange(4)


def graph(nearby: Nearby, town: Town) -> dict[BindingKey, tuple[object, ...]]:
    """Every tie, as each of its objects finds it."""
    nearby.refresh(town.now)
    found: dict[BindingKey, tuple[object, ...]] = {}
    for entry in town.objects:
        mover = f"o:{entry.id}"
        for tie in nearby.proximity.ties(mover):
            assert mover in tie.objects
            assert nearby.tie(tie.key) is tie
            seen = (_in_order(tie.rule.condition), tie.rule.service, set(tie.objects), tie.target)
            assert found.setdefault(tie.key, seen) == seen
        assert nearby.is_watched(entry.id) is nearby.proximity.is_linked(mover)
    return found


def _in_order(condition: Condition) -> str:
    """The order in which objects appeared decides the order of `*`; it decides nothing else."""
    return re.sub(r"others=\(([^)]*)\)", lambda found: str(sorted(found[1].replace(",", " ").split())), str(condition))


def test_the_graph_that_followed_all_changes_is_the_one_made_afresh():
    ties = 0
    for seed in range(60):
        town = Town(seed)
        for _ in range(100):
            town.change()
            if town.rng.random() < 0.5:
                followed, made = graph(town.world.nearby, town), graph(town.fresh().nearby, town)
                assert followed == made, seed
                ties += len(made)
    assert ties > 5000


def test_who_gets_a_first_edge_or_loses_the_last_one_is_told_to_the_controller():
    town = Town(0)
    for number, oid in enumerate(("bob", "cid", "dan")):
        town.objects.append(ObjectEntry(10 + number, oid, _USERS.index(oid), None, None, 0))
        town.world.put_object(town.objects[-1])
    nearby = town.world.nearby

    def changed() -> set[int]:
        nearby.refresh(town.now)
        return nearby.changed_objects()

    text = "(bob) distance (200, cid)"
    entry = SubscriptionEntry(1, 2, "s", text, parse_selector(text), Service(), "", False, 0)
    town.world.put_subscription(entry)
    assert changed() == set(), "cid has granted nothing"
    town.world.put_grant(Grant(1, 3, 2, frozenset({Operation.DISTANCE})))
    assert changed() == {10, 11}
    assert [nearby.is_watched(number) for number in (10, 11, 12)] == [True, True, False]
    town.world.remove_grant(3, 1)
    assert changed() == {10, 11}
    assert not nearby.is_watched(10)


def test_what_is_over_is_watched_no_more():
    town = Town(0)
    for number, oid in enumerate(("bob", "bob/van")):
        town.objects.append(ObjectEntry(10 + number, oid, 2, None, None, 0))
        town.world.put_object(town.objects[-1])
    text = "(bob) distance (200, 'bob/van')"
    entry = SubscriptionEntry(1, 2, "s", text, parse_selector(text), Service(expires=2000), "", False, 0)
    town.world.put_subscription(entry)
    nearby = town.world.nearby
    nearby.refresh(1999)
    assert nearby.is_watched(10)
    nearby.refresh(2000)
    assert not nearby.is_watched(10)
    assert not nearby.is_watched(11)
