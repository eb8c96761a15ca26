"""`fencepost demo` as somebody runs it: a process with two streams, an exit code, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.support.sources import ROOT

_FIELDS = ["seconds", "agents", "fixes", "enters", "leaves", "messages_sent", "messages_server_side", "savings"]
_EDGE = re.compile(r"\d\d:\d\d:\d\d\.\d{3}  (enter|leave)  acme/van\d+ +SYSTEM\.\w+(  after \d+\.\d s)?$")
_COUNT = re.compile(r"\d+ messages sent; server-side matching would have needed \d+ \(.* saved.*\)\.$")
_END_S = 60


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """Where the demo makes its temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


@contextmanager
def _started(temporary: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TMPDIR": str(temporary), "FENCEPOST_DATABASE": "sqlite:////nowhere/at/all.db"}
    process = subprocess.Popen(
        [sys.executable, "-m", "server.cli.main", "demo", *options],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=_END_S)


def _run(temporary: Path, *options: str) -> tuple[int, str, str]:
    with _started(temporary, *options) as process:
        out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def _assert_nothing_is_left(temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
    left = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdecimal() else b""
        except OSError:  # it ended just now
            continue
        if str(temporary).encode() in command:
            left.append(command)
    assert left == []


@pytest.mark.slow
def test_json_is_one_object_with_the_promised_figures_that_add_up(temporary: Path) -> None:
    code, out, err = _run(temporary, "--seconds", "3", "--agents", "8", "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    figures = json.loads(out)
    assert list(figures) == _FIELDS
    assert (figures["seconds"], figures["agents"]) == (3, 8)
    assert figures["fixes"] == figures["messages_server_side"] == 3 * 2 * 8
    assert figures["enters"] >= figures["leaves"] >= 0
    assert figures["enters"] > 0
    edges = figures["enters"] + figures["leaves"]
    assert 8 < figures["messages_sent"] <= 8 + edges  # a plan for each agent, and no more reports than edges
    assert figures["savings"] == pytest.approx(1 - figures["messages_sent"] / figures["messages_server_side"])
    assert sum(bool(_EDGE.match(line)) for line in err.splitlines()) == edges
    assert "Traceback" not in err
    _assert_nothing_is_left(temporary)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_edges(temporary: Path) -> None:
    options = ("--seconds", "2", "--agents", "6", "--seed", "5", "--json")
    one, other = (json.loads(_run(temporary, *options)[1]) for _ in range(2))
    assert {name: one[name] for name in ("fixes", "enters", "leaves")} == {
        name: other[name] for name in ("fixes", "enters", "leaves")
    }


@pytest.mark.slow
def test_a_watcher_sees_edges_and_a_running_count_and_can_open_the_docs(temporary: Path) -> None:
    with _started(temporary, "--seconds", "4", "--agents", "8") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line.rstrip("\n"))
            found = re.search(r"http://127\.0\.0\.1:\d+/docs", line)
            if found:
                with build_opener(ProxyHandler({})).open(found[0], timeout=30) as answer:
                    assert answer.status == 200
                break
        else:
            pytest.fail("\n".join(said))
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    lines = out.splitlines()
    modes = [match[1] for line in lines if (match := _EDGE.match(line))]
    assert "enter" in modes
    assert sum(bool(_COUNT.match(line)) for line in err.splitlines()) >= 2
    summary = re.search(r"gave (\d+) enter and (\d+) leave\.", out)
    assert summary is not None
    assert (int(summary[1]), int(summary[2])) == (modes.count("enter"), modes.count("leave"))
    _assert_nothing_is_left(temporary)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_vans_drive_ends_it_with_the_figures_so_far(temporary: Path, number: signal.Signals) -> None:
    with _started(temporary, "--agents", "4") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if _COUNT.match(line):
                process.send_signal(number)
                break
        out, err = process.communicate(timeout=_END_S)
    assert process.returncode == 0, err
    assert "4 agents had" in out
    assert "Traceback" not in err
    _assert_nothing_is_left(temporary)


@pytest.mark.slow
def test_a_signal_before_the_vans_drive_ends_it_with_one_sentence(temporary: Path) -> None:
    with _started(temporary, "--agents", "4", "--json") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Starting")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=_END_S)
    assert process.returncode == 1
    assert out == ""
    assert err.splitlines()[-1] == "fencepost: Stopped before the end."
    assert "Traceback" not in err
    _assert_nothing_is_left(temporary)


@pytest.mark.slow
def test_a_server_that_dies_ends_the_demo_with_one_sentence(temporary: Path) -> None:
    with _started(temporary, "--agents", "2", "--json") as process:
        assert process.stderr is not None
        for line in process.stderr:
            if _COUNT.match(line):
                break
        for pid in _children(process.pid):
            os.kill(pid, signal.SIGKILL)
        out, err = process.communicate(timeout=_END_S)
    assert process.returncode == 1
    assert out == ""
    assert err.splitlines()[-1].startswith("fencepost: The server ended by itself (exit code -9)")
    assert "Traceback" not in err
    _assert_nothing_is_left(temporary)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--seconds", "0"],
        ["--seconds", "-3"],
        ["--seconds", "nan"],
        ["--seconds", "soon"],
        ["--agents", "0"],
        ["--agents", "1001"],
        ["--agents", "1.5"],
        ["--wheels", "4"],
        ["now"],
    ],
)
def test_bad_usage_is_code_2_before_anything_is_started(options: list[str], temporary: Path) -> None:
    code, out, err = _run(temporary, *options)
    assert code == 2
    assert out == ""
    assert "error:" in err
    assert "invalid _" not in err  # the name of a function of ours says nothing
    assert "Traceback" not in err
    _assert_nothing_is_left(temporary)


def _children(pid: int) -> list[int]:
    task = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in task.split()]
