"""The examples of docs/examples, each run as a program against a real server."""

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_server import LiveServer, Person, serving

_ROOT = Path(__file__).resolve().parents[2]
_EXAMPLES = sorted((_ROOT / "docs" / "examples").glob("*.py"))
_TRIP = """ts,lon,lat,unc,speed
2026-01-05T08:00:00Z,116.360,39.907,5,1.5
2026-01-05T08:01:00Z,116.370,39.907,5,1.5
2026-01-05T08:02:00Z,116.371,39.907,5,0
2026-01-05T08:02:00Z,116.371,39.907,5,0
2026-01-05T08:05:30Z,116.380,39.907,5,8.25
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('examples') / 'fencepost.db'}") as server:
        yield server


@pytest.fixture
def mike(server: LiveServer) -> Person:
    """A user with a zone around the middle of the trip, who wants to be told about himself."""
    mike = server.user("mike")
    shape = {"type": "Circle", "center": [116.370, 39.907], "radius_m": 300}
    mike.done("PUT", f"/v1/zones/{mike.name}.Xidan", {"shape": shape})
    mike.subscribe("xidan", f"({mike.name}) within ({mike.name}.Xidan)")
    return mike


@pytest.fixture
def trip(tmp_path: Path) -> Path:
    path = tmp_path / "trip.csv"
    path.write_text(_TRIP)
    return path


def _token(mike: Person) -> str:
    token: str = mike.done("POST", "/v1/agents", {"oid": mike.name})["token"]
    return token


def _start(folder: Path, name: str, *arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, _ROOT / "docs" / "examples" / name, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(_ROOT)} | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen_to_ctrl_c,
    )


def _listen_to_ctrl_c() -> None:
    """What a shell starts in the background ignores it, and so would everything that is started from there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _run(folder: Path, name: str, *arguments: str, **environ: str) -> tuple[str, str]:
    """What it printed, and the credential it enrolled with, if it did."""
    with _start(folder, name, *arguments, **environ) as process:
        printed, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    credential = re.search(r"fpa_\S+", said)
    return printed, credential[0] if credential else ""


def test_agent_callback_tells_of_a_walk_with_what_the_gps_attached(mike: Person, tmp_path: Path):
    printed, _ = _run(tmp_path, "agent_callback.py", mike.url, _token(mike))
    enter, leave = mike.told()
    assert (enter["mode"], leave["mode"]) == ("enter", "leave")
    assert (enter["target"], enter["unc"], enter["speed"]) == (f"{mike.name}.Xidan", 5.0, 1.4)
    assert 80 < leave["battery"] <= enter["battery"] <= 90
    assert leave["visit"] == enter["id"]
    assert 0 < leave["duration_s"] < 40
    assert re.fullmatch(r"40 fixes, 2 edges, [23] messages sent\n", printed)


def test_agent_trace_replays_a_file_and_a_second_run_tells_nothing_twice(mike: Person, trip: Path, tmp_path: Path):
    printed, credential = _run(tmp_path, "agent_trace.py", mike.url, _token(mike), str(trip))
    assert printed == "5 fixes, 1 late, 2 edges, 0 refused\n"
    told = mike.told()
    assert [(each["mode"], each["ts"], each["speed"]) for each in told] == [
        ("enter", "2026-01-05T08:01:00.000Z", 1.5),
        ("leave", "2026-01-05T08:05:30.000Z", 8.25),
    ]
    assert told[1]["duration_s"] == 270
    environ = {"FENCEPOST_URL": mike.url, "FENCEPOST_TOKEN": credential, "FENCEPOST_TRACE": str(trip)}
    printed, _ = _run(tmp_path, "agent_trace.py", **environ)
    assert printed == "5 fixes, 5 late, 0 edges, 0 refused\n"
    assert mike.told() == told


def test_agent_notifications_shows_the_coupon_on_the_phone(mike: Person, trip: Path, tmp_path: Path):
    with _start(tmp_path, "agent_notifications.py", mike.url, _token(mike), str(trip)) as process:
        try:
            assert process.stdout is not None
            coupon, goodbye = process.stdout.readline(), process.stdout.readline()
        finally:
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=30)[1]
    assert process.returncode == 0, said
    enter, _ = mike.told()
    assert coupon == f"Welcome to {mike.name}.Xidan! Coupon {enter['id'][:8]}: 10 % off today.\n"
    assert goodbye == f"You were in {mike.name}.Xidan for 270 s.\n"


def test_e_coupon_reaches_the_phone_once(server: LiveServer, tmp_path: Path):
    operator, mike = server.user("operator", admin=True), server.user("mike")
    printed, _ = _run(tmp_path, "e_coupon.py", mike.url, operator.key, mike.name, mike.key)
    (coupon,) = mike.told()
    assert printed.splitlines() == [
        f"00:01 Hungry? Show {coupon['id'][:8]} at the restaurant today: 10 % off.",
        "9 fixes, 1 coupon",
    ]
    assert (coupon["mode"], coupon["loc"]) == ("enter", [116.3698, 39.9074])
    assert coupon["target"] == "CIRCLE(116.37 39.9075, 200)"
    (binding,) = mike.done("GET", "/v1/subscriptions/coupon/explain")["bindings"]
    assert binding["status"] == "finished"


def test_storm_over_plant_tells_when_a_bad_storm_comes_and_goes(server: LiveServer, tmp_path: Path):
    noaa, acme = server.user("noaa"), server.user("acme")
    printed, _ = _run(tmp_path, "storm_over_plant.py", noaa.url, noaa.name, noaa.key, acme.name, acme.key)
    assert printed.splitlines() == [
        f"03:00 {noaa.name}/kyrill enter {acme.name}.Plant7, wind 45 m/s",
        f"05:00 {noaa.name}/kyrill leave {acme.name}.Plant7 after 2 h, wind 46 m/s",
    ]


def test_buddy_list_tells_who_is_near_and_who_has_gone(server: LiveServer, tmp_path: Path):
    mike, anna, ben = (server.user(name) for name in ("mike", "anna", "ben"))
    names_and_keys = [text for person in (mike, anna, ben) for text in (person.name, person.key)]
    printed, _ = _run(tmp_path, "buddy_list.py", mike.url, *names_and_keys)
    assert printed.splitlines() == [
        f"18:03 {anna.name} is near you, at 116.3659 39.9000",
        f"18:03 {ben.name} is near you, at 116.3673 39.9000",
        f"18:06 {anna.name} has gone, after 3 minutes",
        f"18:08 {ben.name} has gone, after 5 minutes",
    ]


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_documented_typed_and_listed(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert f"python {path.name} " in (ast.get_docstring(tree) or "")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.returns is not None, node.name
            assert all(argument.annotation is not None for argument in node.args.args), node.name
    assert f"[{path.name}]({path.name})" in (path.parent / "README.md").read_text(encoding="utf-8")
