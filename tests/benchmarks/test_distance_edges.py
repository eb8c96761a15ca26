"""The benchmark of distances runs, is held to a plain loop, and gives the figures that it promises."""

import json
from pathlib import Path

import pytest

from benchmarks import distance_edges
from matcher.proximity import Proximity


@pytest.mark.slow
def test_the_figures_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--objects", "100", "--fixes", "300", "--runs", "1", "--out", str(tmp_path), "--json"]
    assert distance_edges.main(arguments) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert json.loads((tmp_path / "distance_edges.json").read_text())["figures"] == figures
    assert figures["checked_notifications"] > 0
    assert figures["large"]["edges"]["median"] == 500
    assert figures["large"]["fixes_per_second"]["min"] > 0
    assert list(figures["us_per_fix_by_objects"]) == ["10", "100", "1000"]
    assert list(figures["us_per_fix_by_objects_if_1000_move"]) == ["10", "100", "1000"]
    assert list(figures["us_per_fix_by_edges_of_the_mover"]) == ["2", "10", "50"]


def test_a_wrong_answer_gives_no_figures(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fold = Proximity.fold

    def forgetful(self, mover, event, states):
        return None if mover == "o:7" else fold(self, mover, event, states)

    monkeypatch.setattr(Proximity, "fold", forgetful)
    assert distance_edges.main(["--objects", "100", "--fixes", "300", "--runs", "1", "--json"]) == 1
    assert capsys.readouterr().out == ""
