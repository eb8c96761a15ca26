"""The tutorial, followed to the letter."""

import json
from pathlib import Path

import pytest

from tests.docs.pages import run_page


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path):
    out = run_page("docs/tutorial.md", tmp_path)
    lines = out.splitlines()
    assert "refused, as it should be" in lines
    assert "refused: mike has an agent" in lines
    told = [json.loads(line) for line in lines if line.startswith("{") and '"offset"' in line]
    enter, leave, first = told[0], told[1], told[2]
    assert (enter["mode"], enter["target"], enter["ts"], enter["battery"]) == (
        "enter",
        "SYSTEM.Xidan",
        "2025-11-18T07:01:00.000Z",
        80,
    )
    assert (leave["mode"], leave["visit"], leave["duration_s"], leave["speed"]) == ("leave", enter["id"], 180.0, 1.3)
    assert (first["subscription"], first["mode"], first["ts"]) == ("slow", "enter", "2025-11-18T07:11:00.000Z")
    assert told[3:] == [{"offset": offset, "withdrawn": True} for offset in (1, 2, 3)]
    evaluators = [line.split()[2:] for line in lines if line.startswith("mike  SYSTEM.Xidan")]
    assert evaluators == [["active", "server", "no_agent"], ["active", "agent", "offloaded"]]
