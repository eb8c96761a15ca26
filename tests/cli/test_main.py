"""The command itself: exit codes, one sentence instead of a traceback, and nothing imported before it is needed."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.cli.main import COMMANDS, main

_ROOT = Path(__file__).resolve().parents[2]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name, command in COMMANDS.items():
        assert f"{name} {command.help}" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]):
    assert importlib.util.find_spec(COMMANDS[name].module), f"{COMMANDS[name].module} is missing"
    assert main([name, "--help"]) == 0
    assert f"usage: fencepost {name}" in capsys.readouterr().out


def test_version_is_printed(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fencepost ")


@pytest.mark.parametrize(
    "argv", [[], ["nonsense"], ["users"], ["users", "add"], ["keys", "add", "mike", "--expires-days", "x"]]
)
def test_bad_usage_is_exit_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: fencepost" in captured.err


def test_a_failure_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FENCEPOST_DATABASE", raising=False)
    assert main(["users", "list"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("fencepost: The database sqlite:///fencepost.db has no tables of Fencepost yet.")
    assert list(tmp_path.iterdir()) == []  # asking has left no empty file


def run_on_a_device(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run the command where the server's packages can't be imported."""
    code = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in {'sqlalchemy', 'fastapi', 'uvicorn', 'alembic', 'geoalchemy2', 'lark'}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "from server.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environ = {key: value for key, value in os.environ.items() if not key.startswith("FENCEPOST_")}
    return subprocess.run(
        [sys.executable, "-c", code, *argv], cwd=_ROOT, env=environ, capture_output=True, text=True, timeout=60
    )


def test_a_device_is_told_what_to_install():
    done = run_on_a_device("users", "list")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("fencepost: Install fencepost[server] to use `fencepost users`: ")
    assert done.stderr.count("\n") == 1


def test_a_device_can_use_the_commands_that_only_talk_to_a_server():
    done = run_on_a_device("grants", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fencepost: There is no API key.")


def test_main_itself_imports_no_command():
    tree = ast.parse((_ROOT / "server" / "cli" / "main.py").read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith("server")} == set()
