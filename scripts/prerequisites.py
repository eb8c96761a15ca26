"""What the machine must have before a virtual environment, or the tests, can work.

    python3 scripts/prerequisites.py python    Python is new enough and can make virtual environments
    python3 scripts/prerequisites.py tests     the Debian packages of the tests are there, or are installed now

A missing piece is never passed over: it is installed, or one sentence names the package and the exit code is 1.
PostgreSQL's packages start no server and make no cluster here; the tests make their own (tests/support/postgis.py).
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["Missing", "install", "main", "postgis_bindir", "require_python", "tests_need"]

_OLDEST_PYTHON = (3, 11)
_DEBIAN_SERVERS = Path("/usr/lib/postgresql")
_NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/fencepost-tests.conf")
_APT_GET = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120")


class Missing(Exception):
    """Something is not there and can't be brought here; the text is the one sentence for the user."""


def require_python(version: tuple[int, int] = sys.version_info[:2], has_ensurepip: bool | None = None) -> None:
    """Refuse a Python that is too old, or one that Debian has split from its `venv`."""
    written = ".".join(map(str, version))
    if version < _OLDEST_PYTHON:
        raise Missing(f"Fencepost needs Python 3.11 or newer and this is {written}: run make with PYTHON=python3.11.")
    if has_ensurepip is None:
        has_ensurepip = importlib.util.find_spec("ensurepip") is not None
    if not has_ensurepip:
        raise Missing(f"Python {written} has no ensurepip here: install the package python3-venv.")


def postgis_bindir(servers: Path = _DEBIAN_SERVERS) -> Path | None:
    """The folder of the newest PostgreSQL server that has PostGIS beside it."""
    found = [path.parent for path in servers.glob("*/bin/initdb")]
    found.sort(key=lambda bindir: [int(part) for part in re.findall(r"\d+", bindir.parent.name)], reverse=True)
    elsewhere = shutil.which("initdb")
    if elsewhere:
        found.append(Path(elsewhere).resolve().parent)
    return next((bindir for bindir in found if _has_postgis(bindir)), None)


def _has_postgis(bindir: Path) -> bool:
    try:
        answer = subprocess.run([bindir / "pg_config", "--sharedir"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return Path(answer.stdout.strip(), "extension", "postgis.control").is_file()


def tests_need() -> list[str]:
    """The Debian packages the tests need and this machine lacks; PostGIS goes by its general name."""
    packages = []
    if shutil.which("git") is None:
        packages.append("git")
    if postgis_bindir() is None:
        packages.append("postgresql-postgis")
    return packages


def install(packages: list[str]) -> None:
    """Install Debian packages as root or through sudo."""
    listed = " ".join(packages)
    if shutil.which("apt-get") is None:
        raise Missing(f"The tests need what Debian calls {listed}, and there is no apt-get here: install it by hand.")
    as_root = _way_to_root()
    if as_root is None:
        raise Missing(
            f"The tests need more packages and installing takes root: run 'apt-get install {listed}' as root."
        )
    print(f"Installing the Debian packages of the tests: {listed}", file=sys.stderr, flush=True)
    if not all(map(_is_known, packages)):
        _run([*as_root, *_APT_GET, "update"])
    names = [_newest_postgis() if name == "postgresql-postgis" and not _is_known(name) else name for name in packages]
    command = [*as_root, *_APT_GET, "install", "--yes", "--no-install-recommends", *names]
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as setting:
        setting.write("# While the tests of Fencepost install PostgreSQL.\ncreate_main_cluster = false\n")
        setting.flush()
        _run([*as_root, "install", "-D", "-m", "644", setting.name, str(_NO_CLUSTER)])
        try:
            if not _run(command):  # the lists may be older than the archive
                _run([*as_root, *_APT_GET, "update"])
                if not _run(command):
                    raise Missing(f"apt-get could not install {' '.join(names)}: install it by hand and try again.")
        finally:
            _run([*as_root, "rm", "-f", str(_NO_CLUSTER)])


def _way_to_root() -> list[str] | None:
    """What to write before a command that needs root; None if there is no way without a password."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0:
        return [sudo, "-n"]
    return None


def _is_known(package: str) -> bool:
    """Does apt have a version of it to install? An empty or old list may not."""
    answer = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True, check=False)
    candidate = re.search(r"Candidate: *(\S+)", answer.stdout)  # under LC_ALL=C, see main
    return candidate is not None and candidate[1] != "(none)"


def _newest_postgis() -> str:
    """The versioned name, for releases without the general one."""
    pattern = r"^postgresql-[0-9]+-postgis-3$"
    answer = subprocess.run(
        ["apt-cache", "search", "--names-only", pattern], capture_output=True, text=True, check=False
    )
    names = [line.split()[0] for line in answer.stdout.splitlines() if line.strip()]
    if not names:
        raise Missing("apt knows no package of PostGIS: enable the archive that has postgresql-postgis.")
    return max(names, key=lambda name: int(name.split("-")[1]))


def _run(command: list[str]) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0


def main(arguments: list[str]) -> int:
    os.environ["LC_ALL"] = "C"
    try:
        if arguments == ["python"]:
            require_python()
        elif arguments == ["tests"]:
            packages = tests_need()
            if packages:
                install(packages)
                left = tests_need()
                if left:
                    raise Missing(f"After installing, the tests still lack {' '.join(left)}: install it by hand.")
        else:
            print("Usage: prerequisites.py python | tests", file=sys.stderr)
            return 2
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
