"""Is what was recorded exactly what was expected?"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import create_engine, text

from matcher.instants import parse_instant
from tests.crash.scene import SUBSCRIPTIONS, Expected

__all__ = ["Tally", "check_order", "stored", "tally"]

_Binding = tuple[str, str, str]


@dataclass(frozen=True)
class Tally:
    lost: int
    doubled: int


def tally(expected: Iterable[Expected], recorded: Mapping[str, list[dict[str, Any]]]) -> Tally:
    """Both are counted whatever the order and the ids are: the same edge under two ids is doubled."""
    wanted = Counter(expected)
    found = Counter(_as_expected(each) for told in recorded.values() for each in told)
    return Tally(lost=(wanted - found).total(), doubled=(found - wanted).total())


def check_order(expected: Iterable[Expected], recorded: Mapping[str, list[dict[str, Any]]]) -> None:
    """Offsets without gaps, ids that are nobody else's, and per binding the right edges in the right order."""
    wanted: defaultdict[_Binding, list[Expected]] = defaultdict(list)
    for edge in expected:
        wanted[edge.subscription, edge.oid, edge.target].append(edge)
    found: defaultdict[_Binding, list[dict[str, Any]]] = defaultdict(list)
    ids = []
    for subscriber, told in recorded.items():
        assert [each["offset"] for each in told] == list(range(1, len(told) + 1)), subscriber
        for each in told:
            assert SUBSCRIPTIONS[each["subscription"]].subscriber == subscriber
            found[each["subscription"], each["oid"], each["target"]].append(each)
            ids.append(each["id"])
    assert len(set(ids)) == len(ids)
    assert found.keys() == wanted.keys()
    for binding, told in found.items():
        assert [_as_expected(each) for each in told] == wanted[binding], binding
        if SUBSCRIPTIONS[binding[0]].tos == "once":
            _check_visits(told)


def _check_visits(told: list[dict[str, Any]]) -> None:
    for number, each in enumerate(told):
        assert each["mode"] == ("leave" if number % 2 else "enter")
        if number % 2:
            enter = told[number - 1]
            assert each["visit"] == enter["id"]
            assert each["duration_s"] == (parse_instant(each["ts"]) - parse_instant(enter["ts"])) / 1000
        else:
            assert "visit" not in each


def stored(database: str) -> dict[str, list[dict[str, Any]]]:
    """What stands in the database, past all code of the server's; the counters in it have to agree."""
    engine = create_engine(database)
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        with engine.connect() as conn:
            edges = 0
            for user_id, name, last_offset in conn.execute(text("SELECT id, name, last_offset FROM users")).all():
                rows = conn.execute(
                    text('SELECT "offset", id, body FROM notifications WHERE subscriber_id = :who ORDER BY "offset"'),
                    {"who": user_id},
                ).all()
                assert last_offset == len(rows), name
                edges += len(rows)
                if rows:
                    found[name] = [{**msgspec.json.decode(row.body), "offset": row.offset} for row in rows]
                    assert [each["id"] for each in found[name]] == [row.id for row in rows]
            states = [msgspec.json.decode(state) for state in conn.scalars(text("SELECT state FROM bindings"))]
            assert sum(state.get("n", 0) for state in states) == edges
            assert conn.scalar(text("SELECT count(*) FROM dead_reports")) == 0
    finally:
        engine.dispose()
    return found


def _as_expected(told: dict[str, Any]) -> Expected:
    lon, lat = told["loc"]
    return Expected(
        told["subscription"],
        told["oid"],
        told["target"],
        told["mode"],
        parse_instant(told["ts"]),
        (lon, lat),
        told.get("speed"),
        told.get("duration_s"),
    )
