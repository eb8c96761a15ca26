"""A lease is counted alike at both ends: what nobody asked for does not lengthen it."""

import asyncio
import time
from contextlib import asynccontextmanager, suppress

import httpx
import pytest

from agent_sdk.protocol.codec import JSON
from agent_sdk.protocol.messages import Bye, Hello, Plan, Renew, Welcome
from server.app import create_app
from server.controller.enrolment import AgentIdentity
from server.settings import Settings
from server.store.accounts import add_key, add_user
from server.store.engine import for_writing, open_engine
from server.store.migrate import upgrade

LEASE_S = 3600.0


class Clock:
    """The server's clock, set by hand."""

    def __init__(self):
        self.now = time.time_ns() // 1_000_000

    def __call__(self):
        return self.now

    def pass_s(self, seconds):
        self.now += round(seconds * 1000)


@pytest.fixture
def clock():
    return Clock()


class Socket:
    """The server's end of a WebSocket whose other end is two queues."""

    def __init__(self):
        self._coming, self._going = asyncio.Queue(), asyncio.Queue()

    async def receive(self):
        return {"type": "websocket.receive", "text": await self._coming.get()}

    async def send_text(self, frame):
        await self._going.put(JSON.decode_from_server(frame))

    async def close(self, code, reason):
        await self._going.put(code)

    async def say(self, message):
        await self._coming.put(JSON.encode(message))

    async def hear(self):
        async with asyncio.timeout(10):
            return await self._going.get()


@asynccontextmanager
async def serving(database, clock):
    """A server whose clock is ours, and mike's client of it, with a zone to be told about."""
    await asyncio.to_thread(upgrade, database)
    engine = open_engine(database)
    with engine.connect() as conn, for_writing(conn).begin():
        key = add_key(conn, add_user(conn, "mike", admin=False, now=1).user_id, now=1)
    engine.dispose()
    app = create_app(Settings(database=database, lease_s=LEASE_S))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://server", headers={"Authorization": f"Bearer {key}"}
        ) as mike,
    ):
        app.state.node.clock = clock
        shape = {"type": "Rectangle", "bbox": [10, 50, 11, 51]}
        await done(mike.put("/v1/zones/mike.HOME", json={"shape": shape}))
        await subscribe(mike, "home")
        yield app, mike


async def done(request):
    answer = await request
    assert answer.is_success, answer.text
    return answer.json()


async def subscribe(mike, name):
    await done(mike.put(f"/v1/subscriptions/{name}", json={"selector": "(mike) within (mike.HOME)"}))


@asynccontextmanager
async def connected(app, mike, clock):
    """An agent's end of a connection, after hello, welcome and plan."""
    token = (await done(mike.post("/v1/agents", json={"oid": "mike"})))["token"]
    body = {"token": token, "secret_sha256": "0" * 64}
    agent = (await done(mike.post("/v1/agents/enrol", json=body)))["agent"]
    entry = app.state.node.world.object("mike")
    socket = Socket()
    served = asyncio.create_task(
        app.state.controller.serve(socket, AgentIdentity(agent, entry.id, entry.owner_id), JSON)
    )
    try:
        await socket.say(Hello(1, clock(), capabilities=("within",)))
        assert isinstance(await socket.hear(), Welcome)
        assert isinstance(await socket.hear(), Plan)
        yield socket
    finally:
        served.cancel()
        with suppress(asyncio.CancelledError):
            await served


async def test_a_changed_plan_carries_what_is_left_of_the_lease(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as socket:
        clock.pass_s(600)
        await subscribe(mike, "again")
        change = await socket.hear()
        assert (change.full, change.lease_s) == (False, LEASE_S - 600)


async def test_an_agent_whose_place_was_taken_is_sent_no_plan_until_it_says_hello(sqlite_url, clock):
    async with serving(sqlite_url, clock) as (app, mike), connected(app, mike, clock) as socket:
        clock.pass_s(LEASE_S + 1)
        fix = {"ts": clock(), "loc": [10.5, 50.5]}
        await done(mike.post("/v1/events", json=fix))  # the server evaluates from here on
        await subscribe(mike, "again")
        await socket.say(Renew())
        bye = await socket.hear()
        assert isinstance(bye, Bye)
        assert bye.code == "protocol_violation"
        assert await socket.hear() == 4400
