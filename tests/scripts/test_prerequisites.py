"""What is missing on a machine is installed, or named in one sentence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.prerequisites import Missing, postgis_bindir, require_python
from tests.support.sources import ROOT

_SCRIPT = ROOT / "scripts" / "prerequisites.py"


def test_an_old_python_is_named() -> None:
    with pytest.raises(Missing, match=r"needs Python 3\.11 or newer and this is 3\.10"):
        require_python((3, 10), has_ensurepip=True)


def test_a_python_without_ensurepip_names_the_package() -> None:
    with pytest.raises(Missing, match="install the package python3-venv"):
        require_python((3, 12), has_ensurepip=False)


def test_a_usual_python_will_do() -> None:
    require_python((3, 11), has_ensurepip=True)


def test_the_newest_server_with_postgis_is_taken(tmp_path: Path) -> None:
    _server(tmp_path, "9.6", postgis=True)
    _server(tmp_path, "15", postgis=True)
    _server(tmp_path, "17", postgis=False)
    assert postgis_bindir(tmp_path) == tmp_path / "15" / "bin"


def test_a_server_without_postgis_is_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _server(tmp_path, "17", postgis=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert postgis_bindir(tmp_path) is None


class _Machine:
    """A PATH of recorded stand-ins for apt and sudo, and a script that finds no PostgreSQL until apt has run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.servers = folder / "servers"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in ("env", "sh", "touch", "mkdir", "git", "true"):
            found = shutil.which(name)
            assert found, name
            (self.bin / name).symlink_to(found)
        for name in ("install", "rm"):
            self.command(name, "")

    def command(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.log}\n{body}\n', encoding="utf-8")
        path.chmod(0o755)

    def apt(self, *, lists: str = "full", outcome: str = "good", names: str = "general") -> None:
        """apt as it behaves with full or empty lists, a good or failing archive, and either name of PostGIS."""
        fresh = self.folder / "lists"
        if lists == "full":
            fresh.touch()
        known = "true" if names == "general" else "false"
        self.command(
            "apt-cache",
            f"""
            [ -e {fresh} ] || exit 0
            case "$1" in
                policy) if {known}; then echo "  Candidate: 15+1"; else echo "  Candidate: (none)"; fi ;;
                search) echo "postgresql-14-postgis-3 - x"; echo "postgresql-16-postgis-3 - y" ;;
            esac""",
        )
        put = self.servers / "15"
        works = f"mkdir -p {put} && touch {put}/done" if outcome == "good" else "exit 100"
        self.command(
            "apt-get",
            f"""
            case "$*" in
                *update*) touch {fresh} ;;
                *install*) {works} ;;
            esac""",
        )

    def run(self, *, root: bool) -> "subprocess.CompletedProcess[str]":
        program = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from scripts import prerequisites
os.geteuid = lambda: {0 if root else 1000}
prerequisites.postgis_bindir = lambda: Path("/found") if Path({str(self.servers)!r}, "15", "done").exists() else None
sys.exit(prerequisites.main(["tests"]))
"""
        environment = {"PATH": str(self.bin)}
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )

    def calls(self, name: str) -> list[str]:
        if not self.log.exists():
            return []
        return [line for line in self.log.read_text(encoding="utf-8").splitlines() if line.startswith(f"{name} ")]


@pytest.fixture
def machine(tmp_path: Path) -> _Machine:
    return _Machine(tmp_path)


def test_root_installs_what_is_missing_and_makes_no_cluster(machine: _Machine) -> None:
    machine.apt()
    answer = machine.run(root=True)
    assert (answer.returncode, answer.stdout) == (0, "")
    (installed,) = machine.calls("apt-get")
    assert installed.endswith("install --yes --no-install-recommends postgresql-postgis")
    (setting,) = machine.calls("install")
    (removed,) = machine.calls("rm")
    assert "createcluster.d" in setting
    assert setting.split()[-1] == removed.split()[-1]


def test_empty_lists_are_filled_first(machine: _Machine) -> None:
    machine.apt(lists="empty")
    assert machine.run(root=True).returncode == 0
    assert [("update" in call, "install" in call) for call in machine.calls("apt-get")] == [
        (True, False),
        (False, True),
    ]


def test_a_release_without_the_general_name_gets_its_newest_postgis(machine: _Machine) -> None:
    machine.apt(names="versioned")
    assert machine.run(root=True).returncode == 0
    assert machine.calls("apt-get")[-1].endswith(" postgresql-16-postgis-3")


def test_a_failing_archive_is_tried_again_with_new_lists_and_then_told(machine: _Machine) -> None:
    machine.apt(outcome="bad")
    answer = machine.run(root=True)
    assert answer.returncode == 1
    assert _sentence(answer) == "apt-get could not install postgresql-postgis: install it by hand and try again."
    assert ["update" in call for call in machine.calls("apt-get")] == [False, True, False]
    assert machine.calls("rm"), "the setting must not stay behind"


def test_sudo_without_a_password_is_used(machine: _Machine) -> None:
    machine.apt()
    machine.command("sudo", 'shift; exec "$@"')
    assert machine.run(root=False).returncode == 0
    assert any("apt-get" in call for call in machine.calls("sudo"))


@pytest.mark.parametrize("sudo", ["absent", "asks for a password"])
def test_without_rights_one_sentence_names_the_package(machine: _Machine, sudo: str) -> None:
    machine.apt()
    if sudo != "absent":
        machine.command("sudo", "exit 1")
    answer = machine.run(root=False)
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "'apt-get install postgresql-postgis'" in answer.stderr
    assert machine.calls("apt-get") == []


def test_a_machine_without_apt_is_told_what_to_install(machine: _Machine) -> None:
    answer = machine.run(root=True)
    assert answer.returncode == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "postgresql-postgis" in answer.stderr


def test_nothing_is_done_when_nothing_is_missing(machine: _Machine) -> None:
    machine.apt()
    (machine.servers / "15").mkdir(parents=True)
    (machine.servers / "15" / "done").touch()
    answer = machine.run(root=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_bad_usage_is_exit_code_2() -> None:
    answer = subprocess.run([sys.executable, _SCRIPT, "nonsense"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr.startswith("Usage:")


def test_make_lists_its_targets() -> None:
    answer = subprocess.run(["make", "-C", ROOT], env=os.environ, capture_output=True, text=True, check=True)
    for target in ("demo", "test", "test-fast", "test-long", "check", "pins", "clean"):
        assert f"make {target} " in answer.stdout


def _sentence(answer: "subprocess.CompletedProcess[str]") -> str:
    return answer.stderr.splitlines()[-1]


def _server(servers: Path, version: str, *, postgis: bool) -> None:
    bindir, share = servers / version / "bin", servers / version / "share"
    (share / "extension").mkdir(parents=True)
    bindir.mkdir()
    (bindir / "initdb").touch()
    (bindir / "pg_config").write_text(f"#!/bin/sh\necho {share}\n", encoding="utf-8")
    (bindir / "pg_config").chmod(0o755)
    if postgis:
        (share / "extension" / "postgis.control").touch()
