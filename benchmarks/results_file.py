"""Measurements as files, with the machine and the versions they were taken on.

No host names, users or paths: a result is for everybody to read.
"""

import json
import os
import platform
import tomllib
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "document", "save_result"]

RESULTS = Path(__file__).resolve().parent / "results"

_LIBRARIES = ("fencepost", "msgspec", "shapely", "sqlalchemy", "uvicorn", "websockets")


def document(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """The figures, and what they were taken with."""
    return {
        "name": name,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "system": platform.platform(),
        },
        "python": platform.python_version(),
        "libraries": {library: _version(library) for library in _LIBRARIES},
        "figures": figures,
    }


def save_result(folder: Path, name: str, figures: dict[str, Any]) -> Path:
    """Write `<name>.json` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document(name, figures), indent=2) + "\n", encoding="utf-8")
    return path


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None if library != "fencepost" else _version_of_checkout()


def _version_of_checkout() -> str:
    """Ours when it is run without being installed."""
    project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    found: str = project["project"]["version"]
    return found


def _memory_gib() -> float | None:
    try:
        pages = os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
