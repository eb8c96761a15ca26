"""What replay says a subscription would have done is what a running server does with the same fixes."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matcher.instants import parse_instant
from server.cli.main import main
from tests.support.live_server import LiveServer, Person, serving
from zones.geojson import without_repeats

FIXES = 6000


@pytest.fixture(scope="module")
def town(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that has the neighbourhoods of Austin."""
    folder = tmp_path_factory.mktemp("austin")
    raw = json.loads(gzip.decompress((shared_data / "zones_austin_neighbourhoods.geojson.gz").read_bytes()))
    with serving(f"sqlite:///{folder / 'fencepost.db'}") as server:
        root = server.user("root", admin=True)
        document, _ = without_repeats(raw)
        root.done("POST", "/v1/zones:import", document, params={"owner": "SYSTEM"})
        yield server


def all_told(person: Person) -> Iterator[tuple[Any, ...]]:
    after = 0
    while page := person.told(after, limit=1000):
        for each in page:
            yield (each["oid"], each["ts"], each["target"], each["mode"], *each["loc"])
        after = page[-1]["offset"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("selector", "options"),
    [
        ("(*) within (SYSTEM.*)", {}),
        ("(*) within (SYSTEM.*) AND line < 40", {"tos": "first"}),
        ("(*) within (SYSTEM.*)", {"hysteresis_m": 50.0, "modes": ["enter"]}),
        ("NOT (*) within (SYSTEM.*)", {}),
        ("(*) within (SYSTEM.*) AND line BETWEEN 5 AND 30", {"tos": "every"}),
        ("('ME/bus-8854') distance (2000, *)", {}),
        ("('ME/bus-8854') distance (2000, *) AND line > 20 OR ('ME/bus-5012') within (SYSTEM.*)", {"tos": "every"}),
    ],
    ids=["once", "first", "dead band", "not", "every", "distance", "distance or within"],
)
def test_a_server_does_what_replay_says(selector, options, town: LiveServer, shared_data: Path, tmp_path: Path, capsys):
    acme = town.user("acme")
    selector = selector.replace("ME/", f"{acme.name}/")
    table = pq.read_table(shared_data / "traj_austin_bus.parquet").slice(0, FIXES)
    oids = [f"{acme.name}/{oid}" for oid in table["oid"].to_pylist()]
    lines = [int(oid[-2:]) for oid in oids]
    table = table.set_column(0, "oid", pa.array(oids)).append_column("line", pa.array(lines))
    pq.write_table(table, tmp_path / "fixes.parquet")

    words = [word for name, value in options.items() for word in _option(name, value)]
    argv = ["--trace", str(tmp_path / "fixes.parquet"), "--out", str(tmp_path / "told.parquet"), "--json"]
    zones = str(shared_data / "zones_austin_neighbourhoods.geojson.gz")
    assert main(["replay", "--zones", zones, "--selector", selector, *words, *argv]) == 0
    counts = json.loads(capsys.readouterr().out)
    expected = [
        (row["oid"], row["ts"], row["target"], row["mode"], row["lon"], row["lat"])
        for row in pq.read_table(tmp_path / "told.parquet").to_pylist()
    ]

    acme.subscribe("all", selector, **options)
    rows = table.to_pylist()
    events = [{"oid": r["oid"], "ts": r["ts"], "loc": [r["lon"], r["lat"]], "line": r["line"]} for r in rows]
    published = acme.publish(*events)
    told = [(oid, parse_instant(ts), *rest) for oid, ts, *rest in all_told(acme)]

    assert published["late"] == counts["late"]
    assert len(expected) > 100
    assert sorted(told, key=lambda each: each[1]) == expected


def _option(name: str, value: Any) -> list[str]:
    return [f"--{name.replace('_', '-')}", ",".join(value) if isinstance(value, list) else str(value)]
