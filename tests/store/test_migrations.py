"""Migrations bring an empty database to the models, on both kinds, and only as a whole."""

import threading
from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event, inspect, select, text

from server.store.engine import REVISION, check_migrated, open_engine
from server.store.errors import DatabaseNotMigrated, DatabaseUnsuitable
from server.store.migrate import alembic_config, upgrade
from server.store.models import Base, Secret, User


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    upgrade(database_url)
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def test_migrated_database_and_models_agree(engine: Engine):
    def is_ours(_object, name, kind, *_rest) -> bool:
        if kind == "index":  # Alembic does not look at `ddl_if`
            return name != "zones_outline" or engine.dialect.name == "postgresql"
        return not (kind == "table" and name in ("spatial_ref_sys", "alembic_version"))

    with engine.connect() as conn:
        context = MigrationContext.configure(conn, opts={"include_object": is_ours, "compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_ids_are_never_used_twice_on_sqlite(sqlite_url: str):
    upgrade(sqlite_url)
    engine = open_engine(sqlite_url)
    counting = {name for name, table in Base.metadata.tables.items() if table.kwargs.get("sqlite_autoincrement")}
    with engine.connect() as conn:
        found = {
            name
            for name, sql in conn.execute(text("SELECT name, sql FROM sqlite_schema"))
            if "AUTOINCREMENT" in (sql or "")
        }
    engine.dispose()
    assert found == counting


def test_outlines_have_a_spatial_index_on_postgis(postgis_url: str):
    upgrade(postgis_url)
    engine = open_engine(postgis_url)
    with engine.connect() as conn:
        found = conn.scalar(text("SELECT indexdef FROM pg_indexes WHERE indexname = 'zones_outline'"))
    engine.dispose()
    assert "USING gist (outline)" in found


def test_a_new_database_has_the_system_user_and_a_secret(engine: Engine):
    with engine.connect() as conn:
        assert conn.execute(select(User.name, User.folded, User.is_admin)).all() == [("SYSTEM", "system", False)]
        (secret,) = conn.execute(select(Secret.name, Secret.value)).all()
    assert secret.name == "ids"
    assert len(secret.value) == 32


def test_upgrading_again_changes_nothing(engine: Engine, database_url: str):
    with engine.connect() as conn:
        before = conn.scalars(select(Secret.value)).all()
    upgrade(database_url)
    with engine.connect() as conn:
        assert conn.scalars(select(Secret.value)).all() == before


def test_two_upgrades_at_once_become_one(database_url: str):
    failures: list[BaseException] = []

    def run() -> None:
        try:
            upgrade(database_url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    engine = open_engine(database_url)
    check_migrated(engine)
    with engine.connect() as conn:
        assert len(conn.execute(select(User.id)).all()) == 1
    engine.dispose()


def test_an_upgrade_that_fails_half_way_leaves_nothing_behind(database_url: str):
    def fail(_conn, _cursor, statement, *_rest) -> None:
        if statement.lstrip().startswith("CREATE TABLE notifications"):
            raise OSError("power cut")

    event.listen(Engine, "before_cursor_execute", fail)
    try:
        with pytest.raises(OSError, match="power cut"):
            upgrade(database_url)
    finally:
        event.remove(Engine, "before_cursor_execute", fail)
    engine = open_engine(database_url)
    assert set(inspect(engine).get_table_names()) <= {"spatial_ref_sys"}
    engine.dispose()
    upgrade(database_url)


def test_a_database_without_tables_is_not_migrated(database_url: str):
    engine = open_engine(database_url)
    with pytest.raises(DatabaseNotMigrated, match="no tables of Fencepost yet") as caught:
        check_migrated(engine)
    engine.dispose()
    assert "fencepost db upgrade" in caught.value.hint


def test_a_database_of_another_version_is_named_with_both_revisions(engine: Engine):
    check_migrated(engine)
    with engine.begin() as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '0999'"))
    with pytest.raises(DatabaseNotMigrated, match=f"revision 0999, but this version needs {REVISION}"):
        check_migrated(engine)


def test_the_revision_in_the_code_is_the_newest_migration(engine: Engine):
    with engine.connect() as conn:
        assert ScriptDirectory.from_config(alembic_config(conn)).get_heads() == [REVISION]


def test_postgresql_without_postgis_gets_a_clear_error(postgis_url: str):
    engine = open_engine(postgis_url)
    with engine.begin() as conn:
        conn.execute(text("DROP EXTENSION postgis CASCADE"))
        conn.execute(text("CREATE ROLE modest LOGIN"))
        conn.execute(text("GRANT ALL ON SCHEMA public TO modest"))
    modest = engine.url.set(username="modest").render_as_string(hide_password=False)
    try:
        with pytest.raises(DatabaseUnsuitable, match="no PostGIS") as caught:
            upgrade(modest)
    finally:
        with engine.begin() as conn:
            conn.execute(text("DROP OWNED BY modest"))
            conn.execute(text("DROP ROLE modest"))
        engine.dispose()
    assert "CREATE EXTENSION postgis" in caught.value.hint
