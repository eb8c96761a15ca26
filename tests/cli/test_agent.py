"""`fencepost agent` against a real server, as a device runs it: with nothing of the server's to import."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_server import LiveServer, Person, serving
from tests.support.sources import ROOT

# What a device does not install is not there for these processes either.
_ON_A_DEVICE = """
import sys
for name in ("alembic", "fastapi", "geoalchemy2", "lark", "prometheus_client", "psycopg", "pydantic", "rtree",
             "sqlalchemy", "starlette", "uvicorn", "httpx", "privacy"):
    sys.modules[name] = None
from server.cli.main import main
sys.exit(main())
"""
_NOWHERE = "http://127.0.0.1:9"
_PLANNED = "The agent has its plan: fixes are evaluated here from now on."
_START_MS = 1_760_000_000_000
_FIGURES = [
    *("fixes", "skipped", "invalid", "late", "suspended", "edges", "waiting", "dead"),
    *("messages_sent", "messages_received", "bytes_sent"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with serving(f"sqlite:///{tmp_path_factory.mktemp('agent') / 'fencepost.db'}") as live:
        yield live


@pytest.fixture
def mike(server: LiveServer) -> Person:
    """Has a zone from 10 to 11 east and wants to know when something of his own is there."""
    person = server.user("mike")
    person.square(f"{person.name}.HOME", 10.0, 50.0)
    person.subscribe("home", f"(*) within ({person.name}.HOME)")
    return person


def _command(*options: str) -> list[str]:
    return [sys.executable, "-c", _ON_A_DEVICE, "agent", *options]


def _environment(**variables: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    return {**clean, "PYTHONPATH": str(ROOT), **variables}


def _agent(folder: Path, *options: str, stdin: str = "", **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        _command(*options),
        cwd=folder,
        env=_environment(**variables),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def _start(folder: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        _command(*options),
        cwd=folder,
        env=_environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def _running(folder: Path, *options: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    process = _start(folder, *options, **variables)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _wait_for(process: subprocess.Popen[str], sentence: str) -> None:
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if sentence in line:
            return
    pytest.fail("".join(said))


def _invited(person: Person, oid: str = "") -> str:
    token: str = person.done("POST", "/v1/agents", {"oid": oid or person.name})["token"]
    return token


def _csv(folder: Path, lons: str, name: str = "trace.csv", *, step_ms: int = 1000, more: str = "") -> str:
    """A trace along 50.5 north, one fix for each longitude."""
    header, value = more.partition("=")[::2]
    rows = [f"ts,lon,lat{',' if more else ''}{header}"]
    for number, lon in enumerate(lons.split()):
        rows.append(f"{_START_MS + number * step_ms},{lon},50.5{',' if more else ''}{value}")
    (folder / name).write_text("\n".join(rows) + "\n")
    return name


def _edges(person: Person) -> list[str]:
    return [notification["mode"] for notification in person.told()]


def test_a_token_and_a_trace_become_notifications(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    trace = _csv(tmp_path, "9.5 10.5 10.6 11.5 10.2", more="speed=12.5")
    code, out, err = _agent(tmp_path, "--trace", trace, "--url", server.url, "--token", _invited(mike))
    assert code == 0, err
    assert out == out.strip() + "\n"
    assert out.startswith("5 fixes gave 3 edges in ")
    assert out.endswith("; 0 wait to be sent, 0 were refused.\n")
    assert err.splitlines() == ["Enrolled; the credential is in fencepost-agent.credential.", _PLANNED]
    told = mike.told()
    assert [each["mode"] for each in told] == ["enter", "leave", "enter"]
    assert {(each["oid"], each["target"], each["speed"]) for each in told} == {(mike.name, f"{mike.name}.HOME", 12.5)}


def test_the_credential_is_its_owners_alone_and_the_next_run_uses_it(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    first, second = _csv(tmp_path, "9.5 10.5"), tmp_path / "later.jsonl"
    kept = tmp_path / "keys" / "van.credential"
    kept.parent.mkdir()
    options = ("--url", server.url, "--credential", str(kept), "--json")
    code, _, err = _agent(tmp_path, "--trace", first, "--token", _invited(mike), *options)
    assert code == 0, err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text().startswith("fpa_")
    assert [path.name for path in kept.parent.iterdir()] == ["van.credential"]
    fixes = [{"ts": _START_MS + 60_000 + n, "loc": [lon, 50.5]} for n, lon in enumerate((10.4, 12.0))]
    second.write_text("\n".join(map(json.dumps, fixes)))
    code, out, err = _agent(tmp_path, "--trace", "later.jsonl", *options)
    assert code == 0, err
    assert out.count("\n") == 1
    assert list(json.loads(out)) == _FIGURES
    assert (json.loads(out)["fixes"], json.loads(out)["edges"]) == (2, 1)
    assert _edges(mike) == ["enter", "leave"]


@pytest.mark.slow
def test_a_credential_of_the_environment_goes_before_the_file(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    (tmp_path / "fencepost-agent.credential").write_text("fpa_1_somebodyelses")
    code, out, err = _agent(
        tmp_path, "--trace", _csv(tmp_path, "10.5"), "--url", server.url, FENCEPOST_CREDENTIAL=mike.enrol()
    )
    assert code == 0, err
    assert out.startswith("1 fixes gave 1 edges")


@pytest.mark.slow
def test_the_server_can_be_named_by_the_environment(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    code, _, err = _agent(
        tmp_path, "--trace", _csv(tmp_path, "10.5"), FENCEPOST_URL=server.url, FENCEPOST_CREDENTIAL=mike.enrol()
    )
    assert code == 0, err
    assert _edges(mike) == ["enter"]


@pytest.mark.slow
@pytest.mark.parametrize("wire", ["json", "msgpack"])
def test_both_wires_carry_the_same(server: LiveServer, mike: Person, tmp_path: Path, wire: str) -> None:
    options = ("--trace", _csv(tmp_path, "9.5 10.5 12"), "--url", server.url, "--wire", wire)
    code, _, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL=mike.enrol())
    assert code == 0, err
    assert _edges(mike) == ["enter", "leave"]


@pytest.mark.slow
def test_one_of_several_objects_is_replayed(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    rows = ["oid,ts,lon,lat", *(f"{oid},{_START_MS + n},{lon},50.5" for n, (oid, lon) in enumerate(_MIXED))]
    (tmp_path / "fleet.csv").write_text("\n".join(rows))
    options = ("--trace", "fleet.csv", "--url", server.url, "--json")
    credential = mike.enrol()
    code, out, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL=credential)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("fencepost: fleet.csv has fixes of several objects (a and b).")
    assert mike.told() == []
    (tmp_path / "fencepost-agent.db").unlink()
    code, out, err = _agent(tmp_path, *options, "--oid", "b", FENCEPOST_CREDENTIAL=credential)
    assert code == 0, err
    assert json.loads(out)["fixes"] == 2
    assert [each["loc"][0] for each in mike.told()] == [10.7]


_MIXED = [("a", 9.5), ("b", 9.0), ("a", 10.5), ("b", 10.7), ("a", 12.0)]


@pytest.mark.slow
def test_speed_keeps_the_pace_of_the_trace(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    trace = _csv(tmp_path, "9.5 10.5 12", step_ms=100_000)
    with _running(tmp_path, "--trace", trace, "--url", server.url, "--speed", "200", "--json",
                  FENCEPOST_CREDENTIAL=mike.enrol()) as process:  # fmt: skip
        _wait_for(process, _PLANNED)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert json.loads(out)["fixes"] == 3
    assert _edges(mike) == ["enter", "leave"]


def test_gpsd_is_read_from_stdin(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"class": "VERSION", "release": "3.25"},
        {"class": "TPV", "mode": 1, "time": "2026-01-01T00:00:00.000Z"},
        {"class": "TPV", "mode": 3, "time": "2026-01-01T00:00:01.000Z", "lon": 9.5, "lat": 50.5, "speed": 3.5},
        {"class": "TPV", "mode": 3, "time": "2026-01-01T00:00:02.000Z", "lon": 10.5, "lat": 50.5, "eph": 4.5},
    ]
    text = "\n".join([*map(json.dumps, lines), "{broken", json.dumps({**lines[3], "time": "never"})])
    options = ("--gpsd", "--url", server.url, "--json")
    code, out, err = _agent(tmp_path, *options, stdin=text, FENCEPOST_CREDENTIAL=mike.enrol())
    assert code == 0, err
    assert {name: json.loads(out)[name] for name in ("fixes", "edges", "skipped")} == {
        "fixes": 2, "edges": 1, "skipped": 2,
    }  # fmt: skip
    (told,) = mike.told()
    assert (told["mode"], told["unc"]) == ("enter", 4.5)


@pytest.mark.slow
def test_stopping_while_stdin_is_open_ends_without_a_complaint(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    fix = {"class": "TPV", "mode": 2, "time": "2026-01-01T00:00:01.000Z", "lon": 10.5, "lat": 50.5}
    with _running(tmp_path, "--gpsd", "--url", server.url, FENCEPOST_CREDENTIAL=mike.enrol()) as process:
        _wait_for(process, _PLANNED)
        assert process.stdin is not None
        process.stdin.write(json.dumps(fix) + "\n")
        process.stdin.flush()
        assert [each["mode"] for each in mike.told(wait_s=20)] == ["enter"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert process.stdout is not None
        assert process.stdout.read().startswith("1 fixes gave 1 edges")
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize("as_json", [True, False])
def test_notifications_to_the_devices_own_user_are_printed(
    server: LiveServer, mike: Person, tmp_path: Path, as_json: bool
) -> None:
    options = ["--trace", _csv(tmp_path, "9.5 10.5 12"), "--url", server.url, "--notifications"]
    code, out, err = _agent(tmp_path, *options, *["--json"] * as_json, FENCEPOST_CREDENTIAL=mike.enrol())
    assert code == 0, err
    *told, figures = out.splitlines()
    if as_json:
        assert [json.loads(line) for line in told] == mike.told()
        assert list(json.loads(figures)) == _FIGURES
    else:
        assert [line.split()[1:] for line in told] == [
            ["enter", mike.name, f"{mike.name}.HOME"],
            ["leave", mike.name, f"{mike.name}.HOME"],
        ]
    assert len(told) == 2


@pytest.mark.slow
def test_notifications_that_were_printed_are_not_printed_again(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    options = ["--url", server.url, "--notifications", "--json"]
    credential = mike.enrol()
    _agent(tmp_path, "--trace", _csv(tmp_path, "9.5 10.5"), *options, FENCEPOST_CREDENTIAL=credential)
    later = _csv(tmp_path, "9.5 10.5 12", "later.csv")
    code, out, err = _agent(tmp_path, "--trace", later, *options, FENCEPOST_CREDENTIAL=credential)
    assert code == 0, err
    modes = [json.loads(line).get("mode") for line in out.splitlines()[:-1]]
    assert modes[-1] == "leave"
    assert len(modes) <= 2  # at least once: the last of the first run may come again, what was before it may not


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_code_0_and_keeps_what_the_server_has_not_got(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, number: signal.Signals
) -> None:
    database = f"sqlite:///{tmp_path_factory.mktemp('outage') / 'fencepost.db'}"
    with serving(database) as live:
        mike = live.user("mike")
        mike.square(f"{mike.name}.HOME", 10.0, 50.0)
        mike.subscribe("home", f"(*) within ({mike.name}.HOME)")
        credential = mike.enrol()
        process = _start(tmp_path, "--gpsd", "--url", live.url, "--json", FENCEPOST_CREDENTIAL=credential)
        _wait_for(process, _PLANNED)
    # The server is gone; the device goes on.
    try:
        assert process.stdin is not None
        for second, lon in enumerate((9.5, 10.5, 12.0)):
            time = f"2026-01-01T00:00:0{second}.000Z"
            process.stdin.write(json.dumps({"class": "TPV", "mode": 2, "time": time, "lon": lon, "lat": 50.5}) + "\n")
        process.stdin.flush()
        _until_waiting(tmp_path / "fencepost-agent.db", 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 0, err
    assert {name: json.loads(out)[name] for name in ("fixes", "edges", "waiting")} == {
        "fixes": 3, "edges": 2, "waiting": 2,
    }  # fmt: skip
    assert "Traceback" not in err
    # It comes back, and so does the server.
    with serving(database) as live:
        code, out, err = _agent(tmp_path, "--gpsd", "--url", live.url, "--json", FENCEPOST_CREDENTIAL=credential)
        assert code == 0, err
        assert json.loads(out)["waiting"] == 0
        again = Person(mike.name, mike.key, live.url, live.http)
        assert _edges(again) == ["enter", "leave"]


def _until_waiting(path: Path, count: int) -> None:
    """Look into the outbox until so many reports wait in it; the timeout of the test ends it else."""
    waiting = -1
    while waiting != count:
        # A copy: the file is the agent's alone while it runs.
        names = [path.with_name(path.name + suffix) for suffix in ("", "-wal")]
        copies = [name.with_name("copy-" + name.name) for name in names]
        for name, copy in zip(names, copies, strict=True):
            copy.write_bytes(name.read_bytes() if name.exists() else b"")
        try:
            with closing(sqlite3.connect(copies[0])) as db:
                (waiting,) = db.execute("SELECT count(*) FROM outbox").fetchone()
        except sqlite3.DatabaseError:  # copied in the middle of a write
            waiting = -1
        for leftover in path.parent.glob("copy-*"):
            leftover.unlink()


@pytest.mark.slow
def test_a_signal_while_no_server_answers_ends_it_too(tmp_path: Path) -> None:
    with _running(tmp_path, "--trace", _csv(tmp_path, "9 10"), "--url", _NOWHERE, "--json",
                  FENCEPOST_CREDENTIAL="fpa_1_secretsecretsecret") as process:  # fmt: skip
        _wait_for(process, f"The server at {_NOWHERE} has not given a plan yet")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert json.loads(out)["edges"] == 0


def test_a_wrong_token_is_one_sentence_and_leaves_no_file(server: LiveServer, tmp_path: Path) -> None:
    options = ("--trace", _csv(tmp_path, "9 10"), "--url", server.url, "--token", "fpt_wrong")
    code, out, err = _agent(tmp_path, *options)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert err.startswith("fencepost: The enrolment was refused")
    assert "used or more than 15 minutes old" in err
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]


@pytest.mark.slow
def test_a_wrong_token_leaves_the_credential_that_was_there(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    kept = tmp_path / "fencepost-agent.credential"
    kept.write_text(mike.enrol())
    before = kept.read_text()
    options = ("--trace", _csv(tmp_path, "9 10"), "--url", server.url, "--token", "fpt_wrong")
    assert _agent(tmp_path, *options)[0] == 1
    assert kept.read_text() == before


@pytest.mark.slow
def test_a_token_is_not_used_up_when_the_trace_can_not_be_read(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    token = _invited(mike)
    code, _, err = _agent(tmp_path, "--trace", "nowhere.csv", "--url", server.url, "--token", token)
    assert code == 1
    assert "nowhere.csv can't be read" in err
    code, _, err = _agent(tmp_path, "--trace", _csv(tmp_path, "10.5"), "--url", server.url, "--token", token)
    assert code == 0, err


@pytest.mark.slow
def test_a_token_is_not_used_up_when_the_credential_can_not_be_kept(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    token, trace = _invited(mike), _csv(tmp_path, "10.5")
    options = ("--trace", trace, "--url", server.url, "--token", token)
    code, _, err = _agent(tmp_path, *options, "--credential", "no/such/folder/credential")
    assert code == 1
    assert err.count("\n") == 1
    assert "No such file or directory" in err
    code, _, err = _agent(tmp_path, *options)
    assert code == 0, err


def test_a_device_without_a_credential_says_how_to_get_one(tmp_path: Path) -> None:
    code, out, err = _agent(tmp_path, "--trace", _csv(tmp_path, "9 10"), "--url", _NOWHERE)
    assert (code, out) == (1, "")
    assert err == (
        "fencepost: This device has no credential: there is no file fencepost-agent.credential. "
        "Enrol it once: `fencepost agents enrol OID` prints a token for --token.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"fpk_0123_secret", b"\xff\xfe\x00", b"fpa_1_\xc3\xa9\xc3\xa9"])
def test_a_file_that_holds_no_credential_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "fencepost-agent.credential").write_bytes(content)
    code, _, err = _agent(tmp_path, "--trace", _csv(tmp_path, "9 10"), "--url", _NOWHERE)
    assert code == 1
    assert err == ("fencepost: That is not an agent's credential. It begins with fpa_ and is what enrolling gave.\n")


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--notifications"]])
def test_a_revoked_agent_is_told_so(server: LiveServer, mike: Person, tmp_path: Path, more: list[str]) -> None:
    credential = mike.enrol()
    mike.done("DELETE", f"/v1/agents/{credential.split('_')[1]}")
    options = ("--trace", _csv(tmp_path, "9 10"), "--url", server.url, *more)
    code, out, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL=credential)
    assert (code, out) == (1, "")
    assert err == (
        "fencepost: The server no longer accepts this agent's credential. Enrol the device again with a new token.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--notifications"]])
def test_an_agent_that_is_revoked_while_it_runs_is_told_so(
    server: LiveServer, mike: Person, tmp_path: Path, more: list[str]
) -> None:
    credential = mike.enrol()
    with _running(tmp_path, "--gpsd", "--url", server.url, *more, FENCEPOST_CREDENTIAL=credential) as process:
        _wait_for(process, _PLANNED)
        mike.done("DELETE", f"/v1/agents/{credential.split('_')[1]}")
        assert process.wait(timeout=20) == 1
        assert process.stderr is not None
        assert process.stderr.read() == (
            "fencepost: The server no longer accepts this agent's credential. "
            "Enrol the device again with a new token.\n"
        )


@pytest.mark.slow
def test_two_agents_can_not_share_a_state_file(server: LiveServer, mike: Person, tmp_path: Path) -> None:
    credential = mike.enrol()
    with _running(tmp_path, "--gpsd", "--url", server.url, FENCEPOST_CREDENTIAL=credential) as process:
        _wait_for(process, _PLANNED)
        options = ("--trace", _csv(tmp_path, "9 10"), "--url", server.url)
        code, out, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL=credential)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "fencepost-agent.db" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no column lat, lon, ts"),
        ("ts,lon\n1,2\n", "has no column lat"),
        ("ts,lon,lat\n1,2,3,4\n", "more fields than the header"),
        ("ts,lon,lat\nsoon,2,3\n", "Line 2 of trace.csv"),
        ("ts,lon,lat\n1,2,91\n", "Line 2 of trace.csv"),
        ("ts,lon,lat\n1,nan,3\n", "Line 2 of trace.csv"),
    ],
)
def test_a_bad_trace_is_one_sentence(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(text)
    options = ("--trace", "trace.csv", "--url", _NOWHERE)
    code, out, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL="fpa_1_secretsecretsecret")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert expected in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--trace", "a.csv", "--gpsd"],
        ["--trace"],
        ["--gpsd", "--speed", "0"],
        ["--gpsd", "--speed", "nan"],
        ["--gpsd", "--speed", "fast"],
        ["--gpsd", "--wire", "xml"],
        ["--gpsd", "now"],
    ],
)
def test_bad_usage_is_code_2(options: list[str], tmp_path: Path) -> None:
    code, out, err = _agent(tmp_path, *options)
    assert (code, out) == (2, "")
    assert "error:" in err
    assert "_factor" not in err


@pytest.mark.slow
def test_a_url_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    options = ("--trace", _csv(tmp_path, "9 10"), "--url", "fencepost.example.com")
    code, _, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL="fpa_1_secretsecretsecret")
    assert code == 1
    assert err.startswith("fencepost: The server's URL 'fencepost.example.com' is not one.")


@pytest.mark.slow
def test_verbose_logs_names_of_events_and_no_positions_or_secrets(
    server: LiveServer, mike: Person, tmp_path: Path
) -> None:
    credential = mike.enrol()
    mike.done("DELETE", f"/v1/agents/{credential.split('_')[1]}")
    other = mike.enrol()
    (tmp_path / "trace.csv").write_text(f"ts,lon,lat\n{_START_MS},10.54321,50.54321\n")
    for each, expected in ((credential, 1), (other, 0)):
        options = ("--trace", "trace.csv", "--url", server.url, "--verbose")
        code, _, err = _agent(tmp_path, *options, FENCEPOST_CREDENTIAL=each)
        assert code == expected
        assert "54321" not in err
        assert each.split("_", 2)[2] not in err
