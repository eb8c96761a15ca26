"""Opening a database: what URLs mean, and that a promise to have recorded something survives."""

import sqlite3
import threading
from pathlib import Path

import pytest
import shapely
from sqlalchemy import Column, Integer, MetaData, Table, func, select, text

from server.store.engine import check_migrated, for_writing, open_engine, parse_database_url
from server.store.errors import DatabaseUnreachable, DatabaseUrlInvalid
from server.store.geometry import GeometryColumn
from server.store.migrate import upgrade
from server.store.models import Zone

SHAPES = Table("shapes", MetaData(), Column("id", Integer, primary_key=True), Column("shape", GeometryColumn))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("fencepost.db", "sqlite:///fencepost.db"),
        ("/var/lib/fence post.db", "sqlite:////var/lib/fence post.db"),
        ("sqlite:///a.db", "sqlite:///a.db"),
        ("postgresql://u:p@h:5/n", "postgresql+psycopg://u:p@h:5/n"),
        ("postgres://h/n", "postgresql+psycopg://h/n"),
        ("postgresql+psycopg://h/n", "postgresql+psycopg://h/n"),
    ],
)
def test_urls_are_read_as_people_write_them(given: str, meant: str):
    assert parse_database_url(given).render_as_string(hide_password=False) == meant


@pytest.mark.parametrize(
    "url", ["", " ", "sqlite://", "sqlite:///:memory:", "mysql://h/n", "postgresql://h:port/n", "://"]
)
def test_urls_that_can_not_work_are_refused(url: str):
    with pytest.raises(DatabaseUrlInvalid) as caught:
        open_engine(url)
    assert "postgresql://" in caught.value.hint


def test_sqlite_keeps_what_it_has_acknowledged(sqlite_url: str):
    engine = open_engine(sqlite_url)
    with engine.connect() as conn:
        assert conn.scalar(text("PRAGMA journal_mode")) == "wal"
        assert conn.scalar(text("PRAGMA synchronous")) == 2  # FULL
        assert conn.scalar(text("PRAGMA foreign_keys")) == 1
        assert conn.scalar(text("PRAGMA busy_timeout")) >= 10_000
    engine.dispose()


def test_opening_a_new_file_waits_for_whoever_writes_it_first(tmp_path: Path):
    # Of several servers that start on a new file at once one failed: the others' switch to WAL did not wait.
    path = tmp_path / "new.db"
    first = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    first.execute("BEGIN IMMEDIATE")
    first.execute("CREATE TABLE t (n)")
    done = threading.Timer(0.2, first.execute, ["COMMIT"])
    done.start()
    engine = open_engine(f"sqlite:///{path}")
    with engine.connect() as conn:
        assert conn.scalar(text("PRAGMA journal_mode")) == "wal"
        assert conn.scalar(text("SELECT count(*) FROM t")) == 0
    done.join()
    engine.dispose()
    first.close()


def test_only_a_writer_takes_the_write_lock_at_its_start(sqlite_url: str):
    engine = open_engine(sqlite_url)
    with engine.connect() as reader, engine.connect() as plain:
        writer = for_writing(plain)
        reader.execute(text("SELECT 1"))  # begins, and holds up nobody
        writer.execute(text("CREATE TABLE t (n)"))
        with engine.connect() as other:
            other.exec_driver_sql("PRAGMA busy_timeout = 0")
            other.rollback()
            with pytest.raises(Exception, match="locked"):
                for_writing(other).execute(text("SELECT 1"))
        writer.commit()
    engine.dispose()


def test_a_savepoint_takes_back_only_its_own(database_url: str):
    engine = open_engine(database_url)
    with engine.begin() as conn:
        conn.execute(text("CREATE TABLE t (n integer)"))
        conn.execute(text("INSERT INTO t VALUES (1)"))
        savepoint = conn.begin_nested()
        conn.execute(text("INSERT INTO t VALUES (2)"))
        savepoint.rollback()
    with engine.connect() as conn:
        assert conn.scalars(text("SELECT n FROM t")).all() == [1]
    engine.dispose()


def test_an_engine_serves_many_threads(database_url: str):
    engine = open_engine(database_url)
    answers: list[int] = []
    barrier = threading.Barrier(12)

    def ask() -> None:
        with engine.connect() as conn:
            barrier.wait(20)  # all hold a connection at the same time
            answers.append(conn.scalar(text("SELECT 1")))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.dispose()
    assert answers == [1] * 12


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    engine = open_engine(str(tmp_path / "no" / "f.db"))
    with pytest.raises(DatabaseUnreachable) as caught:
        check_migrated(engine)
    assert str(tmp_path / "no") in caught.value.hint


def test_a_file_that_is_no_database_is_said_to_be_unreadable(tmp_path: Path):
    (tmp_path / "f.db").write_text("Dear diary, " * 200)
    engine = open_engine(str(tmp_path / "f.db"))
    with pytest.raises(DatabaseUnreachable, match="not a database"):
        check_migrated(engine)
    engine.dispose()


def test_a_server_that_does_not_answer_is_named_without_its_password():
    engine = open_engine("postgresql://mike:topsecret@127.0.0.1:1/places")
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1") as caught:
        check_migrated(engine)
    assert "topsecret" not in caught.value.sentence + caught.value.hint


@pytest.mark.parametrize(
    "shape",
    [
        shapely.box(116.1, 39.2, 116.3, 39.7),
        shapely.MultiPolygon([shapely.box(179, 0, 180, 1), shapely.box(-180, 0, -179, 1)]),
        shapely.box(0, 0, 3, 3).difference(shapely.box(1, 1, 2, 2)),
        shapely.Point(0.1, 0.2),
    ],
    ids=lambda shape: shape.geom_type,
)
def test_a_geometry_comes_back_to_the_last_bit(database_url: str, shape: shapely.Geometry):
    engine = open_engine(database_url)
    with engine.begin() as conn:
        SHAPES.create(conn)
        conn.execute(SHAPES.insert(), [{"shape": shape}, {"shape": None}])
        first, second = conn.scalars(select(SHAPES.c.shape).order_by(SHAPES.c.id)).all()
    engine.dispose()
    assert shapely.to_wkb(first) == shapely.to_wkb(shape)
    assert shapely.get_srid(first) == 4326
    assert second is None


def test_postgis_can_search_what_we_stored(postgis_url: str):
    upgrade(postgis_url)
    engine = open_engine(postgis_url)
    row = {"owner_id": 1, "version": 1, "shape": "{}", "changed": 0}
    with engine.begin() as conn:
        for name, west in (("A", 0.0), ("B", 10.0)):
            outline = shapely.box(west, 0, west + 1, 1)
            conn.execute(Zone.__table__.insert(), row | {"local": name, "folded": name.lower(), "outline": outline})
        point = func.ST_SetSRID(func.ST_MakePoint(10.5, 0.5), 4326)
        found = conn.scalars(select(Zone.local).where(func.ST_Covers(Zone.outline, point))).all()
    engine.dispose()
    assert found == ["B"]


def test_a_pooled_connection_that_broke_is_replaced_unnoticed(postgis_url: str):
    engine = open_engine(postgis_url)
    with engine.connect() as conn:
        pid = conn.scalar(text("SELECT pg_backend_pid()"))
    with engine.connect() as conn, engine.connect() as other:
        # One of the two is the first one's: end it from the other.
        mine = conn.scalar(text("SELECT pg_backend_pid()"))
        (other if mine == pid else conn).execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        with pytest.raises(DatabaseUnreachable):
            (conn if mine == pid else other).execute(text("SELECT 1"))
    for _ in range(3):
        with engine.connect() as conn:
            assert conn.scalar(text("SELECT pg_backend_pid()")) != pid
    engine.dispose()


def test_connections_that_broke_while_idle_are_replaced_unnoticed(postgis_url: str):
    engine, other = open_engine(postgis_url), open_engine(postgis_url)
    with engine.connect() as conn:
        pid = conn.scalar(text("SELECT pg_backend_pid()"))
    with other.connect() as conn:
        conn.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    with engine.connect() as conn:
        assert conn.scalar(text("SELECT 1")) == 1
    engine.dispose()
    other.dispose()
