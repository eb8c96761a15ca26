"""Promise 1: recorded exactly once, across kill -9 of either side and lost connections."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from server.store.engine import parse_database_url
from tests.crash.audit import Tally
from tests.crash.scene import make_scene
from tests.crash.siege import Siege, Size

_REDUCED = Size(seconds=5, groups=2, server_lives_s=(0.1, 0.8), devices_live_s=(0.1, 0.8))
_FULL = Size(seconds=240, groups=4, server_lives_s=(0.1, 4.0), devices_live_s=(0.1, 8.0))


@pytest.mark.slow
def test_kill_9_of_server_and_agents_loses_and_doubles_nothing(database_url: str, tmp_path: Path):
    scene = make_scene(1, wanted=300, agents=6, publishers=2)
    outcome = Siege(database_url, tmp_path, scene, _REDUCED, random.Random(2)).with_kills()
    assert outcome.tally == Tally(lost=0, doubled=0)
    assert outcome.notifications == 300
    assert outcome.kills_server >= 2
    assert outcome.kills_agents >= 3


@pytest.mark.slow
def test_lost_database_connections_lose_and_double_nothing(postgis_url: str, tmp_path: Path):
    scene = make_scene(3, wanted=300, agents=6, publishers=2)

    def cut() -> None:
        with psycopg.connect(_conninfo(postgis_url), autocommit=True) as conn:
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    siege = Siege(postgis_url, tmp_path, scene, _REDUCED, random.Random(4))
    outcome = siege.with_lost_connections(cut, every_s=(0.05, 0.6))
    assert outcome.tally == Tally(lost=0, doubled=0)
    assert outcome.notifications == 300
    assert outcome.disturbances >= 5


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["sqlite", "postgis"])
def test_kill_9_during_ten_thousand_notifications(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, record_result: Callable[[str, dict[str, Any]], None]
):
    database: str = request.getfixturevalue(f"{kind}_url")
    scene = make_scene(5, wanted=10_000, agents=20, publishers=5)
    outcome = Siege(database, tmp_path, scene, _FULL, random.Random(6)).with_kills()
    figures = {
        "notifications": outcome.notifications,
        "expected": len(scene.expected),
        "lost": outcome.tally.lost,
        "doubled": outcome.tally.doubled,
        "kills_server": outcome.kills_server,
        "kills_agents": outcome.kills_agents,
        "agents": len(scene.agents),
        "objects_without_agent": len(scene.publishers),
        "fixes": sum(map(len, scene.traces.values())),
        "repeated_requests": outcome.repeated_requests,
        "seconds": outcome.seconds,
    }
    record_result(f"kill9_{kind}", figures)
    assert outcome.tally == Tally(lost=0, doubled=0)
    assert outcome.notifications == 10_000
    assert outcome.kills_server >= 20
    assert outcome.kills_agents >= 50


def _conninfo(url: str) -> str:
    return parse_database_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
