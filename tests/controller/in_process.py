"""A server in this process, whose clock is ours and whose sockets are queues: for what must happen at one moment."""

import asyncio
import time
from contextlib import asynccontextmanager

import httpx
from starlette.websockets import WebSocketDisconnect

from agent_sdk.protocol.codec import JSON
from agent_sdk.protocol.messages import Hello, Plan, Welcome
from server.app import create_app
from server.controller.enrolment import AgentIdentity
from server.settings import Settings
from server.store.accounts import add_key, add_user
from server.store.engine import for_writing, open_engine
from server.store.migrate import upgrade

__all__ = ["LEASE_S", "Agent", "Clock", "connected", "done", "reconnected", "serving", "subscribe"]

LEASE_S = 3600.0


class Clock:
    """The server's clock, set by hand."""

    def __init__(self):
        self.now = time.time_ns() // 1_000_000

    def __call__(self):
        return self.now

    def pass_s(self, seconds):
        self.now += round(seconds * 1000)


class _Socket:
    """The server's end of a WebSocket whose other end is two queues; ended, it behaves as starlette's does."""

    def __init__(self):
        self.coming, self.going = asyncio.Queue(), asyncio.Queue()
        self.vanished = False
        self.takes_bytes = asyncio.Event()  # cleared, it is a peer that does not read and whose buffers are full
        self.takes_bytes.set()
        self._ended = False

    async def receive(self):
        frame = await self.coming.get()
        return {"type": "websocket.disconnect"} if frame is None else {"type": "websocket.receive", "text": frame}

    async def send_text(self, frame):
        await self.takes_bytes.wait()
        if self._ended:
            raise RuntimeError('Cannot call "send" once a close message has been sent.')
        if self.vanished:
            self._ended = True
            raise WebSocketDisconnect(1006)
        await self.going.put(JSON.decode_from_server(frame))

    async def close(self, code, reason):
        self._ended = True
        await self.going.put(code)
        await self.coming.put(None)


class Agent:
    """An agent's end of a connection, after hello, welcome and plan."""

    def __init__(self, number, socket, plan, session):
        self.number = number
        self.socket = socket
        self.plan = plan
        self.session = session  # the server's task

    async def say(self, message):
        await self.socket.coming.put(JSON.encode(message))

    async def hear(self):
        """The next frame, or the close code."""
        async with asyncio.timeout(10):
            return await self.socket.going.get()

    async def hang_up(self):
        await self.socket.coming.put(None)


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
async def connected(app, mike, clock, *, after=None):
    token = (await done(mike.post("/v1/agents", json={"oid": "mike"})))["token"]
    body = {"token": token, "secret_sha256": "0" * 64}
    number = (await done(mike.post("/v1/agents/enrol", json=body)))["agent"]
    async with reconnected(app, number, clock, after=after) as agent:
        yield agent


@asynccontextmanager
async def reconnected(app, number, clock, *, after=None):
    """A connection of an agent that is enrolled already."""
    entry = app.state.node.world.object("mike")
    socket = _Socket()
    identity = AgentIdentity(number, entry.id, entry.owner_id)
    session = asyncio.create_task(app.state.controller.serve(socket, identity, JSON))
    agent = Agent(number, socket, None, session)
    try:
        await agent.say(Hello(1, clock(), capabilities=("within",), after=after))
        assert isinstance(await agent.hear(), Welcome)
        agent.plan = await agent.hear()
        assert isinstance(agent.plan, Plan)
        yield agent
    finally:
        await agent.hang_up()
        async with asyncio.timeout(10):
            await session
