"""The project's own source, read as text: which modules there are, what they import, what they define.

Read and not imported, so that a rule about imports also holds for lines that run only sometimes.
"""

import ast
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PACKAGES", "ROOT", "Import", "Module", "modules", "modules_of", "tracked_files"]

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("zones", "matcher", "privacy", "agent_sdk", "server", "simulators", "migrations")
_NOT_OURS = {".git", ".venv", "__pycache__", "build", "dist", "node_modules"}


@dataclass(frozen=True)
class Import:
    """One imported name: `from zones.shapes import Point` is zones.shapes, Point."""

    module: str
    name: str | None
    line: int
    at_start: bool  # it runs when the module is imported

    @property
    def root(self) -> str:
        return self.module.partition(".")[0]


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    def where(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"

    def imports(self) -> Iterator[Import]:
        yield from self._imports(self.tree, at_start=True)

    def _imports(self, node: ast.AST, at_start: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, None, child.lineno, at_start)
            elif isinstance(child, ast.ImportFrom):
                for alias in child.names:
                    yield Import(self._absolute(child), alias.name, child.lineno, at_start)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                for part in child.body:
                    yield from self._imports(ast.Module([part], []), at_start=False)
                for part in child.orelse:
                    yield from self._imports(ast.Module([part], []), at_start)
            else:
                later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from self._imports(child, at_start and not later)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        package = parts if self.path.name == "__init__.py" else parts[:-1]
        base = package[: len(package) - (node.level - 1)]
        return ".".join([*base, node.module] if node.module else base)

    def definitions(self) -> dict[str, int]:
        """What the module itself defines at its top level, with the line; no imports, type variables or routes."""
        found: dict[str, int] = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if not any(ast.unparse(mark).startswith("router.") for mark in node.decorator_list):
                    found[node.name] = node.lineno  # a route is reached through its router, not by name
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node.lineno
            elif isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith(("TypeVar(", "ParamSpec(")):
                for target in node.targets:
                    found.update({n.id: node.lineno for n in ast.walk(target) if isinstance(n, ast.Name)})
        return found


@cache
def modules() -> tuple[Module, ...]:
    """Every module of every package."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path))))
    return tuple(found)


def modules_of(*prefixes: str) -> list[Module]:
    """The modules of packages or subpackages, by dotted name."""
    return [m for m in modules() if any(m.name == prefix or m.name.startswith(prefix + ".") for prefix in prefixes)]


@cache
def tracked_files() -> tuple[Path, ...]:
    """The files of the repository; of an unpacked archive without history, all files."""
    if (ROOT / ".git").exists():
        command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        files = [ROOT / name for name in listing.split("\0") if name]
        return tuple(path for path in files if path.is_file())
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _NOT_OURS]
        found += [Path(folder, name) for name in names]
    return tuple(found)
