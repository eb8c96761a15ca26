"""Fixtures of the whole suite: databases of both kinds, sizes, and where measurements go."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from benchmarks.results_file import RESULTS, save_result
from tests.support.postgis import PostgisServer, PostgisUnavailable, running_postgis

_ROOT = Path(__file__).resolve().parent.parent
_FULL = os.environ.get("FENCEPOST_FULL") == "1"

# `make test` tries the same examples each time; `make test-long` looks for new ones, and longer.
settings.register_profile("seeded", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("full", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("full" if _FULL else "seeded")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The inner loop keeps to SQLite: what runs on PostGIS is slow."""
    for item in items:
        assert isinstance(item, pytest.Function)
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if "postgis" in parameters or not {"postgis_url", "postgis_server"}.isdisjoint(item.fixturenames):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def full_size() -> bool:
    """True under `make test-long`: use the sizes of the promises, not the reduced ones."""
    return _FULL


@pytest.fixture(scope="session")
def record_result(full_size: bool) -> Callable[[str, dict[str, Any]], None]:
    """`record_result(name, figures)` writes benchmarks/results/<name>.json at full size, and else nothing."""

    def record(name: str, figures: dict[str, Any]) -> None:
        if full_size:
            save_result(RESULTS, name, figures)

    return record


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Sample data that is too large for the repository and stands beside the checkout on some machines."""
    folder = _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the sample data in ../shared/data is not on this machine")
    return folder


@pytest.fixture(scope="session")
def postgis_server() -> Iterator[PostgisServer]:
    """A PostGIS server of this test run's own. It is never skipped: without the binaries the test fails."""
    try:
        with running_postgis() as server:
            yield server
    except PostgisUnavailable as unavailable:
        pytest.fail(str(unavailable), pytrace=False)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'fencepost.db'}"


@pytest.fixture
def postgis_url(postgis_server: PostgisServer) -> Iterator[str]:
    """The URL of an empty database that has the PostGIS extension."""
    with postgis_server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgis"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database of each kind in turn; nothing is migrated yet."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
