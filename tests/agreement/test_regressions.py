"""What the properties found, each as the shortest history that showed it."""

import pytest

from matcher.events import Event
from matcher.instants import format_instant
from server.pubsub.subscriptions import NewSubscription
from tests.agreement.harness import OID, Phone, Site, Template
from zones.shapes import Rectangle

WEST, EAST = Rectangle((0.0, 0.0, 2.0, 2.0)), Rectangle((4.0, 0.0, 6.0, 2.0))
IN_WEST, IN_EAST, OUTSIDE = (1.0, 1.0), (5.0, 1.0), (9.0, 9.0)
IN_A = f"('{OID}') within (SYSTEM.a)"


@pytest.fixture
def site(template: Template):
    with Site(template) as site:
        site.put_zone("SYSTEM.a", WEST)
        site.put_zone("SYSTEM.b", EAST)
        site.grant()
        yield site


def at(site: Site, seconds: float, loc) -> Event:
    """A fix so many seconds later."""
    site.clock.now += round(seconds * 1000)
    return Event(site.clock.now, loc)


def told(site: Site) -> str:
    return " ".join(each["mode"] for each in site.told())


def test_granting_the_same_again_ended_a_dwell_on_the_server_only(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A, dwell_s=10))
    site.publish(at(site, 1, IN_WEST))
    site.grant()
    site.publish(at(site, 10, IN_WEST))
    assert told(site) == "enter"


def test_another_purpose_or_another_zone_ended_a_dwell_on_the_server_only(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A, dwell_s=10))
    site.publish(at(site, 1, IN_WEST))
    site.subscribe(NewSubscription("s", IN_A, dwell_s=10, purpose="coupons"))
    site.subscribe(NewSubscription("s", f"('{OID}') within (SYSTEM.a, SYSTEM.b)", dwell_s=10, purpose="coupons"))
    site.publish(at(site, 10, IN_WEST))
    assert told(site) == "enter"


@pytest.mark.parametrize("change", ["new", "deleted", "tagged"])
def test_a_zone_that_came_into_a_condition_or_left_it_ended_a_dwell_on_devices_only(site: Site, change: str) -> None:
    site.subscribe(
        NewSubscription("s", f"('{OID}') within (SYSTEM.a) AND NOT ('{OID}') within (SYSTEM.#no)", dwell_s=10)
    )
    if change == "deleted":
        site.put_zone("SYSTEM.c", EAST, ["no"])
    site.publish(at(site, 1, IN_WEST))
    if change == "new":
        site.put_zone("SYSTEM.c", EAST, ["no"])
    elif change == "tagged":
        site.put_zone("SYSTEM.b", EAST, ["no"])
    else:
        site.delete_zone("SYSTEM.c")
    site.publish(at(site, 10, IN_WEST))
    assert told(site) == ""
    site.publish(at(site, 10, IN_WEST))
    assert told(site) == "enter"


def test_a_device_that_was_closed_took_a_late_fix_for_news(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.fix(at(site, 1, IN_WEST))
        late = at(site, 1, OUTSIDE)
        phone.fix(at(site, 1, IN_WEST))
        phone.restart()
        assert not phone.fix(late)


def test_a_dwell_that_a_device_had_seen_end_ran_on_at_the_server(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A, dwell_s=10))
    site.publish(at(site, 1, IN_WEST))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.fix(at(site, 1, OUTSIDE))  # no edge, so the server does not hear of it
        site.revoke()
        site.clock.now += 60_000
        site.let_time_pass()
        site.publish(at(site, 1, IN_WEST))
    assert told(site) == ""


def test_a_dwell_goes_on_from_the_server_to_a_device(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A, dwell_s=10))
    inside = at(site, 1, IN_WEST)
    site.publish(inside)
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.fix(at(site, 10, IN_WEST))
    assert [(each["mode"], each["ts"]) for each in site.told()] == [("enter", format_instant(inside.ts + 10_000))]


def test_a_leave_that_nobody_was_allowed_to_hear_of_left_two_enters_in_a_row(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.fix(at(site, 1, IN_WEST))
        phone.disconnect()
        phone.fix(at(site, 1, OUTSIDE))
        site.ungrant()
        phone.drain()
        site.grant()
        phone.talk()
        phone.fix(at(site, 1, IN_WEST))
        assert told(site) == "enter"
        phone.fix(at(site, 1, OUTSIDE))
        assert told(site) == "enter leave"
        assert site.told()[1]["visit"] == site.told()[0]["id"]


def test_a_leave_that_nobody_was_allowed_to_hear_of_was_not_found_anew(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.fix(at(site, 1, IN_WEST))
        phone.disconnect()
        phone.fix(at(site, 1, OUTSIDE))
        site.ungrant()
        phone.drain()
        site.grant()
        phone.talk()
        phone.fix(at(site, 1, OUTSIDE))
    assert told(site) == "enter leave"


def test_a_report_of_a_binding_that_went_and_came_back_was_a_gap(site: Site) -> None:
    site.subscribe(NewSubscription("s", IN_A))
    with Phone(site, site.enrol()) as phone:
        phone.connect()
        phone.disconnect()
        phone.fix(at(site, 1, IN_WEST))
        site.subscribe(NewSubscription("s", f"('{OID}') within (SYSTEM.b)"))
        phone.drain()
        site.subscribe(NewSubscription("s", IN_A))
        phone.talk()
        phone.fix(at(site, 1, IN_WEST))
        phone.fix(at(site, 1, OUTSIDE))
        assert phone.byes == []
    assert told(site) == "enter leave"
