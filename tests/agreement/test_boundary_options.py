"""Dead band and crossing through restarts, edits and handovers, on both paths, each as a short history.

Zone a is lon 0 to 2 at the equator, zone b lon 1 to 6; a hundredth of a degree is 1.1 km. The dead band is 11 km.
"""

from collections.abc import Iterator

import pytest

from matcher.events import Event
from server.controller.plans import build_plan
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID, Phone, Site, Template
from zones.shapes import Rectangle

A, B = Rectangle((0.0, -1.0, 2.0, 1.0)), Rectangle((1.0, -1.0, 6.0, 1.0))
WEST, EAST, DEEP, FAR = -1.0, 3.0, 1.0, 40.0
JUST_IN, JUST_OUT = 0.05, -0.05  # within the band
BAND_M = 11_000.0
IN_A = f"('{OID}') within (SYSTEM.a)"
CROSSING = NewSubscription("s", IN_A, crossing=True)
BAND = NewSubscription("s", IN_A + " AND speed > 5", hysteresis_m=BAND_M)


class Mover:
    """An object that the server evaluates, or that has a device."""

    def __init__(self, site: Site, phone: Phone | None) -> None:
        self.site, self.phone = site, phone

    def go(self, *lons: float, speed: int = 9, seconds: float = 10) -> None:
        for lon in lons:
            self.site.clock.now += round(seconds * 1000)
            event = Event(self.site.clock.now, (lon, 0.0), pairs={"speed": speed})
            if self.phone is None:
                self.site.publish(event)
            else:
                self.phone.fix(event)

    def talk(self) -> None:
        if self.phone is not None:
            self.phone.talk()

    @property
    def told(self) -> str:
        self.talk()
        return " ".join(each["mode"] for each in self.site.told())


@pytest.fixture
def site(template: Template) -> Iterator[Site]:
    with Site(template) as site:
        site.put_zone("SYSTEM.a", A)
        site.put_zone("SYSTEM.b", B)
        site.grant()
        yield site


@pytest.fixture(params=["server", "device"])
def mover(site: Site, request: pytest.FixtureRequest) -> Iterator[Mover]:
    if request.param == "server":
        yield Mover(site, None)
    else:
        with Phone(site, site.enrol()) as phone:
            phone.connect()
            yield Mover(site, phone)


def subscribe(mover: Mover, new: NewSubscription) -> None:
    mover.site.clock.now += 1
    mover.site.subscribe(new)
    mover.talk()


def test_a_crossing_is_told_with_the_place_on_the_boundary(mover: Mover) -> None:
    subscribe(mover, CROSSING)
    mover.go(WEST, EAST)
    assert mover.told == "enter leave"
    enter, leave = mover.site.told()
    assert (enter["loc"], leave["loc"], leave["duration_s"]) == ([0.0, 0.0], [2.0, 0.0], 5.0)
    assert leave["visit"] == enter["id"]


@pytest.mark.parametrize("accident", ["kill", "restart", "reopen"])
def test_a_crossing_is_seen_through_a_restart(mover: Mover, accident: str) -> None:
    subscribe(mover, CROSSING)
    mover.go(WEST)
    if accident == "reopen":
        mover.site.reopen()
    elif mover.phone is not None:
        getattr(mover.phone, accident)()
    mover.go(EAST)
    if mover.phone is not None:
        mover.phone.drain()
    assert mover.told == "enter leave"


def test_what_was_crossed_before_the_subscription_is_not_told(mover: Mover) -> None:
    mover.go(WEST)
    subscribe(mover, CROSSING)
    mover.go(EAST)
    assert mover.told == ""
    mover.go(WEST)
    assert mover.told == "enter leave"


def test_what_was_crossed_before_a_zone_came_was_told_by_the_server_only(mover: Mover) -> None:
    subscribe(mover, NewSubscription("s", f"('{OID}') within (SYSTEM.#new)", crossing=True))
    mover.go(WEST)
    if mover.phone is not None:  # which had no reason to write the last fix down
        mover.phone.restart()
        mover.phone.connect()
    mover.site.put_zone("SYSTEM.a", A, ["new"])
    mover.talk()
    mover.go(EAST)
    assert mover.told == ""
    mover.go(WEST)
    assert mover.told == "enter leave"


def test_what_was_crossed_during_a_pause_is_not_told(mover: Mover) -> None:
    subscribe(mover, CROSSING)
    mover.go(FAR)
    subscribe(mover, NewSubscription("s", IN_A, crossing=True, paused=True))
    mover.go(WEST)
    subscribe(mover, CROSSING)
    mover.go(EAST)
    assert mover.told == ""


def test_the_way_from_before_a_grant_is_not_told(mover: Mover) -> None:
    subscribe(mover, CROSSING)
    mover.go(FAR)
    mover.site.ungrant()
    mover.talk()
    mover.go(WEST)
    mover.site.grant()
    mover.talk()
    mover.go(EAST)
    assert mover.told == ""
    mover.go(WEST)
    assert mover.told == "enter leave"


def test_granting_the_same_again_is_no_reason_to_miss_a_crossing(mover: Mover) -> None:
    subscribe(mover, CROSSING)
    mover.go(WEST)
    mover.site.grant()
    mover.talk()
    mover.go(EAST)
    assert mover.told == "enter leave"


def test_crossings_are_found_for_those_that_speak_of_everybody(mover: Mover) -> None:
    subscribe(mover, NewSubscription("s", "(*) within (SYSTEM.*) AND speed > 5", crossing=True))
    mover.go(WEST, 7.0)
    assert sorted(each["target"] for each in mover.site.told()) == ["SYSTEM.a", "SYSTEM.a", "SYSTEM.b", "SYSTEM.b"]


@pytest.mark.parametrize("subject", [f"('{OID}')", "(*)"])
@pytest.mark.parametrize("engine", [False, True])
def test_what_counts_as_inside_is_followed_while_other_terms_do_not_hold(
    mover: Mover, subject: str, engine: bool
) -> None:
    if engine:
        mover.site.node.start_engine()
    subscribe(mover, NewSubscription("s", f"{subject} within (SYSTEM.a) AND speed > 5", hysteresis_m=BAND_M))
    mover.go(DEEP, speed=0)
    mover.go(JUST_OUT)
    assert mover.told == "enter"
    mover.go(JUST_OUT, speed=0)
    mover.go(FAR, speed=0)  # far from any zone it is over
    mover.go(JUST_IN)
    assert mover.told == "enter leave"


@pytest.mark.parametrize("subject", [f"('{OID}')", "(*)"])
def test_what_counts_as_inside_is_followed_outside_of_the_other_zones(mover: Mover, subject: str) -> None:
    selector = f"{subject} within (SYSTEM.b) AND {subject} within (SYSTEM.a)"
    subscribe(mover, NewSubscription("s", selector, hysteresis_m=BAND_M))
    mover.go(5.0)  # deep in b, not in a
    mover.go(1.05)  # in a, and in the band of b
    assert mover.told == "enter"


def test_an_edit_forgets_what_counted_as_inside(mover: Mover) -> None:
    subscribe(mover, BAND)
    mover.go(DEEP, speed=0)
    subscribe(mover, NewSubscription("s", BAND.selector, hysteresis_m=BAND_M + 1))
    mover.go(JUST_IN)
    assert mover.told == ""


def test_another_purpose_forgets_nothing(mover: Mover) -> None:
    subscribe(mover, BAND)
    mover.go(DEEP, speed=0)
    subscribe(mover, NewSubscription("s", BAND.selector, hysteresis_m=BAND_M, purpose="coupons"))
    mover.go(JUST_IN)
    assert mover.told == "enter"


def test_an_edited_zone_keeps_who_is_inside(mover: Mover) -> None:
    subscribe(mover, BAND)
    mover.go(DEEP)
    mover.site.put_zone("SYSTEM.a", Rectangle((0.0, -1.0, 1.05, 1.0)))
    mover.talk()
    mover.go(1.02, 1.1)  # within the new band, on both sides
    assert mover.told == "enter"
    mover.go(1.2)
    assert mover.told == "enter leave"


def test_what_counts_as_inside_goes_from_the_server_to_a_device(site: Site) -> None:
    mover = Mover(site, None)
    subscribe(mover, BAND)
    mover.go(DEEP, speed=0)
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        mover.phone = phone
        mover.go(JUST_OUT)
        assert mover.told == "enter"


def test_after_a_device_the_last_edge_says_what_counts_as_inside(site: Site) -> None:
    mover = Mover(site, None)
    subscribe(mover, BAND)
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        mover.phone = phone
        mover.go(DEEP, speed=0)  # no edge, so the server does not hear of it
        site.revoke()
        mover.phone = None
        mover.go(JUST_IN)
        assert mover.told == ""
        mover.go(DEEP, JUST_OUT, FAR)
    assert mover.told == "enter leave"


def test_after_a_device_nothing_is_crossed_from_where_the_server_saw_the_object(site: Site) -> None:
    mover = Mover(site, None)
    subscribe(mover, CROSSING)
    mover.go(WEST)
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        mover.phone = phone
        mover.go(DEEP, EAST)
        assert mover.told == "enter leave"
        site.revoke()
    mover.phone = None
    mover.go(EAST)
    assert mover.told == "enter leave"


def test_a_device_crosses_nothing_from_where_the_server_saw_the_object(site: Site) -> None:
    mover = Mover(site, None)
    subscribe(mover, CROSSING)
    mover.go(WEST)
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        mover.phone = phone
        mover.go(EAST)
        assert mover.told == ""
        mover.go(WEST)
        assert mover.told == "enter leave"


def test_an_agent_that_can_neither_is_not_given_such_bindings(site: Site) -> None:
    for name, new in (("band", BAND), ("crossing", CROSSING), ("plain", NewSubscription("s", IN_A))):
        site.subscribe(NewSubscription(name, new.selector, hysteresis_m=new.hysteresis_m, crossing=new.crossing))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        world = site.node.world
        entry = world.object(OID)
        assert entry is not None
        assert len(build_plan(world, entry).items) == 3
        world.agents[entry.id].capabilities = frozenset({"within", "conditions", "dwell"})
        assert len(build_plan(world, entry).items) == 1
