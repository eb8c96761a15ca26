"""A server and its devices in one thread, with a clock that only moves when told to.

Everything that decides is the real thing: the node with its store, the commands, the controller's sessions, the codec,
the agent's session, device and file. Only the socket is replaced, by two queues that can be cut at any frame, and
the writer's thread, by running each unit of work where it is asked for.
"""

import asyncio
import hashlib
import secrets
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from agent_sdk.device import Device
from agent_sdk.outbox import DeviceStore
from agent_sdk.protocol.codec import MSGPACK, Codec, Frame
from agent_sdk.protocol.session import CLOSE_REVOKED, AgentSession
from matcher.events import Event
from matcher.once import Instant
from privacy.policies import Grant, Operation
from server.controller.enrolment import authenticate_agent, enrol, invite, revoke_agent
from server.controller.live import Controller
from server.delivery.reading import read_notifications
from server.errors import ObjectHasAgent
from server.node import Node
from server.pubsub.grants import add_grant, remove_grant
from server.pubsub.loading import load_world
from server.pubsub.publishing import expire_dwells, publish
from server.pubsub.subscriptions import NewSubscription, delete_subscription, put_subscription
from server.pubsub.world import World
from server.pubsub.zones import NewZone, delete_zone, put_zone
from server.settings import Settings
from server.store.accounts import Account, add_user
from server.store.engine import for_writing, open_engine
from server.store.migrate import upgrade
from zones.names import ZoneName
from zones.shapes import Shape
from zones.validation import check_shape
from zones.zone import Zone

__all__ = ["ALL", "OID", "START", "Clock", "Phone", "Site", "Template", "make_template"]

START: Instant = 1_800_000_000_000
OID = "alice/van"
ALL = (Operation.ENTER, Operation.LEAVE, Operation.POSITION)
_ROUNDS = 30  # of the event loop; the longest chain of callbacks behind a frame is about ten
_numbers = count(1)


@dataclass
class Clock:
    now: Instant = START

    def __call__(self) -> Instant:
        return self.now

    def reach(self, instant: Instant) -> None:
        self.now = max(self.now, instant)


@dataclass(frozen=True)
class Template:
    """A migrated database with its users, to be copied for each example, so that ids are the same in every copy."""

    copy: Callable[[], str]
    folder: Path
    alice: Account
    bob: Account
    root: Account


def make_template(url: str, copy: Callable[[], str], folder: Path) -> Template:
    upgrade(url)
    engine = open_engine(url)
    accounts = []
    with engine.connect() as plain:
        conn = for_writing(plain)
        with conn.begin():
            for name in ("alice", "bob", "root"):
                user = add_user(conn, name, admin=name == "root", now=START)
                accounts.append(Account(user.user_id, name, user.is_admin, "k"))
    engine.dispose()
    return Template(copy, folder, *accounts)


class _Node(Node):
    """Runs every unit of work at once, in the caller's thread."""

    async def run(self, command: Any, *args: Any, **kwargs: Any) -> Any:
        return self.run_now(command, *args, **kwargs)

    def _begin(self, chore: Any) -> None:
        """Whether there is an engine is for the test to say."""
        chore.close()


class _Wire:
    """One connection: what starlette's WebSocket is to the server. `lose_after` frames in all, it breaks."""

    def __init__(self, lose_after: int | None) -> None:
        self._budget = lose_after
        self._inward: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.to_agent: list[Frame] = []
        self.is_broken = False
        self.close_code: int | None = None

    def from_agent(self, frame: Frame) -> None:
        if self._carries():
            self._inward.put_nowait({"type": "websocket.receive", "text" if isinstance(frame, str) else "bytes": frame})

    def cut(self) -> None:
        """Nothing more arrives on either side; the server notices now, the agent when it looks."""
        if not self.is_broken:
            self.is_broken = True
            self.to_agent.clear()
            self._inward.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def receive(self) -> dict[str, Any]:
        return await self._inward.get()

    async def send_text(self, frame: str) -> None:
        self._to_agent(frame)

    async def send_bytes(self, frame: bytes) -> None:
        self._to_agent(frame)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        if self.close_code is None:
            self.close_code = code
            self._inward.put_nowait({"type": "websocket.disconnect", "code": code})

    def _to_agent(self, frame: Frame) -> None:
        if self.close_code is not None:
            raise RuntimeError('Cannot call "send" once a close message has been sent.')
        if self._carries():
            self.to_agent.append(frame)

    def _carries(self) -> bool:
        if self._budget is not None and not self.is_broken:
            self._budget -= 1
            if self._budget < 0:
                self.cut()
        return not self.is_broken


class Site:
    """The server, as its users and devices see it."""

    def __init__(self, template: Template, *, lease_s: float = 86_400.0) -> None:
        self.template = template
        self.clock = Clock()
        self.settings = Settings(database=template.copy(), lease_s=lease_s)
        self.loop = asyncio.new_event_loop()
        self.serving: set[asyncio.Task[None]] = set()
        self.agents: list[int] = []
        self._grant: int | None = None
        self._open()

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        self._shut()
        self.loop.close()
        if self.settings.database.startswith("sqlite"):
            for suffix in ("", "-wal", "-shm"):
                Path(self.settings.database.removeprefix("sqlite:///") + suffix).unlink(missing_ok=True)

    # --- life ----------------------------------------------------------------------------------------

    def reopen(self) -> None:
        """As after kill -9: all connections break, and everything in memory is gone; none of it was needed."""
        with self.node.engine.connect() as conn:
            stored = load_world(conn)
        for name in ("states", "dwelling", "objects", "subscriptions", "offsets", "users"):
            assert getattr(self.node.world, name) == getattr(stored, name), f"the world's {name} ran ahead of the store"
        assert _zones(self.node.world) == _zones(stored)
        assert _grants(self.node.world) == _grants(stored)
        assert _leases(self.node.world) == _leases(stored)
        self._shut()
        self._open()

    def turn(self) -> None:
        """Let the event loop do everything it can."""

        async def rounds() -> None:
            for _ in range(_ROUNDS):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rounds())
        for task in [task for task in self.serving if task.done()]:
            self.serving.discard(task)
            task.result()

    def _open(self) -> None:
        self.node = _Node(self.settings, clock=self.clock)
        if self.node.engine.dialect.name == "sqlite":
            pooled = self.node.engine.raw_connection()
            pooled.execute("PRAGMA synchronous = OFF")  # type: ignore[attr-defined]  # no power cuts are tried here
            pooled.close()
        self.node._loop = self.loop
        self.controller = Controller(self.node)
        self.wires: list[_Wire] = []

    def _shut(self) -> None:
        for wire in self.wires:
            wire.cut()
        self.turn()
        assert not self.serving
        self.node.engine.dispose()

    # --- commands ------------------------------------------------------------------------------------

    def do(self, command: Any, *args: Any, **kwargs: Any) -> Any:
        result = self.node.run_now(command, *args, **kwargs)
        self.turn()
        return result

    def publish(self, *events: Event) -> int:
        """How many of them were not late."""
        named = [msgspec.structs.replace(event, oid=OID) for event in events]
        accepted: int = self.do(publish, self.template.alice, named).accepted
        return accepted

    def is_refused(self, event: Event) -> bool:
        try:
            self.publish(event)
        except ObjectHasAgent:
            return True
        return False

    def let_time_pass(self) -> None:
        self.do(expire_dwells)

    def put_zone(self, name: str, shape: Shape, tags: Iterable[str] = ()) -> None:
        owner, _, local = name.rpartition(".")
        account = self.template.root if owner == "SYSTEM" else getattr(self.template, owner)
        self.do(
            put_zone, account, NewZone(ZoneName(owner, local), check_shape(shape), tags=tuple(tags), on_devices=True)
        )

    def delete_zone(self, name: str) -> None:
        owner, _, local = name.rpartition(".")
        self.do(delete_zone, self.template.root, ZoneName(owner, local))

    def subscribe(self, new: NewSubscription, who: str = "bob") -> None:
        self.do(put_subscription, getattr(self.template, who), new)

    def unsubscribe(self, name: str, who: str = "bob") -> None:
        self.do(delete_subscription, getattr(self.template, who), name)

    def grant(self, operations: Iterable[Operation] = ALL) -> None:
        self._grant = self.do(add_grant, self.template.alice, "bob", operations).id

    def ungrant(self) -> None:
        self.do(remove_grant, self.template.alice, self._grant)

    def enrol(self) -> str:
        """A new credential; whoever had one before is ended."""
        token = self.do(invite, self.template.alice, OID).token
        secret = secrets.token_urlsafe(32)
        agent = self.do(enrol, token, hashlib.sha256(secret.encode()).hexdigest()).agent
        self.agents.append(agent)
        return f"fpa_{agent}_{secret}"

    def revoke(self) -> None:
        self.do(revoke_agent, self.template.alice, self.agents[-1])

    # --- looking -------------------------------------------------------------------------------------

    def told(self, who: str = "bob") -> list[dict[str, Any]]:
        """All notifications of that user, page by page; their offsets have no gap."""
        found: list[dict[str, Any]] = []
        with self.node.engine.connect() as conn:
            while page := read_notifications(conn, getattr(self.template, who).user_id, len(found), 7):
                found += page
        assert [each["offset"] for each in found] == list(range(1, len(found) + 1))
        return found

    def accept(self, credential: str, codec: Codec, lose_after: int | None) -> _Wire | None:
        with self.node.engine.connect() as conn:
            identity = authenticate_agent(conn, credential)
        if identity is None:
            return None
        wire = _Wire(lose_after)
        self.wires.append(wire)
        self.serving.add(self.loop.create_task(self.controller.serve(wire, identity, codec)))  # type: ignore[arg-type]
        return wire


def _zones(world: World) -> dict[str, Zone]:
    return {key: entry.zone for key, entry in world.zones.items()}


def _grants(world: World) -> list[Grant]:
    return [grant for grants in world.grants.values() for grant in grants.values()]


def _leases(world: World) -> dict[int, tuple[int, Instant]]:
    return {object_id: (agent.id, agent.lease_until) for object_id, agent in world.agents.items()}


@dataclass
class Phone:
    """A device that lives on: its file, and a connection that comes and goes."""

    site: Site
    credential: str
    codec: Codec = MSGPACK
    path: Path = field(init=False)
    is_revoked: bool = False

    def __post_init__(self) -> None:
        self.path = self.site.template.folder / f"device-{next(_numbers)}.db"
        self.wire: _Wire | None = None
        self.session: AgentSession | None = None
        self.byes: list[str] = []
        self._start()

    def __enter__(self) -> "Phone":
        return self

    def __exit__(self, *_: object) -> None:
        self.device.close()
        self._delete()

    # --- life ----------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Stop in order and start again."""
        self.disconnect()
        self.device.close()
        self._start()

    def kill(self) -> None:
        """Start again from a copy of the file as a kill -9 would leave it."""
        self.disconnect()
        copy = self.path.with_name(f"device-{next(_numbers)}.db")
        for suffix in ("", "-wal"):
            if Path(f"{self.path}{suffix}").exists():
                shutil.copyfile(f"{self.path}{suffix}", f"{copy}{suffix}")
        self.device.close()
        self._delete()
        self.path = copy
        self._start()

    def wipe(self) -> None:
        """The file is lost; the credential was kept elsewhere."""
        self.disconnect()
        self.device.close()
        self._delete()
        self._start()

    def _start(self) -> None:
        store = DeviceStore(self.path, identity=self.credential)
        store._db.execute("PRAGMA synchronous = OFF")
        self.device = Device(store)

    def _delete(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    # --- connection ----------------------------------------------------------------------------------

    def connect(self, lose_after: int | None = None) -> None:
        """A new connection; one that is open is left hanging, as when a phone changes networks."""
        self.wire = self.session = None
        wire = self.site.accept(self.credential, self.codec, lose_after)
        if wire is None:
            self.is_revoked = True
            return
        self.wire, self.session = wire, AgentSession(self.codec, self.device)
        self.talk()

    def disconnect(self) -> None:
        if self.wire is not None:
            self.wire.cut()
            self.wire = self.session = None
            self.site.turn()

    def talk(self) -> None:
        """Carry frames both ways until nobody has more to say, or the connection has ended."""
        now = self.site.clock.now
        while self.wire is not None and self.session is not None:
            wire, session = self.wire, self.session
            frames = session.frames_to_send(now)
            for frame in frames:
                wire.from_agent(frame)
            self.site.turn()
            answers, wire.to_agent[:] = wire.to_agent[:], []
            for frame in answers:
                session.receive(frame, now)
                if session.skew_ms is not None:
                    self.device.skew_ms = session.skew_ms
            if session.bye is not None:
                self.byes.append(session.bye.code)
            if wire.is_broken or wire.close_code is not None:
                self.is_revoked = self.is_revoked or wire.close_code == CLOSE_REVOKED
                wire.cut()
                self.wire = self.session = None
            elif not frames and not answers:
                return

    def drain(self) -> None:
        """Stay connected until every report is acknowledged."""
        for _ in range(5):
            if self.session is None and not self.is_revoked:
                self.connect()
            self.talk()
            if self.is_revoked or (self.session is not None and self.device.waiting == 0):
                return
        raise AssertionError("the device does not get rid of its reports")

    # --- fixes ---------------------------------------------------------------------------------------

    @property
    def may_evaluate(self) -> bool:
        return self.device.may_evaluate(self.site.clock.now)

    def fix(self, event: Event) -> bool:
        """Whether the device took it as news."""
        before = (self.device.counts.late, self.device.counts.suspended, self.device.counts.invalid)
        self.device.fix(event, self.site.clock.now)
        self.talk()
        return before == (self.device.counts.late, self.device.counts.suspended, self.device.counts.invalid)

    def let_time_pass(self) -> None:
        self.device.advance(self.site.clock.now, self.site.clock.now)
        self.talk()
