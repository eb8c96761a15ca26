"""A module says what is public in `__all__`; the rest is private by name."""

import importlib

import pytest

from tests.support.sources import Module, modules, tracked_files

# Alembic calls the functions of a migration by their names, and env.py runs when it is imported.
_MODULES = [module for module in modules() if module.package != "migrations" and not module.name.endswith("__main__")]
_NAMELESS = {"utils", "util", "common", "misc", "helpers"}


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.name)
def test_public_names_are_listed_and_exist(module: Module) -> None:
    imported = importlib.import_module(module.name)
    listed = getattr(imported, "__all__", None)
    defined = {name for name in module.definitions() if not name.startswith("_")}
    if listed is None:
        assert defined == set(), f"{module.name} has public names and no __all__"
        return
    assert defined - set(listed) == set(), f"{module.name}: list these in __all__ or start them with _"
    assert [name for name in listed if not hasattr(imported, name)] == []
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize("module", _MODULES, ids=lambda module: module.name)
def test_a_module_says_why_it_is_there(module: Module) -> None:
    first = module.tree.body[0] if module.tree.body else None
    assert isinstance(getattr(getattr(first, "value", None), "value", None), str), f"{module.name} has no docstring"


def test_no_module_is_named_for_nothing() -> None:
    assert [path.name for path in tracked_files() if path.suffix == ".py" and path.stem in _NAMELESS] == []
