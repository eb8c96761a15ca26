"""The page of `fencepost match`, its five lines, and the example, run as a new user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from matcher.selector.tree import Relation
from server.cli.main import main
from tests.docs.pages import ROOT, blocks

PAGE = "docs/reference/match.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the two files of the page."""
    for name, content in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", blocks(PAGE)[0], re.DOTALL):
        (tmp_path / name).write_text(content, encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"plants.geojson", "storms.geojson"}
    return tmp_path


def python(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_command_of_the_page_prints_what_the_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (command,) = re.findall(r"^fencepost (match .*)$", blocks(PAGE)[0], re.MULTILINE)
    (said,) = re.findall(r"```sh.*?```\n\n```\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(folder)
    assert main(command.split()) == 0
    captured = capsys.readouterr()
    assert captured.out + captured.err.splitlines(keepends=True)[-1] == said


def test_the_library_is_five_lines(folder: Path):
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len([line for line in program.splitlines() if line]) == 5
    assert python(folder, "-c", program) == "[('anna', ['mill', 'quay', 'farm']), ('bert', [])]\n"


def test_the_example_prints_the_plants_of_each_storm(folder: Path):
    example = str(ROOT / "docs" / "examples" / "match_regions.py")
    assert python(folder, example, "plants.geojson", "storms.geojson") == "anna mill quay farm\nbert\n"


def test_every_option_and_relation_is_on_the_page(capsys: pytest.CaptureFixture[str]):
    assert main(["match", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"`{option}" not in TEXT} == set()
    assert {str(relation) for relation in Relation if f"`{relation}`" not in TEXT} == set()
