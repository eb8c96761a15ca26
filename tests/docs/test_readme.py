"""Every command of the README runs."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_BLOCKS = re.findall(r"```sh\n(.*?)```", (_ROOT / "README.md").read_text(), re.S)
_BY_HAND = [block for block in _BLOCKS if not block.startswith("make ")]


@pytest.mark.parametrize("line", [line for block in _BLOCKS for line in block.splitlines() if line.startswith("make ")])
def test_a_make_command_is_a_target(line: str):
    target = line.split()[1]
    assert re.search(rf"^{re.escape(target)}:", (_ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("block", _BY_HAND)
def test_a_block_of_commands_runs(block: str, tmp_path: Path):
    shim = tmp_path / "bin" / "fencepost"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m server.cli.main "$@"\n')
    shim.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environ = os.environ | {"PATH": f"{shim.parent}:{os.environ['PATH']}", "PYTHONPATH": str(_ROOT)}
    done = subprocess.run(
        ["bash", "-eu", "-c", block.replace("8765", str(port))],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
