"""The README: its order, and every command in it."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import ROOT, blocks, run_page

_MAKE = [line for block in blocks("README.md") for line in block.splitlines() if line.startswith("make ")]
# The interpreter that runs this test has everything, so `make` need not build a virtual environment of its own.
_HERE = [f"BIN={Path(sys.executable).parent}"] + [
    word for file in ("bin/python", "server.stamp", "dev.stamp") for word in ("-o", f".venv/{file}")
]
# What keeps a command from running this whole suite inside itself.
_SHORT = {
    "make test": ["ARGS=tests/privacy -q"],
    "make test-fast": ["ARGS=tests/privacy -q"],
    "make test-long": ["ARGS=tests/crash --collect-only -q"],
}


@contextmanager
def make(*words: str) -> Iterator[subprocess.Popen[str]]:
    """`make` with these words; interrupted at the end if it still runs."""
    with subprocess.Popen(
        ["make", "--no-print-directory", *_HERE, *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                interrupt(process)


def interrupt(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C does: everything in the foreground hears it."""
    os.killpg(process.pid, signal.SIGINT)


def test_it_has_its_parts_in_order():
    headings = re.findall(r"^## (.*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [
        "Run it in a minute",
        "What you will see",
        "By hand",
        "The words",
        "The parts and their arrows",
        "Measured numbers",
        "When not to use it",
        "Where the docs are",
        "How to work on it",
    ]


def test_every_make_command_is_tried_here():
    assert set(_MAKE) == {"make demo", 'make demo ARGS="--seconds 20 --agents 50 --json"', *_SHORT}


@pytest.mark.slow
@pytest.mark.parametrize("command", _SHORT)
def test_a_command_for_developers_runs(command: str):
    with make(*command.split()[1:], *_SHORT[command]) as process:
        out, _ = process.communicate(timeout=280)
    assert process.returncode == 0, out
    assert re.search(r"\d+ (passed|tests collected|/\d+ tests collected)", out), out


@pytest.mark.slow
def test_the_demo_that_ends_by_itself_prints_its_figures():
    with make("demo", "ARGS=--seconds 20 --agents 50 --json") as process:
        out, _ = process.communicate(timeout=150)
    assert process.returncode == 0, out
    figures = json.loads(out.splitlines()[-1])
    assert (figures["seconds"], figures["agents"], figures["fixes"]) == (20, 50, 2000)


@pytest.mark.slow
def test_the_demo_goes_on_until_it_is_interrupted():
    with make("demo") as process:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if re.search(r"  (enter|leave)  ", line):
                break
        assert any("API docs are at http://" in line for line in seen), seen
        interrupt(process)
        rest, _ = process.communicate(timeout=60)
    assert "agents had" in rest, "".join(seen) + rest


@pytest.mark.slow
def test_by_hand_gives_one_enter_and_one_leave(tmp_path: Path):
    out = run_page("README.md", tmp_path)
    told = [line.split() for line in out.splitlines() if "  coupon" in line]
    assert [(words[0], words[2], words[3], words[4]) for words in told] == [
        ("1", "mike", "enter", "SYSTEM.Xidan"),
        ("2", "mike", "leave", "SYSTEM.Xidan"),
    ]
    assert "4 fixes gave 2 edges" in out


def test_its_numbers_are_those_that_were_measured():
    def figures(name: str):
        return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]

    def listed(runs: list[Any], name: str) -> str:
        return ", ".join(f"{each[name]['median']:.0f}" for each in runs)

    large = figures("connected_agents")["large"]
    agents, publishing, ratio = large["with_agents"], large["without_agents"], large["without_to_with"]
    expected = [
        f"| {agents['memory']['per_connection_kib']['median']:.0f} KiB |",
        f"| {agents['cpu']['server']['median']:.1%} |".replace("%", " %"),
        f"| {publishing['cpu']['server']['median']:.1%}: ".replace("%", " %")
        + f"{ratio['server_cpu']['median']:.1f} times as much |",
        f"| {ratio['messages_while_driving']['median']:.1f} times fewer |",
        f"| {agents['latency_ms']['heard_p50']['median']} ms, {agents['latency_ms']['heard_p99']['median']} ms |",
    ]
    peers = [figures("region_peers")["large"][kind] for kind in "ABC"]
    mixed = [
        figures("mixed_filters")["large"]["half_with_a_region"][kind] for kind in ("with_region", "without_region")
    ]
    pairs = figures("ten_million_pairs")
    expected += [
        f"| {listed(peers, 'ours_us')} µs |",
        *(
            f"| {listed(peers, f'{peer}_to_ours')} times as long |"
            for peer in ("strtree_relate", "strtree_prepared_predicates", "postgis")
        ),
        f"| {listed(mixed, 'engine_us')} µs |",
        f"| {listed(mixed, 'loop_to_engine')} times as long |",
        f"| {figures('million_constraints')['peak_gib']['median']} GiB |",
        f"| {pairs['pairs']:,} pairs, {pairs['wrong']} wrong |",
    ]
    places = [figures("points_in_zones")[kind] for kind in ("areas_100000", "overlapping_100000")]
    published = figures("published_batches")["large"]
    expected += [
        "| " + ", ".join(f"{each['ours_us']['median']:.2f}" for each in places) + " µs |",
        f"| {listed(places, 'strtree_one_by_one_to_ours')} and "
        f"{listed(places, 'strtree_bulk_to_ours')} times as long |",
        f"| {published['one_subscription']['server_cpu_us_per_fix']['median']:.0f} µs |",
        f"| {published['in_process']['fix_us']['p99']['median']:.0f} µs |",
        f"| {figures('distance_edges')['large']['fixes_per_second']['median']:,} fixes/s |",
    ]
    for database, words in (("sqlite", "under {} kill -9"), ("postgis", "on PostGIS, {} kills")):
        siege = figures(f"kill9_{database}")
        assert (siege["notifications"], siege["lost"], siege["doubled"]) == (10_000, 0, 0)
        expected.append(words.format(siege["kills_server"] + siege["kills_agents"]))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [words for words in expected if words not in readme] == []
