"""The page of `fencepost replay`, run as a new user would."""

import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from server.cli.main import main
from tests.docs.pages import ROOT, blocks

PAGE = "docs/reference/replay.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def test_the_command_of_the_page_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (block,) = blocks(PAGE)
    (program,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (said,) = re.findall(r"```sh.*?```\n\n```\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    for name, content in re.findall(r"cat > (\S+) <<'END'\n(.*?)END\n", block, re.DOTALL):
        Path(name).write_text(content, encoding="utf-8")
    (command,) = re.findall(r"^fencepost (replay .*)$", block, re.MULTILINE)
    assert main(shlex.split(command)) == 0
    assert capsys.readouterr().out == said
    assert pq.read_table("told.parquet").column("mode").to_pylist() == ["enter", "leave"]


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]):
    assert main(["replay", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"`{option}" not in TEXT} == set()
