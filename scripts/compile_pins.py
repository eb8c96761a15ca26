"""Compile requirements/*.txt from pyproject.toml with uv.

One resolution for Python 3.11 and later on every platform, with no comments, so that no command line, path or address
of the machine that compiled gets in. dev comes first and binds the others: a library has one version everywhere.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parent.parent
_COMMON = ("--universal", "--no-header", "--no-annotate", "--python-version", "3.11", "--quiet")
_TARGETS = {
    "dev": ("pyproject.toml", "--extra", "server", "--extra", "dev"),
    "server": ("pyproject.toml", "--extra", "server"),
    "device": ("pyproject.toml",),
    "build": ("requirements/build.in",),
}


def main(arguments: list[str]) -> int:
    uv = Path(sysconfig.get_path("scripts"), "uv")
    for name, source in _TARGETS.items():
        output = f"requirements/{name}.txt"
        same = () if name == "dev" else ("--constraint", "requirements/dev.txt")
        command = [str(uv), "pip", "compile", *_COMMON, *same, *arguments, *source, "--output-file", output]
        done = subprocess.run(command, cwd=_ROOT, check=False, stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            return done.returncode
        print(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
