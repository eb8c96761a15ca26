"""Databases to copy: each example begins with the same users and the same key for ids."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.agreement.harness import Template, make_template
from tests.support.postgis import PostgisServer

_numbers = count(1)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    folder = tmp_path_factory.mktemp("agreement")
    original = folder / "template.db"

    def copy() -> str:
        path = folder / f"copy-{next(_numbers)}.db"
        shutil.copyfile(original, path)
        return f"sqlite:///{path}"

    made = make_template(f"sqlite:///{original}", copy, folder)
    assert not Path(f"{original}-wal").exists(), "the template is not whole"
    return made


@pytest.fixture(scope="session")
def postgis_template(postgis_server: PostgisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Template]:
    made: list[str] = []

    def copy() -> str:
        for old in made[:-2]:  # an example has at most two open
            postgis_server.execute(f"DROP DATABASE {old} WITH (FORCE)")
            made.remove(old)
        name = f"agreement_{next(_numbers)}"
        postgis_server.execute(f"CREATE DATABASE {name} TEMPLATE {original}")
        made.append(name)
        return postgis_server.url(name)

    with postgis_server.database() as url:
        original = url.rpartition("/")[2]
        yield make_template(url, copy, tmp_path_factory.mktemp("agreement-postgis"))
        for name in made:
            postgis_server.execute(f"DROP DATABASE {name} WITH (FORCE)")
