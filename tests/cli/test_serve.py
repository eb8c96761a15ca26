"""`fencepost serve` as a process of its own: it says where it is, answers, and stops in order."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def command(*argv: str) -> list[str]:
    return [sys.executable, "-m", "server.cli.main", *argv]


@contextmanager
def serving(url: str, *argv: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a free port, and where it is."""
    process = subprocess.Popen(
        command("serve", "--database", url, "--port", "0", "--json", *argv),
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        yield process, json.loads(line)["url"]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def run(*argv: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*argv), cwd=_ROOT, env=os.environ | environ, capture_output=True, text=True, timeout=60
    )


def answer(url: str) -> int:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as response:
        status: int = response.status
        return status


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_migrates_serves_and_stops_in_order(sqlite_url: str, how: signal.Signals):
    with serving(sqlite_url) as (process, url):
        assert answer(f"{url}/healthz") == 200
        assert answer(f"{url}/docs") == 200
        process.send_signal(how)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_behind_the_announcement_stops_it_too(sqlite_url: str, how: signal.Signals):
    for _ in range(3):
        with serving(sqlite_url) as (process, _):
            process.send_signal(how)
            _, err = process.communicate(timeout=30)
            assert (process.returncode, err) == (0, "")


def test_it_serves_from_postgis_too(postgis_url: str):
    with serving(postgis_url) as (process, url):
        assert answer(f"{url}/readyz") == 200
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0


@pytest.mark.slow
def test_a_second_server_on_the_same_database_is_refused(sqlite_url: str):
    with serving(sqlite_url) as (_, url):
        done = run("serve", "--database", sqlite_url, "--port", "0")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("fencepost: Another server is running on the database sqlite:///")
        assert done.stderr.count("\n") == 1
        assert answer(f"{url}/readyz") == 200


def test_without_upgrade_it_refuses_a_database_without_tables(sqlite_url: str):
    done = run("serve", "--database", sqlite_url, "--port", "0", "--no-upgrade")
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no tables of Fencepost yet" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_one_sentence(sqlite_url: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--database", sqlite_url, "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"fencepost: Can't listen on 127.0.0.1 port {port}: Address already in use.")


def test_a_setting_that_can_not_work_is_one_sentence(sqlite_url: str):
    done = run("serve", "--database", sqlite_url, FENCEPOST_LEASE_S="soon")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fencepost: FENCEPOST_LEASE_S is 'soon'")


@pytest.mark.slow
def test_the_command_line_and_the_server_work_together(sqlite_url: str, tmp_path: Path):
    """Zones in and out, a grant, a subscription and an agent, by the commands alone."""
    assert run("db", "upgrade", "--database", sqlite_url).returncode == 0
    keys = {
        name: run("users", "add", name, *options, "--database", sqlite_url).stdout.strip()
        for name, options in {"root": ["--admin"], "mike": [], "anna": []}.items()
    }
    zones = tmp_path / "zones.geojson"
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    feature = {"type": "Feature", "id": "Xidan", "properties": {"level": 3}, "geometry": square}
    zones.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))

    with serving(sqlite_url) as (_process, url):

        def ask(who: str, *argv: str) -> list[dict]:
            done = run(*argv, "--json", FENCEPOST_URL=url, FENCEPOST_KEY=keys[who])
            assert (done.returncode, done.stderr) == (0, "")
            return [json.loads(line) for line in done.stdout.splitlines()]

        (imported,) = ask("root", "zones", "import", str(zones), "--owner", "SYSTEM")
        assert imported["imported"] == 1
        assert [zone["name"] for zone in ask("anna", "zones", "list")] == ["SYSTEM.Xidan"]
        (exported,) = ask("anna", "zones", "export", "--owner", "SYSTEM")
        assert [(each["id"], each["properties"]) for each in exported["features"]] == [("Xidan", {"level": 3})]

        ask("mike", "grants", "add", "--who", "anna", "--operations", "enter,leave")
        (grant,) = ask("mike", "grants", "list")
        assert (grant["who"], sorted(grant["operations"])) == ("anna", ["enter", "leave"])

        ask("anna", "subscriptions", "put", "s1", "(mike) within (SYSTEM.Xidan)", "--dwell-s", "5")
        (subscription,) = ask("anna", "subscriptions", "list")
        assert (subscription["id"], subscription["dwell_s"]) == ("s1", 5)

        (invitation,) = ask("mike", "agents", "enrol", "mike")
        assert invitation["token"].startswith("fpt_")
        (agent,) = ask("mike", "agents", "list")
        assert agent["oid"] == "mike"

        assert ask("anna", "notifications") == []
        ask("mike", "agents", "revoke", str(agent["id"]))
        ask("mike", "grants", "remove", str(grant["id"]))
        ask("anna", "subscriptions", "delete", "s1")
        refused = run("zones", "delete", "SYSTEM.Xidan", FENCEPOST_URL=url, FENCEPOST_KEY=keys["anna"])
        assert refused.returncode == 1
        assert refused.stderr.startswith("fencepost: ")
        ask("root", "zones", "delete", "SYSTEM.Xidan")
        assert ask("anna", "zones", "list") == []
