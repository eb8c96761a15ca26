"""The one direction of imports, and what the pure packages and the device may touch."""

import ast
import subprocess
import sys

import pytest

from tests.support.sources import PACKAGES, ROOT, Module, modules, modules_of

_MAY_IMPORT = {
    "zones": (),
    "matcher": ("zones",),
    "privacy": ("zones",),
    "agent_sdk": ("zones", "matcher"),
    "server": ("zones", "matcher", "privacy", "agent_sdk"),
    "simulators": ("zones", "matcher", "privacy", "agent_sdk"),
    "migrations": ("server.store",),
}
_OURS = {*PACKAGES, "tests", "benchmarks", "scripts"}

_PURE = ("zones", "matcher", "privacy", "agent_sdk.protocol")
_IMPURE_MODULES = {
    *("socket", "ssl", "select", "selectors", "socketserver", "http", "urllib", "websockets", "httpx"),  # sockets
    *("os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "sqlite3", "dbm", "shelve", "mmap"),  # files
    *("importlib", "pkgutil", "subprocess", "signal", "ctypes"),  # the process and what lies around it
    *("time", "sched", "calendar"),  # clocks
    *("asyncio", "threading", "_thread", "multiprocessing", "concurrent", "queue", "contextvars"),  # threads
    *("random", "secrets", "uuid"),  # randomness
    *("logging", "warnings", "syslog"),  # talking
    *("sqlalchemy", "alembic", "psycopg", "fastapi", "starlette", "uvicorn", "pydantic", "pyspark"),  # the server's
}
_IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "breakpoint", "__import__"}
_CLOCKS = {"now", "utcnow", "today"}  # datetime.now() and its like; `now` itself comes as an argument

_ON_A_DEVICE = {"geographiclib", "msgspec", "numpy", "shapely", "websockets"}
_NEVER_ON_A_DEVICE = {"fastapi", "sqlalchemy", "pyspark", "lark", "numba", "uvicorn", "alembic", "pydantic", "psycopg"}


def test_every_package_is_there_and_is_read() -> None:
    assert {module.package for module in modules()} == set(PACKAGES) == set(_MAY_IMPORT)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_in_one_direction(package: str) -> None:
    allowed = (package, *_MAY_IMPORT[package])
    wrong = [
        f"{module.where(used.line)} imports {used.module}"
        for module in modules_of(package)
        for used in module.imports()
        if used.root in _OURS and not any(_is_within(f"{used.module}.{used.name or ''}", name) for name in allowed)
    ]
    assert wrong == []


def test_pure_packages_import_nothing_that_does_io() -> None:
    wrong = [
        f"{module.where(used.line)} imports {used.module}"
        for module in modules_of(*_PURE)
        for used in module.imports()
        if used.root in _IMPURE_MODULES
    ]
    assert wrong == []


def test_pure_packages_call_no_clock_and_open_nothing() -> None:
    wrong = [call for module in modules_of(*_PURE) for call in _impure_calls(module)]
    assert wrong == []


def test_an_agent_is_made_of_what_a_device_installs() -> None:
    """Follow the imports that run at import time from the agent to everything it loads."""
    by_name = {module.name: module for module in modules()}
    waiting = [module.name for module in modules_of("agent_sdk")]
    seen: set[str] = set()
    foreign: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in seen or name not in by_name:
            continue
        seen.add(name)
        waiting.extend(_parents(name))
        for used in by_name[name].imports():
            if used.root in PACKAGES:
                # What an `__init__` gives on demand is loaded only by those who ask for it.
                if used.at_start or by_name[name].path.name != "__init__.py":
                    waiting += [used.module, f"{used.module}.{used.name}"]
            elif used.at_start and used.root not in sys.stdlib_module_names:
                foreign.setdefault(used.root, by_name[name].where(used.line))
    assert {root: where for root, where in foreign.items() if root not in _ON_A_DEVICE} == {}


def test_importing_every_module_of_the_agent_loads_nothing_of_the_server() -> None:
    names = [module.name for module in modules_of("agent_sdk") if not module.name.endswith("__main__")]
    program = f"import sys, {', '.join(names)}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    loaded = set(answer.stdout.split())
    assert "agent_sdk" in loaded
    assert loaded & (_NEVER_ON_A_DEVICE | {"server", "privacy", "simulators"}) == set()


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _impure_calls(module: Module) -> list[str]:
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in _IMPURE_CALLS:
            found.append(f"{module.where(node.lineno)} calls {called.id}")
        elif (
            isinstance(called, ast.Attribute)
            and called.attr in _CLOCKS
            and ast.unparse(called.value).rpartition(".")[2] in {"datetime", "date"}
        ):
            found.append(f"{module.where(node.lineno)} calls {ast.unparse(called)}")
    return found
