"""The agent as people use it: a source of fixes, a device that evaluates them, and a connection that comes and goes.

    async with Agent(url, credential, source) as agent:
        await agent.run()

Nothing in here knows a rule of the protocol or of edges: frames and time are carried between the socket and the
session, fixes and time between the source and the device. The device does not wait for the connection: it
evaluates while its lease lasts, and what it finds waits in its outbox.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.http11 import Response
from websockets.typing import Subprotocol

from agent_sdk.backoff import Backoff
from agent_sdk.device import Device
from agent_sdk.enrolment import agent_url, check_credential
from agent_sdk.errors import AgentError, AgentReplaced, AgentRevoked, ProtocolViolation
from agent_sdk.outbox import DeadReport, DeviceStore
from agent_sdk.protocol.codec import MSGPACK, by_subprotocol
from agent_sdk.protocol.counts import Counts
from agent_sdk.protocol.session import AgentSession, Next, after_close
from agent_sdk.sources.base import Source
from matcher.event_format import check_event
from matcher.events import Event
from matcher.once import Instant
from zones.errors import CallerError

__all__ = ["Agent", "AgentCounts"]

_log = logging.getLogger("fencepost.agent")
_socket_log = logging.getLogger("fencepost.agent.websocket")
_socket_log.setLevel(logging.INFO)  # at DEBUG websockets writes down headers and frames: credential and positions

_MAX_FRAME = 16 * 1024 * 1024  # of the server's: a full plan comes in one frame
_NOTIFICATIONS_MAX = 1000  # that wait for the application; the rest stays on the server
_TIMES_REPLACED = 3  # in a row, before we believe that somebody else has our credential
_CLOSE_TIMEOUT_S = 5
_FIXES_AT_ONCE = 64  # between two looks at the socket


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """What the agent has done since it was started."""

    fixes: int = 0
    invalid: int = 0
    late: int = 0
    suspended: int = 0
    edges: int = 0
    waiting: int = 0  # in the outbox
    connections: int = 0
    traffic: Counts = field(default_factory=Counts)


class Agent:
    """One device. Enter it to start it; it works in the background until it is left.

    `state` is the file that survives a restart (None: memory only). With `notifications` the server pushes what is
    addressed to the device's own user, see `notifications()`. `clock` gives epoch milliseconds, `rng` numbers in
    [0, 1), `proxy` is handed to websockets (None: connect directly).
    """

    def __init__(
        self,
        url: str,
        credential: str,
        source: Source | None = None,
        *,
        state: str | os.PathLike[str] | None = "fencepost-agent.db",
        subprotocol: str = MSGPACK.subprotocol,
        notifications: bool = False,
        outbox_limit: int = 100_000,
        backoff_base_s: float = 0.5,
        backoff_cap_s: float = 60.0,
        clock: Callable[[], Instant] | None = None,
        rng: Callable[[], float] = random.random,
        proxy: str | bool | None = None,
    ) -> None:
        codec = by_subprotocol(subprotocol)
        if codec is None:
            raise AgentError(
                f"There is no subprotocol '{subprotocol}'.", hint="Use fencepost.v1.json or fencepost.v1.msgpack."
            )
        self._url = agent_url(url)
        self._credential = check_credential(credential)
        self._source = source
        self._state = state
        self._codec = codec
        self._wants_notifications = notifications
        self._outbox_limit = outbox_limit
        self._backoff = Backoff(rng, base_s=backoff_base_s, cap_s=backoff_cap_s)
        self._now = clock or _wall_clock
        self._proxy = proxy
        self._device: Device | None = None
        self._main: asyncio.Task[None] | None = None
        self._progress = _Signal()
        self._wake = asyncio.Event()  # the connection's writer has something to do
        self._traffic = Counts()
        self._session: AgentSession | None = None
        self._socket: ClientConnection | None = None
        self._connections = 0
        self._tried = False  # the server has said what to evaluate, or the first try to hear it has failed
        self._feeding = source is not None
        self._busy = False
        self._raised = False
        self._inbox: deque[dict[str, Any]] = deque()
        self._last_offset = 0
        self._is_behind = False

    # --- life ----------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Agent":
        identity = hashlib.sha256(self._credential.encode()).hexdigest()
        store = DeviceStore(self._state, identity=identity, limit=self._outbox_limit)
        self._device = Device(store)
        self._last_offset = self._device.cursor
        self._main = asyncio.create_task(self._work(), name="fencepost-agent")
        self._main.add_done_callback(lambda _: self._progress.set())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if error is None and not self._raised:
            self._raise_if_failed()

    async def stop(self) -> None:
        """End the work and close connection and file. The outbox is kept."""
        if self._main is not None and not self._main.done():
            self._main.cancel()
            await asyncio.wait([self._main])
        if self._device is not None:
            self._device.close()

    async def run(self) -> None:
        """Wait until the source has ended and everything it gave is acknowledged; raises what ends an agent for good.

        With a source that never ends this runs until it is cancelled.
        """
        await self._until(lambda: not self._feeding and self._outbox_is_empty())

    async def drained(self) -> None:
        """Wait until every fix that was there has been evaluated and every report is acknowledged."""
        await self._until(self._is_drained)

    async def until_planned(self) -> None:
        """Wait until there is a plan to evaluate."""
        await self._until(lambda: self._running.may_evaluate(self._now()))

    # --- looking in ----------------------------------------------------------------------------------

    @property
    def counts(self) -> AgentCounts:
        traffic = Counts()
        traffic.include(self._traffic)
        if self._session is not None:
            traffic.include(self._session.counts)
        device = self._running
        return AgentCounts(
            fixes=device.counts.fixes,
            invalid=device.counts.invalid,
            late=device.counts.late,
            suspended=device.counts.suspended,
            edges=device.counts.edges,
            waiting=device.waiting,
            connections=self._connections,
            traffic=traffic,
        )

    def dead(self) -> tuple[DeadReport, ...]:
        """Reports the server refused for good, oldest first."""
        return self._running.dead()

    async def notifications(self) -> AsyncIterator[dict[str, Any]]:
        """What is addressed to the device's own user, each at least once, in order.

        One counts as handled when the next one is asked for; that is remembered in the state file.
        """
        if not self._wants_notifications:
            raise AgentError(
                "This agent did not ask for notifications.", hint="Make it with Agent(..., notifications=True)."
            )
        while True:
            await self._until(lambda: bool(self._inbox) or self._is_behind)
            if not self._inbox:
                self._is_behind = False
                self._last_offset = self._running.cursor
                if self._socket is not None:
                    await self._socket.close()  # a new hello asks for the rest
                continue
            notification = self._inbox.popleft()
            yield notification
            self._running.read_up_to(notification["offset"])

    # --- the work ------------------------------------------------------------------------------------

    @property
    def _running(self) -> Device:
        if self._device is None:
            raise AgentError("The agent has not been started.", hint="Use it as: async with Agent(...) as agent.")
        return self._device

    async def _work(self) -> None:
        jobs: list[Coroutine[Any, Any, None]] = [self._link()]
        if self._source is not None:
            jobs += [self._feed(self._source), self._let_time_pass(self._source)]
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            # The first failure ends the agent; a source that has merely ended does not.
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                if not task.cancelling():  # gather has cancelled it: again would interrupt its hanging up
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _feed(self, source: Source) -> None:
        """Carry fixes from the source to the device."""
        device = self._running
        taken = 0
        while source.is_patient and not self._tried:
            await self._progress.wait()  # what can wait is evaluated by the newest plan that can be had
        async for event in source:
            self._busy = True
            if not source.is_checked and not _is_valid(event):
                device.refuse()
                self._busy = False
                continue
            while not device.may_evaluate(self._now()) and (source.is_patient or device.generation == 0):
                await self._progress.wait()
            now = self._now()
            if device.fix(event, now) or (self._session is not None and self._session.is_locating(now)):
                self._wake.set()
            self._busy = False
            taken += 1
            if taken % _FIXES_AT_ONCE == 0 or source.waiting == 0:
                self._progress.set()
                await asyncio.sleep(0)
        self._feeding = False
        self._progress.set()

    async def _let_time_pass(self, source: Source) -> None:
        """Let dwells end when no fix comes."""
        device = self._running
        while True:
            due, now = device.next_deadline(), self._now()
            wait_s = None if due is None else source.seconds_until_seen(due, now)
            if due is not None and wait_s == 0 and device.advance(due, now):
                self._wake.set()
                self._progress.set()
                continue
            await _wait(self._progress.wait(), None if wait_s == 0 else wait_s)

    async def _link(self) -> None:
        """Keep a connection, for ever: raises only what ends an agent for good."""
        replaced = 0
        while True:
            close_code = await self._connection()
            then = after_close(close_code)
            if then is Next.STOP:
                raise _revoked()
            replaced = replaced + 1 if then is Next.RECONNECT_LATER else 0
            if replaced >= _TIMES_REPLACED:
                raise AgentReplaced(
                    "Another session keeps replacing this one.",
                    hint="Two devices must not share a credential: enrol one of them anew.",
                )
            self._tried = True
            self._progress.set()
            delay_s = self._backoff.longest_s() if replaced else self._backoff.next_s()
            _log.info("agent_disconnected: close_code=%s retry_s=%.1f", close_code, delay_s)
            await asyncio.sleep(delay_s)

    async def _connection(self) -> int | None:
        """One connection from beginning to end; gives its close code."""
        session = AgentSession(self._codec, self._running, notifications=self._wants_notifications)
        try:
            socket = await connect(
                self._url,
                subprotocols=[Subprotocol(self._codec.subprotocol)],
                additional_headers={"Authorization": f"Bearer {self._credential}"},
                compression=None,
                max_size=_MAX_FRAME,
                proxy=self._proxy,  # type: ignore[arg-type]  # bool is True only, which is what it takes
                open_timeout=10,
                close_timeout=_CLOSE_TIMEOUT_S,
                logger=_socket_log,
            )
        except InvalidStatus as error:
            if _is_refusal(error.response):
                raise _revoked() from None
            _log.info("agent_not_connected: status=%s", error.response.status_code)
            return None
        except (OSError, TimeoutError, WebSocketException) as error:
            _log.info("agent_not_connected: error=%s", type(error).__name__)
            return None
        self._connections += 1
        self._session, self._socket = session, socket
        try:
            return await self._converse(socket, session)
        finally:
            self._session = self._socket = None
            self._traffic.include(session.counts)
            self._progress.set()

    async def _converse(self, socket: ClientConnection, session: AgentSession) -> int | None:
        """Carry frames and time between the socket and the session."""

        async def read() -> None:
            with contextlib.suppress(ConnectionClosed):
                async for frame in socket:
                    session.receive(frame, self._now())
                    self._received(session)

        async def write() -> None:
            while not session.closed:
                self._wake.clear()
                for frame in session.frames_to_send(self._now()):
                    with contextlib.suppress(ConnectionClosed):  # the reader sees it too, behind the last frames
                        await socket.send(frame)
                await _wait(self._wake.wait(), session.seconds_until_due(self._now()))

        reader, writer = tasks = [asyncio.create_task(read()), asyncio.create_task(write())]
        broken = False
        try:
            if socket.subprotocol != self._codec.subprotocol:
                raise ProtocolViolation("The server did not take the subprotocol.")
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if writer in done:
                writer.result()
                await asyncio.wait([reader], timeout=_CLOSE_TIMEOUT_S)  # it said goodbye: let it hang up
            if reader.done():
                reader.result()
        except ProtocolViolation as violation:
            broken = True
            _log.error("protocol_violation: code=%s", violation.code)
            await socket.close(violation.close_code, violation.code)
        finally:
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
                await socket.close()
            finally:
                socket.transport.abort()  # if even that was cancelled; a closed one does not mind
        if session.bye is not None:
            _log.info("server_said_bye: code=%s", session.bye.code)
        if session.welcome is not None and not broken and socket.close_code != ProtocolViolation.close_code:
            self._backoff.reset()
        return socket.close_code

    def _received(self, session: AgentSession) -> None:
        """After each frame: an answer may be waiting, a plan, or something for the application."""
        self._tried = self._tried or session.is_planned
        if session.skew_ms is not None:
            self._running.skew_ms = session.skew_ms
        while session.notifications:
            self._keep(session.notifications.popleft())
        self._wake.set()
        self._progress.set()

    def _keep(self, notification: dict[str, Any]) -> None:
        offset = notification.get("offset")
        if not isinstance(offset, int) or offset <= self._last_offset or self._is_behind:
            return
        if len(self._inbox) >= _NOTIFICATIONS_MAX:
            self._is_behind = True
            return
        self._last_offset = offset
        if not notification.get("withdrawn"):
            self._inbox.append(notification)

    # --- waiting -------------------------------------------------------------------------------------

    async def _until(self, holds: Callable[[], bool]) -> None:
        while True:
            self._raise_if_failed()
            if holds():
                return
            if self._main is None or self._main.done():
                raise AgentError("The agent has been stopped.", hint="Wait for it inside the async with block.")
            await self._progress.wait()

    def _outbox_is_empty(self) -> bool:
        return self._running.waiting == 0

    def _is_drained(self) -> bool:
        source_is_idle = self._source is None or not self._feeding or self._source.waiting == 0
        return source_is_idle and not self._busy and self._outbox_is_empty()

    def _raise_if_failed(self) -> None:
        """To everybody who waits: two may, and both want to know why it has ended."""
        if self._main is None or not self._main.done() or self._main.cancelled():
            return
        error = self._main.exception()
        if error is not None:
            self._raised = True
            raise error


class _Signal:
    """Wakes everybody who waits, each time it is set."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        await self._event.wait()


async def _wait(something: Coroutine[Any, Any, object], timeout_s: float | None) -> None:
    """Wait for it, or for so long. `asyncio.wait_for` of Python 3.11 can swallow a cancellation here."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await something


def _revoked() -> AgentRevoked:
    return AgentRevoked(
        "The server no longer accepts this agent's credential.", hint="Enrol the device again with a new token."
    )


def _is_refusal(response: Response) -> bool:
    """Whether a 401 is Fencepost's own: a proxy on the way must not end an agent for good."""
    if response.status_code != 401:
        return False
    try:
        return "code" in json.loads(response.body or b"")
    except (ValueError, TypeError):
        return False


def _is_valid(event: Event) -> bool:
    try:
        check_event(event)
    except (CallerError, TypeError, ValueError, OverflowError) as error:
        _log.warning("fix_invalid: code=%s", getattr(error, "code", type(error).__name__))
        return False
    return True


def _wall_clock() -> Instant:
    return time.time_ns() // 1_000_000
