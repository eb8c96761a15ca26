"""A real server on each kind of database; one serves a whole module."""

from collections.abc import Iterator

import pytest

from tests.support.live_server import LiveServer, Person, serving

__all__ = ["LiveServer", "Person", "live_server", "serving"]


@pytest.fixture(scope="module", params=["sqlite", "postgis"])
def live_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server on a fresh database of each kind in turn."""
    if request.param == "sqlite":
        with serving(f"sqlite:///{tmp_path_factory.mktemp('e2e') / 'fencepost.db'}") as server:
            yield server
    else:
        with request.getfixturevalue("postgis_server").database() as url, serving(url) as server:
            yield server
