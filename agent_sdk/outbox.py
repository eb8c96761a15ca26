"""What a device must not forget: one SQLite file with plan, states and outbox.

An edge and the state it leaves are written in one transaction, with a sync, before anybody hears of the edge. So
after kill -9 or a power cut the device goes on from a moment that really was, and each edge is in the outbox
exactly once until the server has acknowledged it.

A fix that changes no state writes nothing, not even that it was the newest. That is safe: the stored state is the
state after that fix as well, so a device that comes back and sees it again, or never does, finds the same edges.
(Only after kill -9 can a late fix be taken for news by that. A device that is closed in order writes the newest.)
While a dwell is running the event that holds is part of the state (the enter will carry it) and is written. So it is
while a binding with `crossing` is in the plan: what was crossed depends on it.

The file is this process's alone while it is open. One that can't be read is moved aside, never deleted, and the
device starts anew with generation 0: the server then hands it everything it needs.
"""

import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from agent_sdk.errors import StateFileInUse, StateFileUnusable
from agent_sdk.protocol.messages import Ack, Plan, PlanItem, PlanZone, ReportItem
from agent_sdk.protocol.plans import FullPlan
from matcher.events import Event
from matcher.once import Instant, OnceState

__all__ = ["DeadReport", "DeviceStore", "Remembered"]

_log = logging.getLogger("fencepost.agent")

_APPLICATION_ID = 0x46504147  # "FPAG", in the file's header
_VERSION = 1
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE items (handle TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE zones (zone TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE states (handle TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE dead (seq INTEGER PRIMARY KEY, code TEXT NOT NULL, sentence TEXT NOT NULL, body BLOB NOT NULL);
"""

_T = TypeVar("_T")
_encode = msgspec.msgpack.Encoder().encode
_item = msgspec.msgpack.Decoder(PlanItem).decode
_zone = msgspec.msgpack.Decoder(PlanZone).decode
_state = msgspec.msgpack.Decoder(OnceState).decode
_report = msgspec.msgpack.Decoder(ReportItem).decode
_event = msgspec.msgpack.Decoder(Event).decode


@dataclass(frozen=True, slots=True)
class DeadReport:
    """A report the server refused for good, and why."""

    report: ReportItem
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """Everything but the outbox, as it was when the file was last written."""

    plan: FullPlan = field(default_factory=FullPlan)
    etag: str = ""
    states: Mapping[str, OnceState] = field(default_factory=dict)
    newest: Instant | None = None
    last: Event | None = None
    cursor: int = 0
    lease_until: Instant | None = None


class _Unreadable(Exception):
    """The file is not one of ours; the reason is for the log."""


class DeviceStore:
    """`path` None keeps everything in memory, for simulations. `identity` is whose outbox this is: another
    credential's history must not be reported as this one's, so a file of another identity is emptied.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, *, identity: str = "", limit: int = 100_000, dead_limit: int = 1000
    ) -> None:
        self.limit = limit
        self._dead_limit = dead_limit
        self._db = _opened(None if path is None else Path(path))
        self._claim(identity)
        self.waiting: int = self._db.execute("SELECT count(*) FROM outbox").fetchone()[0]

    @property
    def is_full(self) -> bool:
        """No more edges may be added: what is in here has to be sent first."""
        return self.waiting >= self.limit

    def close(self) -> None:
        self._db.close()

    def load(self) -> Remembered:
        facts = dict(self._db.execute("SELECT name, value FROM facts").fetchall())
        items = _rows(self._db, "SELECT handle, body FROM items", _item)
        zones = _rows(self._db, "SELECT zone, body FROM zones", _zone)
        last = facts.get("last")
        return Remembered(
            plan=FullPlan(facts.get("generation", 0), items, zones),
            etag=facts.get("etag", ""),
            states=_rows(self._db, "SELECT handle, body FROM states", _state),
            newest=facts.get("newest"),
            last=None if last is None else _event(last),
            cursor=facts.get("cursor", 0),
            lease_until=facts.get("lease_until"),
        )

    # --- what changes, one transaction each ---------------------------------------------------------

    def save_fix(
        self,
        reports: Iterable[ReportItem],
        states: Mapping[str, OnceState],
        newest: Instant | None,
        last: Event | None,
    ) -> None:
        """Edges, the states they leave and the event that holds, all or nothing."""
        bodies = [(_encode(report),) for report in reports]
        with self._transaction() as db:
            db.executemany("INSERT INTO outbox (body) VALUES (?)", bodies)
            self._put_states(states)
            self._put_facts(newest=newest, last=None if last is None else _encode(last))
        self.waiting += len(bodies)

    def save_plan(
        self,
        plan: Plan,
        states: Mapping[str, OnceState],
        *,
        newest: Instant | None,
        last: Event | None,
        lease_until: Instant,
    ) -> None:
        """Take over a plan; `states` are all that are left after it."""
        with self._transaction() as db:
            if plan.full:
                db.execute("DELETE FROM items")
                db.execute("DELETE FROM zones")
            else:
                db.executemany("DELETE FROM items WHERE handle = ?", [(handle,) for handle in plan.drop])
                db.executemany("DELETE FROM zones WHERE zone = ?", [(zone,) for zone in plan.drop_zones])
            db.executemany(
                "INSERT OR REPLACE INTO items VALUES (?, ?)", [(item.handle, _encode(item)) for item in plan.items]
            )
            db.executemany(
                "INSERT OR REPLACE INTO zones VALUES (?, ?)", [(zone.zone, _encode(zone)) for zone in plan.zones]
            )
            db.execute("DELETE FROM states")
            self._put_states(states)
            self._put_facts(
                generation=plan.generation,
                etag=plan.etag,
                newest=newest,
                last=None if last is None else _encode(last),
                lease_until=lease_until,
            )

    def save_newest(self, newest: Instant) -> None:
        with self._transaction():
            self._put_facts(newest=newest)

    def save_lease(self, lease_until: Instant) -> None:
        with self._transaction():
            self._put_facts(lease_until=lease_until)

    def save_cursor(self, cursor: int) -> None:
        with self._transaction():
            self._put_facts(cursor=cursor)

    def acknowledge(self, ack: Ack) -> tuple[str, ...]:
        """Delete what the server has; what it refused goes to the dead list, the oldest of which make room.

        The states of bindings that have ended go too, and their handles are the answer: the server keeps no count of
        what it refuses then, so should the binding come back it begins where the server is.
        """
        ended: list[str] = []
        with self._transaction() as db:
            for refusal in ack.refused:
                if refusal.code == "binding_ended":
                    found = db.execute("SELECT body FROM outbox WHERE seq = ?", (refusal.seq,)).fetchone()
                    ended += [] if found is None else [_report(found[0]).handle]
                db.execute(
                    "INSERT OR REPLACE INTO dead SELECT seq, ?, ?, body FROM outbox WHERE seq = ? AND seq <= ?",
                    (refusal.code, refusal.sentence, refusal.seq, ack.seq),
                )
            if ack.refused:
                db.execute(
                    "DELETE FROM dead WHERE seq NOT IN (SELECT seq FROM dead ORDER BY seq DESC LIMIT ?)",
                    (self._dead_limit,),
                )
            db.executemany("DELETE FROM states WHERE handle = ?", [(handle,) for handle in ended])
            gone = db.execute("DELETE FROM outbox WHERE seq <= ?", (ack.seq,)).rowcount
        self.waiting -= gone
        return tuple(ended)

    def forget(self) -> None:
        """No plan, no states, no outbox: generation 0. The dead list and the cursor stay."""
        with self._transaction() as db:
            for table in ("items", "zones", "states", "outbox"):
                db.execute(f"DELETE FROM {table}")
            db.execute("DELETE FROM facts WHERE name IN ('generation', 'etag', 'lease_until', 'last')")
        self.waiting = 0

    # --- reading ------------------------------------------------------------------------------------

    def outgoing(self, after: int, limit: int) -> Sequence[ReportItem]:
        """Reports behind this seq, in order."""
        rows = self._db.execute("SELECT seq, body FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit))
        return [msgspec.structs.replace(_report(body), seq=seq) for seq, body in rows]

    def dead(self) -> tuple[DeadReport, ...]:
        """What the server refused for good, oldest first."""
        rows = self._db.execute("SELECT seq, code, sentence, body FROM dead ORDER BY seq")
        return tuple(
            DeadReport(msgspec.structs.replace(_report(body), seq=seq), code, sentence)
            for seq, code, sentence, body in rows
        )

    # --- inside -------------------------------------------------------------------------------------

    def _claim(self, identity: str) -> None:
        row = self._db.execute("SELECT value FROM facts WHERE name = 'identity'").fetchone()
        if row is not None and row[0] == identity:
            return
        with self._transaction() as db:
            if row is not None:
                _log.warning("state_file_of_another_agent: emptied")
                for table in ("items", "zones", "states", "outbox", "dead", "facts"):
                    db.execute(f"DELETE FROM {table}")
            self._put_facts(identity=identity)

    def _put_states(self, states: Mapping[str, OnceState]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO states VALUES (?, ?)",
            [(handle, _encode(state)) for handle, state in states.items()],
        )

    def _put_facts(self, **facts: object) -> None:
        self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StateFileUnusable(
                f"The agent's state can't be written: {error}.", hint="Look at the disk's free space and health."
            ) from error


def _rows(db: sqlite3.Connection, query: str, decode: Callable[[bytes], _T]) -> dict[str, _T]:
    return {key: decode(body) for key, body in db.execute(query)}


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return _connected(":memory:")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # positions are in it: for its owner's eyes only
    except OSError as error:
        raise StateFileUnusable(
            f"The agent's state file {path} can't be opened: {error.strerror}.",
            hint="Name a file in a folder that can be written.",
        ) from error
    try:
        return _connected(str(path))
    except _Unreadable as error:
        aside = _moved_aside(path)
        _log.error("state_file_moved_aside: reason=%s to=%s", error, aside.name)
        return _connected(str(path))


def _connected(path: str) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=0.3, isolation_level=None)
    try:
        _prepare(db)
    except sqlite3.DatabaseError as error:
        db.close()
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StateFileInUse(
                f"The agent's state file {path} is in use by another process.",
                hint="Stop the other agent, or give this one a state file of its own.",
            ) from error
        if isinstance(error, sqlite3.OperationalError) and not _says_corrupt(error):
            raise StateFileUnusable(
                f"The agent's state file {path} can't be used: {error}.", hint="Look at the disk and the file's rights."
            ) from error
        raise _Unreadable(str(error)) from error
    except BaseException:
        db.close()
        raise
    return db


def _says_corrupt(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _prepare(db: sqlite3.Connection) -> None:
    """Lock the file for as long as it is open, and make sure that what is in it is ours."""
    db.execute("PRAGMA locking_mode = EXCLUSIVE")
    db.execute("PRAGMA synchronous = FULL")
    ours = db.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID
    empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not ours and not empty:
        raise _Unreadable("foreign_file")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("BEGIN EXCLUSIVE")
    try:
        if empty:
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_VERSION}")
        elif db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
            raise _Unreadable("other_version")
        elif db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _Unreadable("corrupt")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _moved_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.aside-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    return aside
