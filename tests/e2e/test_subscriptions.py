"""A subscription over HTTP: created under an id of the subscriber's, listed, changed, paused, expired, deleted."""

from typing import Any

import pytest

from tests.e2e.conftest import LiveServer, Person

NOON = 1_790_000_000_000


@pytest.fixture
def shop(live_server: LiveServer) -> Person:
    """Somebody who watches himself, and two zones, one in the other."""
    shop = live_server.user("shop")
    shop.square(f"{shop.name}.Mall", 0, 0)
    shop.square(f"{shop.name}.City", 0, 0, 10)
    return shop


def be(shop: Person, minute: float, lon: float) -> list[tuple[str, str]]:
    """Go there, and what is told of it."""
    before = len(shop.told())
    shop.publish({"ts": round(NOON + 60_000 * minute), "loc": [lon, 0.5]})
    return [(each["mode"], each["target"].partition(".")[2]) for each in shop.told(after=before)]


def mall(shop: Person) -> str:
    return f"({shop.name}) within ({shop.name}.Mall)"


def test_it_is_created_once_and_reads_as_it_was_given(shop: Person) -> None:
    body = {
        "selector": mall(shop),
        "tos": "once",
        "modes": ["leave"],
        "dwell_s": 5.0,
        "expires": "2030-01-31T12:00:00.000Z",
        "stale_s": 60.0,
        "hysteresis_m": 20.0,
        "unc_factor": 1.5,
        "crossing": False,
        "purpose": "coupons",
        "paused": False,
    }
    first = shop.ask("PUT", "/v1/subscriptions/it%20is%20mine", body)
    again = shop.ask("PUT", "/v1/subscriptions/it%20is%20mine", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == {"id": "it is mine"} | body
    assert shop.done("GET", "/v1/subscriptions/it%20is%20mine") == first.json()


def test_the_list_has_all_of_ones_own_in_pages(shop: Person, live_server: LiveServer) -> None:
    live_server.user("other").subscribe("not-mine", "TRUE", tos="once")
    for number in range(5):
        shop.subscribe(f"s{number}", mall(shop))
    seen: list[Any] = []
    after: int | None = 0
    while after is not None:
        page = shop.done("GET", "/v1/subscriptions", params={"limit": 2, "after": after})
        assert len(page["items"]) <= 2
        seen += page["items"]
        after = page["next"]
    assert [each["id"] for each in seen] == [f"s{number}" for number in range(5)]
    assert seen[0] == shop.done("GET", "/v1/subscriptions/s0")


def test_a_change_tells_nobody_and_the_state_meets_the_next_event(shop: Person) -> None:
    shop.subscribe("s", f"({shop.name}) within ({shop.name}.Mall, {shop.name}.City)")
    assert be(shop, 0, 0.5) == [("enter", "Mall"), ("enter", "City")]
    shop.subscribe("s", f"({shop.name}) within ({shop.name}.Mall, {shop.name}.City) AND speed > 5")
    assert len(shop.told()) == 2
    assert be(shop, 1, 0.5) == []  # no speed: unknown
    shop.subscribe("s", mall(shop))
    assert be(shop, 2, 5) == [("leave", "Mall")]


def test_a_pause_hides_what_happens_and_edges_alternate_after_it(shop: Person) -> None:
    shop.subscribe("s", mall(shop))
    assert be(shop, 0, 0.5) == [("enter", "Mall")]
    shop.subscribe("s", mall(shop), paused=True)
    assert be(shop, 1, 5) == be(shop, 2, 0.5) == be(shop, 3, 5) == []
    shop.subscribe("s", mall(shop))
    assert be(shop, 4, 5.1) == [("leave", "Mall")]


def test_from_its_expiry_on_nothing_is_told_and_it_can_be_lengthened(shop: Person) -> None:
    shop.subscribe("s", mall(shop), expires=NOON + 60_000)
    assert be(shop, 0.99, 0.5) == [("enter", "Mall")]
    assert be(shop, 1, 5) == be(shop, 2, 0.5) == be(shop, 3, 5) == []
    shop.subscribe("s", mall(shop))
    assert be(shop, 4, 5.1) == [("leave", "Mall")]


def test_a_deleted_one_is_gone_and_a_new_one_of_its_name_starts_new(shop: Person) -> None:
    shop.subscribe("s", mall(shop), tos="first")
    assert be(shop, 0, 0.5) == [("enter", "Mall")]
    assert shop.ask("DELETE", "/v1/subscriptions/s").status_code == 204
    assert shop.ask("DELETE", "/v1/subscriptions/s").json()["code"] == "subscription_not_found"
    assert be(shop, 1, 5) == []
    shop.subscribe("s", mall(shop), tos="first")
    assert be(shop, 2, 0.5) == [("enter", "Mall")]
    identifiers = [each["id"] for each in shop.told()]
    assert len(set(identifiers)) == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"tos": "every", "modes": ["enter"]}, "option_invalid"),
        ({"tos": "every", "dwell_s": 1}, "option_invalid"),
        ({"modes": []}, "option_invalid"),
        ({"modes": ["match"]}, "option_invalid"),
        ({"dwell_s": -1}, "option_invalid"),
        ({"stale_s": 0}, "option_invalid"),
        ({"expires": "tomorrow"}, "ts_invalid"),
        ({"tos": "twice"}, "body_invalid"),
        ({"selector": "speed >"}, "selector_invalid"),
        ({"selector": "NOT " * 40 + "TRUE"}, "selector_too_deep"),
        ({"selector": " OR ".join(["TRUE"] * 257)}, "selector_too_complex"),
        ({"selector": "TRUE" + " " * 8192}, "selector_too_long"),
        ({"colour": "red"}, "body_invalid"),
    ],
)
def test_what_can_not_be_changes_nothing(shop: Person, options: dict[str, Any], code: str) -> None:
    shop.subscribe("s", mall(shop))
    before = shop.done("GET", "/v1/subscriptions/s")
    refused = shop.ask("PUT", "/v1/subscriptions/s", {"selector": mall(shop)} | options)
    assert (refused.status_code, refused.json()["code"]) == (400, code)
    assert refused.json()["hint"]
    assert shop.done("GET", "/v1/subscriptions/s") == before
