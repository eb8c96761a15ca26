"""Comparing two results: figures by name, and changed only if the runs do not overlap."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import Change, compare, main
from benchmarks.results_file import save_result
from benchmarks.support.spread import lines, percentile, spread


def test_a_figure_has_changed_when_the_runs_do_not_overlap() -> None:
    old = {"figures": {"cpu": spread([1.0, 2.0, 3.0]), "latency": spread([1.0, 1.5, 2.0])}}
    new = {"figures": {"cpu": spread([2.5, 4.0, 5.0]), "latency": spread([2.5, 3.0, 3.5])}}
    assert compare(old, new) == [
        Change("cpu", 2.0, 4.0, 2.0, differs=False),
        Change("latency", 1.5, 3.0, 2.0, differs=True),
    ]


def test_a_figure_that_only_one_result_has_is_shown() -> None:
    changes = compare({"figures": {"a": {"x": 1}}}, {"figures": {"a": {"y": 2}}})
    assert changes == [Change("a.x", 1, None, None, differs=True), Change("a.y", None, 2, None, differs=True)]


def test_a_figure_of_nothing_has_no_ratio() -> None:
    (change,) = compare({"figures": {"reloads": 0}}, {"figures": {"reloads": 3}})
    assert change == Change("reloads", 0, 3, None, differs=True)


def test_two_files_are_compared_as_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = _saved(tmp_path / "old", {"cpu": 1.0}), _saved(tmp_path / "new", {"cpu": 3.0})
    assert main([old, new, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"figure": "cpu", "old": 1.0, "new": 3.0, "ratio": 3.0, "differs": True}
    assert err == ""  # the same machine and versions


@pytest.mark.parametrize("text", ["", "[]", '{"name": "x"}', "not json"])
def test_what_is_not_a_result_is_refused_in_a_sentence(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text(text)
    assert main([str(tmp_path / "bad.json"), _saved(tmp_path, {"cpu": 1.0})]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "bad.json" in err


def test_results_of_different_questions_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([_saved(tmp_path, {"cpu": 1.0}), _saved(tmp_path, {"cpu": 1.0}, name="crash")]) == 1
    assert "different questions" in capsys.readouterr().err


def test_a_spread_keeps_the_form_and_leaves_out_what_was_not_measured() -> None:
    runs = [{"a": {"b": 3, "c": None}}, {"a": {"b": 1, "c": None}}, {"a": {"b": 2, "c": None}}]
    assert spread(runs) == {"a": {"b": {"median": 2, "min": 1, "max": 3}, "c": None}}
    assert [" ".join(line.split()) for line in lines(spread(runs))] == ["a.b 2 (1 to 3)", "a.c None"]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_a_percentile_is_a_value_that_was_measured(share: float, expected: float) -> None:
    assert percentile(range(100, 0, -1), share) == expected


def test_there_is_no_percentile_of_nothing() -> None:
    assert percentile([], 0.5) is None


def _saved(folder: Path, figures: dict[str, Any], name: str = "cost") -> str:
    return str(save_result(folder, name, figures))
