"""Users and keys: nobody poses as another, and no secret can be had from the database."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text

from server.errors import UserNotFound
from server.store import accounts
from server.store.engine import open_engine
from server.store.errors import KeyLifetimeInvalid, KeyNotFound, UserExists
from server.store.migrate import upgrade
from server.store.models import Key
from zones.errors import ZoneNameInvalid

NOW = 1_700_000_000_000


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    upgrade(database_url)
    engine = open_engine(database_url)
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@pytest.fixture
def mike(conn: Connection) -> accounts.UserRecord:
    return accounts.add_user(conn, "mike", now=NOW)


def test_a_key_tells_whose_it_is(conn: Connection):
    anna = accounts.add_user(conn, "Anna", admin=True, now=NOW)
    key = accounts.add_key(conn, anna.user_id, label="laptop", now=NOW)
    account = accounts.authenticate(conn, key, NOW)
    assert account == accounts.Account(anna.user_id, "Anna", True, key.split("_")[1])


@pytest.mark.parametrize("name", ["mike", "MIKE", "Mike", "ｍｉｋｅ"])
def test_a_name_that_reads_the_same_is_taken(conn: Connection, mike: accounts.UserRecord, name: str):
    with pytest.raises(UserExists, match="already a user 'mike'"):
        accounts.add_user(conn, name, now=NOW)
    assert [user.name for user in accounts.list_users(conn)] == ["mike", "SYSTEM"]


@pytest.mark.parametrize("name", ["SYSTEM", "system", "ＳＹＳＴＥＭ"])
def test_system_can_not_be_added_and_has_no_keys(conn: Connection, name: str):
    with pytest.raises(UserExists):
        accounts.add_user(conn, name, now=NOW)
    with pytest.raises(UserNotFound):
        accounts.add_key(conn, accounts.find_user(conn, name).user_id, now=NOW)


@pytest.mark.parametrize("name", ["", "a/b", "a\u200bb", ".mike"])
def test_a_name_that_can_not_be_an_owner_is_refused(conn: Connection, name: str):
    with pytest.raises(ZoneNameInvalid):
        accounts.add_user(conn, name, now=NOW)


def test_users_are_found_however_their_name_is_written(conn: Connection, mike: accounts.UserRecord):
    assert accounts.find_user(conn, "MIKE") == mike
    with pytest.raises(UserNotFound):
        accounts.find_user(conn, "nobody")


def test_the_secret_is_nowhere_in_the_database(conn: Connection, mike: accounts.UserRecord):
    secret = accounts.add_key(conn, mike.user_id, now=NOW).split("_", 2)[2]
    (row,) = conn.execute(select(Key.__table__)).all()
    assert secret not in repr(row)
    assert len(row.secret_hash) == 32


def test_a_key_ends_when_it_expires(conn: Connection, mike: accounts.UserRecord):
    key = accounts.add_key(conn, mike.user_id, expires=NOW + 1000, now=NOW)
    assert accounts.authenticate(conn, key, NOW + 999)
    assert accounts.authenticate(conn, key, NOW + 1000) is None


def test_a_key_that_is_expired_from_the_start_is_not_made(conn: Connection, mike: accounts.UserRecord):
    with pytest.raises(KeyLifetimeInvalid):
        accounts.add_key(conn, mike.user_id, expires=NOW, now=NOW)
    assert accounts.list_keys(conn, mike.user_id) == []


def test_a_revoked_key_ends_at_once_and_others_stay(conn: Connection, mike: accounts.UserRecord):
    gone, kept = (accounts.add_key(conn, mike.user_id, label=label, now=NOW) for label in ("gone", "kept"))
    accounts.revoke_key(conn, gone.split("_")[1], now=NOW + 5)
    accounts.revoke_key(conn, gone.split("_")[1], now=NOW + 9)
    assert accounts.authenticate(conn, gone, NOW + 5) is None
    assert accounts.authenticate(conn, kept, NOW + 5)
    assert {(key.label, key.revoked) for key in accounts.list_keys(conn, mike.user_id)} == {
        ("gone", NOW + 5),
        ("kept", None),
    }


def test_revoking_a_key_that_is_not_there_says_so(conn: Connection):
    with pytest.raises(KeyNotFound):
        accounts.revoke_key(conn, "0123456789abcdef", now=NOW)


def test_keys_are_listed_for_their_user_only(conn: Connection, mike: accounts.UserRecord):
    anna = accounts.add_user(conn, "anna", now=NOW)
    accounts.add_key(conn, anna.user_id, label="hers", now=NOW)
    accounts.add_key(conn, mike.user_id, label="his", now=NOW)
    assert [(key.user, key.label) for key in accounts.list_keys(conn, mike.user_id)] == [("mike", "his")]


def test_a_key_of_nobody_can_not_be_made(conn: Connection):
    with pytest.raises(UserNotFound):
        accounts.add_key(conn, 999, now=NOW)


def test_one_wrong_character_is_a_wrong_key(conn: Connection, mike: accounts.UserRecord):
    key = accounts.add_key(conn, mike.user_id, now=NOW)
    for place in range(len(key)):
        other = "A" if key[place] != "A" else "B"
        assert accounts.authenticate(conn, key[:place] + other + key[place + 1 :], NOW) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(garbage=st.text() | st.builds("fpk_{}_{}".format, st.text(), st.text()))
def test_no_garbage_is_a_key_or_breaks_anything(conn: Connection, garbage: str):
    assert accounts.authenticate(conn, garbage, NOW) is None
    assert conn.scalar(text("SELECT 1")) == 1
