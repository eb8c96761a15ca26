"""What holds for the tracked files, whatever is in them."""

import re
from pathlib import Path

import pytest

from tests.support.sources import ROOT, tracked_files

# Written in pieces, because this file is searched too.
_HOSTS = ("pypi" + r"\.org", "python" + "hosted", r"registry\." + "npmjs", r"deb\." + r"debian\.org")
_FOLDERS = ("work", "farm", "root")
_OF_ONE_MACHINE = re.compile("|".join([r"(?:^|[^A-Za-z0-9_.])/(?:" + "|".join(_FOLDERS) + ")/", *_HOSTS]), re.MULTILINE)
_PIN = re.compile(r"[a-z0-9][a-z0-9-]*(?:\[[a-z,-]+\])?==[0-9][A-Za-z0-9.!+]*(?: ; [^#@/]+)?")


def test_no_tracked_file_names_a_machine_or_a_package_registry() -> None:
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" in content:
            continue
        text = content.decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in _OF_ONE_MACHINE.finditer(text)]
    assert found == []


@pytest.mark.parametrize("example", ["see /" + "work/x", "/" + "root/.cache", "https://pypi" + ".org/simple"])
def test_the_search_for_machines_finds_them(example: str) -> None:
    assert _OF_ONE_MACHINE.search(example)


@pytest.mark.parametrize("name", ["device", "server", "dev", "build"])
def test_pins_are_exact_and_have_no_addresses(name: str) -> None:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not _PIN.fullmatch(line)] == []


@pytest.mark.parametrize("name", ["device", "server", "build"])
def test_a_library_has_the_same_version_for_everybody(name: str) -> None:
    pinned, developers = _pins(name), _pins("dev")
    assert {
        library: versions for library, versions in pinned.items() if developers.get(library, versions) != versions
    } == {}


def test_continuous_integration_runs_the_tests_of_everybody() -> None:
    script = ROOT / ".ci" / "run"
    assert "make test" in script.read_text(encoding="utf-8")
    assert script.stat().st_mode & 0o111


def test_decisions_have_numbers_of_their_own_and_are_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listing = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(path.name for path in folder.glob("[0-9]*.md"))
    numbers = [name[:4] for name in records]
    assert len(set(numbers)) == len(numbers)
    assert [name for name in records if f"({name})" not in listing] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in tracked_files():
        if path.suffix == ".md":
            broken += [f"{path.relative_to(ROOT)}: {target}" for target in _local_links(path) if not target.exists()]
    assert broken == []


def _local_links(page: Path) -> list[Path]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    return [page.parent / target for target in targets if not re.match(r"[a-z]+:", target)]


def _pins(name: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for line in (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        library, _, version = line.partition("==")
        pins.setdefault(library.partition("[")[0], set()).add(version)
    return pins
