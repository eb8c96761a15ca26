"""The shell of agent sessions: carries frames between a WebSocket, the session rules and the node.

One live session per agent: a second connection ends the first. Plans are sent from one place, under the session's
lock, so that an agent never sees a difference to a plan it does not hold.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from agent_sdk.errors import ProtocolViolation, ReportGap
from agent_sdk.protocol.codec import Codec
from agent_sdk.protocol.messages import (
    PROTOCOL,
    Ack,
    Bye,
    FromServer,
    Hello,
    Lease,
    Locate,
    Notify,
    Position,
    Report,
    Welcome,
)
from agent_sdk.protocol.plans import FullPlan, as_full, difference, etag
from agent_sdk.protocol.session import CLOSE_REPLACED, CLOSE_REVOKED, ServerSession
from server.controller.enrolment import AgentIdentity
from server.controller.positions import take_position
from server.controller.reports import take_reports
from server.controller.sessions import greet, plan_for, renew
from server.delivery.following import follow_notifications
from server.node import Node
from zones.errors import FaultError

__all__ = ["Controller"]

_log = logging.getLogger("fencepost.controller")
_CLOSE_TRY_AGAIN = 1013
_NOTIFY_BYTES = 1024 * 1024  # in one frame, unless a single notification is larger: devices bound what they take


class Controller:
    """Knows which agents are connected."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._live: dict[int, _LiveSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        node.plan_keeper = self

    async def serve(self, socket: WebSocket, agent: AgentIdentity, codec: Codec) -> None:
        """One agent's connection, from accepted to closed."""
        live = _LiveSession(self._node, socket, agent, codec)
        previous = self._live.get(agent.agent_id)
        self._live[agent.agent_id] = live
        self._node.metrics.sessions.inc()
        try:
            if previous is not None:
                # Beside this one: a device that lost its network has left a socket behind that takes no more bytes.
                sentence = "Another connection of this agent took over."
                self._start(previous.end(CLOSE_REPLACED, "session_replaced", sentence))
            await live.run()
        finally:
            if self._live.get(agent.agent_id) is live:
                del self._live[agent.agent_id]
            self._node.metrics.sessions.dec()
            self._node.metrics.session_ended(live.session.counts)

    def plans_changed(self, object_ids: set[int]) -> None:
        for live in list(self._live.values()):
            if live.agent.object_id in object_ids:
                self._start(live.refresh())

    def agents_ended(self, agent_ids: set[int]) -> None:
        for agent_id in agent_ids:
            live = self._live.get(agent_id)
            if live is not None:
                self._start(live.end(CLOSE_REVOKED, "agent_revoked", "This agent has been revoked or replaced."))

    def _start(self, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _LiveSession:
    def __init__(self, node: Node, socket: WebSocket, agent: AgentIdentity, codec: Codec) -> None:
        settings = node.settings
        self.agent = agent
        self.session = ServerSession(
            codec, now=node.clock(), max_frame_bytes=settings.max_frame_bytes, max_reports=settings.max_reports
        )
        self._node = node
        self._socket = socket
        self._lock = asyncio.Lock()  # of `_held` and of the order in which plans are sent
        self._held: FullPlan | None = None
        self._locate_every_s = 0.0  # as it was told
        self._closed = False

    async def run(self) -> None:
        pump: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout((self.session.hello_deadline - self._node.clock()) / 1000):
                hello = await self._receive()
            assert isinstance(hello, Hello)
            if not await self._greet(hello):
                return
            if hello.after is not None:
                pump = asyncio.create_task(self._pump_notifications(hello.after))
            while True:
                message = await self._receive()
                if isinstance(message, Report):
                    await self._take(message)
                elif isinstance(message, Position):
                    await self._node.run(take_position, self.agent, message)
                else:
                    await self._renew()
        except ProtocolViolation as error:
            await self.end(error.close_code, error.code, error.sentence, error.hint)
        except TimeoutError:
            await self.end(4400, "hello_timeout", "No hello came in time.", "Send hello as the first frame.")
        except FaultError as error:
            await self._give_up(error)
        except WebSocketDisconnect:
            pass
        finally:
            self._closed = True
            if pump is not None:
                pump.cancel()

    async def refresh(self) -> None:
        """Send what has changed in the plan, if anything has. It is no new lease: the agent did not ask for one."""
        async with self._beside_run(), self._lock:
            if self._held is None or self._closed:
                return
            assignment = await self._node.run(plan_for, self.agent)
            if assignment is None or assignment.lease_until == 0:
                return  # another evaluator has taken over: this one has to say hello before it gets anything more
            left_s = (assignment.lease_until - self._node.clock()) / 1000
            change = difference(self._held, assignment.plan, lease_s=max(left_s, 0.001))
            if change is not None:
                self._held = assignment.plan
                await self._send(change)
            await self._locate(assignment.locate_every_s)

    async def end(self, close_code: int, code: str, sentence: str, hint: str = "") -> None:
        if self._closed:
            return
        self._closed = True
        _log.info("session_ended", extra={"agent": self.agent.agent_id, "code": code})
        with suppress(WebSocketDisconnect, RuntimeError):
            await self._send(Bye(code, sentence, hint))
            await self._socket.close(close_code, code)  # a reason has 123 bytes at most, and a sentence may quote

    async def _greet(self, hello: Hello) -> bool:
        settings = self._node.settings
        async with self._lock:
            assignment = await self._node.run(greet, self.agent, hello)
            if assignment is None:
                await self.end(CLOSE_REVOKED, "agent_revoked", "This agent has been revoked or replaced.")
                return False
            plan = assignment.plan
            tag = etag(plan)
            self._held = plan
            await self._send(
                Welcome(
                    protocol=min(PROTOCOL, hello.protocol),
                    now=self._node.clock(),
                    generation=plan.generation,
                    etag=tag,
                    lease_s=settings.lease_s,
                    max_frame_bytes=settings.max_frame_bytes,
                    max_reports=settings.max_reports,
                )
            )
            if (hello.generation, hello.etag) != (plan.generation, tag):
                await self._send(as_full(plan, lease_s=settings.lease_s, newest=assignment.newest))
            await self._locate(assignment.locate_every_s)
        return True

    async def _locate(self, every_s: float) -> None:
        if every_s != self._locate_every_s:
            self._locate_every_s = every_s
            await self._send(Locate(every_s))

    async def _take(self, message: Report) -> None:
        taken = await self._node.run(take_reports, self.agent, message.reports)
        self._node.metrics.reported(taken.outcomes)
        if taken.seq:
            await self._send(Ack(taken.seq, taken.refused))
        if taken.gap:
            raise ReportGap(
                "A report skipped a number: the agent has lost reports.", hint="Say hello with generation 0."
            )

    async def _renew(self) -> None:
        if await self._node.run(renew, self.agent):
            await self._send(Lease(self._node.settings.lease_s))
        else:
            raise ProtocolViolation(
                "The lease has ended and the server has taken over.", hint="Connect again and say hello."
            )

    async def _pump_notifications(self, after: int) -> None:
        async with self._beside_run():
            async for page in follow_notifications(self._node, self.agent.owner_id, after):
                for portion in _portions(page):
                    await self._send(Notify(portion))

    @asynccontextmanager
    async def _beside_run(self) -> AsyncIterator[None]:
        """For what goes on beside `run`. A fault ends the session: an agent that reconnects misses nothing."""
        try:
            yield
        except WebSocketDisconnect:
            pass  # `run` hears of it too
        except FaultError as error:
            await self._give_up(error)

    async def _give_up(self, error: FaultError) -> None:
        """The error's own sentence may say where the store is; that is nothing for a device."""
        sentence, hint = "The server's store does not answer; nothing is lost.", "Connect again and send it again."
        await self.end(_CLOSE_TRY_AGAIN, error.code, sentence, hint)

    async def _receive(self) -> object:
        event = await self._socket.receive()
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", 1005))
        frame: str | bytes = event["bytes"] if event.get("text") is None else event["text"]
        return self.session.receive(frame, self._node.clock())

    async def _send(self, message: FromServer) -> None:
        """Raises `WebSocketDisconnect` if the connection has ended, at whichever end."""
        if self._closed and not isinstance(message, Bye):
            raise WebSocketDisconnect(1006)
        frame = self.session.send(message)
        try:
            if isinstance(frame, str):
                await self._socket.send_text(frame)
            else:
                await self._socket.send_bytes(frame)
        except WebSocketDisconnect:
            self._closed = True
            raise


def _portions(page: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], ...]]:
    """The page in parts of which each fits into a frame."""
    portion: list[dict[str, Any]] = []
    size = 0
    for notification in page:
        more = len(msgspec.json.encode(notification))
        if portion and size + more > _NOTIFY_BYTES:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(notification)
        size += more
    if portion:
        yield tuple(portion)
