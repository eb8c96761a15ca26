"""A device installs the wheel with the device's pins and gets a working agent, and nothing of the server's."""

import json
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.sources import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_EXPECTED = {"fencepost", "geographiclib", "msgspec", "numpy", "shapely", "websockets"}
_NEVER = {"fastapi", "sqlalchemy", "pyspark", "lark", "numba", "uvicorn", "alembic", "psycopg", "geoalchemy2"}


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a virtual environment with the wheel and requirements/device.txt."""
    folder = tmp_path_factory.mktemp("device")
    _run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)],
        folder,
    )
    (wheel,) = folder.glob("fencepost-*.whl")
    venv.create(folder / "venv", symlinks=True)
    scripts = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", str(scripts / "python"), "install"]
    pins = str(ROOT / "requirements" / "device.txt")
    _run([*pip, "-r", pins, str(wheel)], folder)
    return scripts


def test_a_device_gets_a_handful_of_distributions(device: Path) -> None:
    program = "import json; from importlib.metadata import distributions as d; print(json.dumps([x.name for x in d()]))"
    installed = {re.sub(r"[-_.]+", "-", name).lower() for name in json.loads(_python(device, program))}
    assert installed == _EXPECTED


def test_the_pins_of_the_device_are_all_it_installs() -> None:
    lines = (ROOT / "requirements" / "device.txt").read_text(encoding="utf-8").splitlines()
    assert {line.partition("==")[0] for line in lines} == _EXPECTED - {"fencepost"}


def test_the_agent_is_imported_without_the_server(device: Path) -> None:
    loaded = _python(device, "import sys, agent_sdk, agent_sdk.client; print(*sys.modules)").split()
    assert "agent_sdk.client" in loaded
    assert {name.partition(".")[0] for name in loaded} & _NEVER == set()


def test_the_command_helps_without_the_server(device: Path) -> None:
    answer = _run([str(device / "fencepost"), "--help"], device.parent)
    assert "agent" in answer


def test_a_command_of_the_server_says_what_to_install(device: Path) -> None:
    command = [str(device / "fencepost"), "serve"]
    answer = subprocess.run(command, cwd=device, env=_clean(), capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 1
    assert "fencepost[server]" in answer.stderr
    assert "Traceback" not in answer.stderr


def _python(device: Path, program: str) -> str:
    return _run([str(device / "python"), "-c", program], device.parent)


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=_clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _clean() -> dict[str, str]:
    """The environment without what would put this checkout on the path."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def test_the_installed_packages_say_that_they_are_typed(device: Path) -> None:
    program = (
        "import zones, matcher, agent_sdk; from pathlib import Path;"
        "print(*(Path(p.__file__).with_name('py.typed').is_file() for p in (zones, matcher, agent_sdk)))"
    )
    assert _python(device, program).split() == ["True"] * 3


def test_the_agent_command_runs_with_what_a_device_has(device: Path) -> None:
    (device / "walk.csv").write_text("ts,lon,lat\n1,2,3\n", encoding="utf-8")
    command = [str(device / "fencepost"), "agent", "--trace", "walk.csv"]
    answer = subprocess.run(command, cwd=device, env=_clean(), capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 1
    assert answer.stderr.startswith("fencepost: This device has no credential"), answer.stderr
