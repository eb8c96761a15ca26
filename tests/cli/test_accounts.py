"""`db`, `users` and `keys`: they work on the database itself."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from server.cli.main import main
from server.store.accounts import authenticate
from server.store.engine import REVISION, open_engine


@pytest.fixture
def database(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FENCEPOST_DATABASE", database_url)
    assert main(["db", "upgrade"]) == 0
    return database_url


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def owner_of(url: str, key: str, now: int = 0) -> str | None:
    engine = open_engine(url)
    with engine.connect() as conn:
        account = authenticate(conn, key, now)
    engine.dispose()
    return account and account.name


def test_upgrade_says_what_it_reached(sqlite_url: str, capsys: pytest.CaptureFixture[str]):
    assert main(["db", "upgrade", "--database", sqlite_url, "--json"]) == 0
    assert printed(capsys) == [{"database": sqlite_url, "revision": REVISION}]


def test_a_new_user_gets_a_key_that_works(database: str, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["users", "add", "mike"]) == 0
    captured = capsys.readouterr()
    assert owner_of(database, captured.out.strip()) == "mike"  # stdout is the key alone, for $(...)
    assert captured.err == "Added mike. This is the key, shown only now:\n"


def test_a_user_can_be_added_without_a_key(database: str, capsys: pytest.CaptureFixture[str]):
    main(["users", "add", "mike", "--no-key"])
    capsys.readouterr()
    assert main(["keys", "list", "mike", "--json"]) == 0
    assert printed(capsys) == []


def test_users_are_listed(database: str, capsys: pytest.CaptureFixture[str]):
    main(["users", "add", "Anna", "--admin", "--json"])
    main(["users", "add", "foo@acme.com", "--json"])
    capsys.readouterr()
    assert main(["users", "list", "--json"]) == 0
    users = printed(capsys)
    assert [(user["name"], user["admin"]) for user in users] == [
        ("Anna", True),
        ("foo@acme.com", False),
        ("SYSTEM", False),
    ]
    assert all(datetime.fromisoformat(user["created"]).tzinfo for user in users)


def test_a_name_that_is_taken_is_one_sentence(database: str, capsys: pytest.CaptureFixture[str]):
    main(["users", "add", "mike"])
    capsys.readouterr()
    assert main(["users", "add", "MIKE"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("fencepost: There is already a user 'mike'.")


def test_keys_are_made_listed_and_revoked(database: str, capsys: pytest.CaptureFixture[str]):
    main(["users", "add", "mike", "--no-key"])
    capsys.readouterr()
    assert main(["keys", "add", "mike", "--label", "laptop", "--expires-days", "0.5", "--json"]) == 0
    (made,) = printed(capsys)
    assert owner_of(database, made["key"]) == "mike"
    key_id = made["key"].split("_")[1]

    assert main(["keys", "list", "mike", "--json"]) == 0
    (listed,) = printed(capsys)
    assert (listed["id"], listed["label"], listed["revoked"]) == (key_id, "laptop", None)
    life = datetime.fromisoformat(listed["expires"]) - datetime.fromisoformat(listed["created"])
    assert life.total_seconds() == 43200
    assert made["key"].split("_", 2)[2] not in json.dumps(listed)

    assert main(["keys", "revoke", key_id]) == 0
    assert owner_of(database, made["key"]) is None


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_key_that_is_never_good_is_refused(database: str, days: str, capsys: pytest.CaptureFixture[str]):
    main(["users", "add", "mike", "--no-key"])
    assert main(["keys", "add", "mike", f"--expires-days={days}"]) == 1
    assert "expired from the start" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["keys", "add", "nobody"], ["keys", "list", "nobody"], ["keys", "revoke", "0123"]])
def test_what_is_not_there_is_said(database: str, argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(argv) == 1
    assert "There is no" in capsys.readouterr().err


def test_people_get_a_table(database: str, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert main(["users", "list"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "admin", "created"]
    assert row.startswith("SYSTEM  no ")


def test_a_name_that_is_not_utf_8_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    database = str(tmp_path / "fencepost.db")
    assert main(["db", "upgrade", "--database", database]) == 0
    assert main(["keys", "add", "\udcff", "--database", database]) == 1
    assert capsys.readouterr().err == "fencepost: An argument has bytes in it that are not UTF-8.\n"


@pytest.mark.parametrize("command", [["db", "upgrade"], ["serve", "--port", "0"]])
def test_a_database_that_can_not_be_written_is_one_sentence(command: list[str], capsys: pytest.CaptureFixture[str]):
    assert main([*command, "--database", "/dev/null"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("fencepost: The database")
    assert said.count("\n") == 1
