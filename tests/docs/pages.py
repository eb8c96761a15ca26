"""Running a page of the documentation: its `sh` blocks, in order, as one person in one shell would."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "blocks", "run_page"]

ROOT = Path(__file__).resolve().parents[2]
_PORT = "8765"  # as the pages write it
_PRELUDE = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n"


def blocks(page: str) -> list[str]:
    return re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def run_page(page: str, folder: Path) -> str:
    """Everything but the `make` blocks, in that folder; gives stdout. A command that fails ends it, and fails."""
    script = _PRELUDE + "\n".join(block for block in blocks(page) if not block.startswith("make "))
    command = folder / "bin" / "fencepost"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m server.cli.main "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    done = subprocess.run(
        ["bash", "-eu", "-c", script.replace(_PORT, port)],
        cwd=folder,
        env=kept | {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout
