"""A real server, as a process of its own, and a small client of it.

Tests keep apart by using users of their own: `server.user("mike")` makes one with a name nobody else has.
"""

import hashlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, inspect, text

from server.store.accounts import add_key, add_user, revoke_key
from server.store.engine import for_writing, open_engine

__all__ = ["LiveServer", "Person", "serving"]

_ROOT = Path(__file__).resolve().parents[2]
_CREATED = 1_700_000_000_000


@dataclass
class Person:
    """A user with a key; every method is one request."""

    name: str
    key: str
    url: str
    http: httpx.Client = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["content"] = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**self.headers, **options.pop("headers", {})}
        return self.http.request(method, path, headers=headers, **options)

    def done(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The answer's JSON; the request must succeed."""
        answer = self.ask(method, path, body, **options)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def square(self, zone: str, west: float, south: float, size: float = 1.0, **options: Any) -> None:
        shape = {"type": "Rectangle", "bbox": [west, south, west + size, south + size]}
        self.done("PUT", f"/v1/zones/{zone}", {"shape": shape, **options})

    def subscribe(self, name: str, selector: str, **options: Any) -> None:
        self.done("PUT", f"/v1/subscriptions/{name}", {"selector": selector, **options})

    def grant(self, who: "Person", *operations: str) -> int:
        grant = {"who": who.name, "operations": list(operations or ("enter", "leave"))}
        identifier: int = self.done("POST", "/v1/privacy/grants", grant)["id"]
        return identifier

    def publish(self, *events: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.done("POST", "/v1/events", list(events))
        return answer

    def told(self, after: int = 0, **query: Any) -> list[dict[str, Any]]:
        page = self.done("GET", "/v1/notifications", params={"after": after, **query})
        notifications: list[dict[str, Any]] = page["notifications"]
        return notifications

    def enrol(self, oid: str = "") -> str:
        """Become the object's agent as a stranger's program would; gives the credential."""
        token = self.done("POST", "/v1/agents", {"oid": oid or self.name})["token"]
        secret = secrets.token_urlsafe(32)
        body = {"token": token, "secret_sha256": hashlib.sha256(secret.encode()).hexdigest()}
        answer = self.http.post("/v1/agents/enrol", json=body)
        assert answer.status_code == 201, answer.text
        return f"fpa_{answer.json()['agent']}_{secret}"


@dataclass
class LiveServer:
    url: str
    database: str
    http: httpx.Client = field(repr=False)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws", 1)

    def user(self, name: str, *, admin: bool = False) -> Person:
        """A new user whose name begins so."""
        return self.person(f"{name}{next(self._numbers)}", admin=admin)

    def person(self, name: str, *, admin: bool = False) -> Person:
        engine = open_engine(self.database)
        try:
            with engine.connect() as conn, for_writing(conn).begin():
                account = add_user(conn, name, admin=admin, now=_CREATED)
                key = add_key(conn, account.user_id, now=_CREATED)
        finally:
            engine.dispose()
        return Person(name, key, self.url, self.http)

    def revoke_key(self, person: Person) -> None:
        """As `fencepost keys revoke` does it: in the database, behind the server's back."""
        engine = open_engine(self.database)
        try:
            with engine.connect() as conn, for_writing(conn).begin():
                revoke_key(conn, person.key.split("_")[1], now=_CREATED)
        finally:
            engine.dispose()

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table."""
        engine = create_engine(self.database)
        try:
            with engine.connect() as conn:
                names = sorted(set(inspect(engine).get_table_names()) - {"spatial_ref_sys"})
                return {
                    name: sorted((tuple(row) for row in conn.execute(text(f'SELECT * FROM "{name}"'))), key=repr)
                    for name in names
                }
        finally:
            engine.dispose()


@contextmanager
def serving(database: str, *options: str) -> Iterator[LiveServer]:
    process = subprocess.Popen(
        [sys.executable, "-m", "server.cli.main", "serve", "--port", "0", "--json", "--database", database, *options],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        url = json.loads(line)["url"]
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as http:
            yield LiveServer(url, database, http)
    finally:
        process.terminate()
        try:
            _, said = process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
    assert "Traceback" not in said, said
