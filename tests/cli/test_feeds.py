"""Feeds of tracking services: their items as events, and what of them is new."""

import json
from typing import Any

import pytest

from server.cli.feeds import FeedInvalid, FeedMap, News, items_of
from zones.errors import CallerError


def encoded(document: Any) -> bytes:
    return json.dumps(document).encode()


# --- where the items are -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "path", "items"),
    [
        ([1, 2], None, [1, 2]),
        ({"type": "FeatureCollection", "features": [3]}, None, [3]),
        ({"data": {"vehicles": [4]}}, "data.vehicles", [4]),
        ([{"buses": [5]}], "0.buses", [5]),
        ([], None, []),
    ],
)
def test_the_list_is_found(document: Any, path: str | None, items: list[Any]):
    assert items_of(b"\xef\xbb\xbf" + encoded(document), path) == items


@pytest.mark.parametrize(
    ("data", "path", "said"),
    [
        (b"<html>", None, "not JSON"),
        (b"", None, "not JSON"),
        (b"\xff", None, "not JSON"),
        (b"[" * 100_000, None, "not JSON"),
        (b"{}", None, "is not a list"),
        (b'{"a": {"b": 1}}', "a.b", "no list at a.b"),
        (b"[]", "7.x", "no list at 7.x"),
    ],
)
def test_a_feed_without_a_list_is_refused(data: bytes, path: str | None, said: str):
    with pytest.raises(FeedInvalid, match=said):
        items_of(data, path)


# --- items as events ---------------------------------------------------------------------------------


def body(item: Any, **options: Any) -> dict[str, Any]:
    return FeedMap(**options).event_of(item).body


def test_what_is_written_like_an_event_is_one():
    event = {"oid": "acme/7", "ts": 1000, "loc": [1.5, 2.5], "unc": 3}
    assert body(event | {"colour": "red", "plate": None}) == event


def test_fields_are_found_by_their_paths():
    item = {"vehicle": {"label": "7"}, "when": "1000", "where": ["9.5", "50.5"], "motion": {"speed": 3.5, "stops": []}}
    paths = {"oid": "vehicle.label", "ts": "when", "lon": "where.0", "lat": "where.1", "speed": "motion.speed"}
    mapped = body(item, paths=paths | {"gone": "motion.gone", "deep": "motion.speed.x"}, owner="acme")
    assert mapped == {"oid": "acme/7", "ts": 1000, "loc": [9.5, 50.5], "speed": 3.5}


def test_a_feature_is_its_properties_with_its_id_and_its_point():
    point = {"type": "Point", "coordinates": [9.5, 50.5]}
    item = {"type": "Feature", "id": 7, "geometry": point, "properties": {"time": "2026-11-18T07:00:00Z", "speed": 2}}
    assert body(item, owner="acme", paths={"speed": "speed"}) == {
        "oid": "acme/7",
        "ts": "2026-11-18T07:00:00Z",
        "loc": point,
        "speed": 2,
    }


@pytest.mark.parametrize(("ts", "ms"), [(1_795_000_000, 1_795_000_000_000), (1.5, 1500), ("20", 20_000)])
def test_numbers_may_be_seconds(ts: Any, ms: int):
    assert body({"oid": "a", "ts": ts, "lon": 1, "lat": 2}, seconds=True)["ts"] == ms


@pytest.mark.parametrize(
    "item",
    [
        None,
        7,
        [],
        {},
        {"oid": "a", "ts": 1000, "lon": 1},
        {"oid": "a", "lon": 1, "lat": 2},
        {"ts": 1000, "lon": 1, "lat": 2},
        {"oid": "a", "ts": 1000, "lon": "east", "lat": 2},
        {"oid": "a", "ts": 1000, "lon": "nan", "lat": 2},
        {"oid": "a", "ts": 1000, "lon": 1, "lat": 91},
        {"oid": "a", "ts": 1000.5, "lon": 1, "lat": 2},
        {"oid": "a", "ts": True, "lon": 1, "lat": 2},
        {"oid": "a//b", "ts": 1000, "lon": 1, "lat": 2},
        {"oid": True, "ts": 1000, "lon": 1, "lat": 2},
    ],
)
def test_an_item_that_is_no_event_is_refused_by_itself(item: Any):
    with pytest.raises(CallerError):
        FeedMap().event_of(item)
    good = {"oid": "a", "ts": 1, "lon": 1, "lat": 2}
    events, faults = News().of([good, item, good | {"oid": "b"}], FeedMap())
    assert [event.oid for event in events] == ["a", "b"]
    assert len(faults) == 1


# --- what is new -------------------------------------------------------------------------------------


def test_only_what_is_newer_than_what_was_taken_is_new():
    news = News()

    def new(*items: tuple[str, int]) -> list[tuple[str, int]]:
        events, _ = news.of([{"oid": oid, "ts": ts, "lon": 1, "lat": 2} for oid, ts in items], FeedMap())
        return [(event.oid, event.ts) for event in events]

    assert new(("a", 5), ("b", 3)) == [("b", 3), ("a", 5)]
    assert new(("a", 5)) == [("a", 5)]  # nobody has taken it yet
    for event in news.of([{"oid": "A", "ts": 5, "lon": 1, "lat": 2}], FeedMap())[0]:
        news.taken(event)
    assert new(("a", 5), ("a", 4), ("a", 6), ("b", 3)) == [("b", 3), ("a", 6)]
