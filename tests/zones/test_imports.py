"""A device installs little; zones must not ask for more."""

import pkgutil
import subprocess
import sys

import zones

SCRIPT = """
import importlib, sys
for name in {modules}:
    importlib.import_module(f"zones.{{name}}")
tops = {{name.partition(".")[0] for name in sys.modules}}
print(*sorted(top for top in tops if top not in sys.stdlib_module_names and not top.startswith("_")))
"""


def packages_after_importing(modules):
    command = [sys.executable, "-c", SCRIPT.format(modules=modules)]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_zones_imports_only_what_a_device_has():
    modules = [module.name for module in pkgutil.iter_modules(zones.__path__)]
    # What an interpreter of this environment starts with by itself is not ours.
    extra = packages_after_importing(modules) - packages_after_importing([])
    # msgspec takes typing_extensions if it happens to be there; cython_runtime is a part of numpy.
    assert extra - {"typing_extensions", "cython_runtime"} == {"zones", "msgspec", "shapely", "numpy", "geographiclib"}


def test_every_module_names_what_is_public():
    for module in pkgutil.iter_modules(zones.__path__):
        loaded = __import__(f"zones.{module.name}", fromlist=["__all__"])
        assert loaded.__all__
        assert all(hasattr(loaded, name) for name in loaded.__all__)
