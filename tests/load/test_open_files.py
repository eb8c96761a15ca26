"""A server is not held down to the 1,024 open files that a shell allows by default."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sources import ROOT


@pytest.mark.slow
def test_a_server_raises_its_own_limit_of_open_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "server.cli.main", "serve", "--port", "0", "--json"]
    command += ["--database", f"sqlite:///{tmp_path / 'fencepost.db'}"]
    low = ["sh", "-c", 'ulimit -Sn 256; ulimit -Hn 4096; exec "$@"', "sh", *command]
    with subprocess.Popen(low, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["url"]
            limits = Path(f"/proc/{process.pid}/limits").read_text(encoding="utf-8")
        finally:
            process.terminate()
            process.communicate(timeout=30)
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    assert line.split()[3:5] == ["4096", "4096"]
