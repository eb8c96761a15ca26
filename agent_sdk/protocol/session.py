"""The rules of a connection, for both ends: frames and time go in, frames and a deadline come out.

A session lives as long as its connection. What must outlive it is behind `Memory` on the device and in the store
on the server; each frame a device receives is one transaction there, so being killed between two frames loses
nothing. Neither end trusts the other to be right, only to be the one that showed the credential.
"""

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Protocol

import msgspec

from agent_sdk.errors import (
    AnswerTimeout,
    FrameTooBig,
    HelloExpected,
    HelloRepeated,
    HelloTimeout,
    PlanUnusable,
    ProtocolUnsupported,
    ProtocolViolation,
    TooManyReports,
)
from agent_sdk.protocol.capabilities import CAPABILITIES
from agent_sdk.protocol.codec import Codec, Frame, kind_of
from agent_sdk.protocol.counts import Counts
from agent_sdk.protocol.messages import (
    PROTOCOL,
    Ack,
    Bye,
    FromAgent,
    FromServer,
    Hello,
    Lease,
    Locate,
    Notify,
    Plan,
    Position,
    Renew,
    Report,
    ReportItem,
    Welcome,
)
from matcher.events import Event
from matcher.once import Instant

__all__ = [
    "ANSWER_TIMEOUT_S", "CLOSE_REPLACED", "CLOSE_REVOKED", "OLDEST_PROTOCOL", "AgentSession",
    "Memory", "Next", "ServerSession", "after_close",
]  # fmt: skip

OLDEST_PROTOCOL = max(1, PROTOCOL - 1)  # the one before the newest is still spoken
CLOSE_REVOKED = 4401
CLOSE_REPLACED = 4409
ANSWER_TIMEOUT_S = 10.0


# --- the server's end ------------------------------------------------------------------------------


class ServerSession:
    """What the server holds an agent to. `receive` gives the message or raises why the connection must end."""

    def __init__(
        self,
        codec: Codec,
        *,
        now: Instant,
        max_frame_bytes: int = 262_144,
        max_reports: int = 500,
        hello_timeout_s: float = 10.0,
    ) -> None:
        self.codec = codec
        self.max_frame_bytes = max_frame_bytes
        self.max_reports = max_reports
        self.hello_deadline: Instant = now + round(hello_timeout_s * 1000)
        self.hello: Hello | None = None
        self.counts = Counts()
        self._seq = 0

    @property
    def protocol(self) -> int:
        """The version both ends speak; the newest one before the hello."""
        return min(PROTOCOL, self.hello.protocol) if self.hello else PROTOCOL

    def receive(self, frame: Frame, now: Instant) -> FromAgent:
        """Decode one frame and check that it is allowed here and now."""
        size = self.codec.size(frame)
        if size > self.max_frame_bytes:
            raise FrameTooBig(
                f"A frame of {size} bytes came; at most {self.max_frame_bytes} are taken.",
                hint="Send fewer reports in one frame; welcome says how many bytes and reports fit.",
            )
        message = self.codec.decode_from_agent(frame)
        self.counts.add_received(kind_of(message), size)
        if isinstance(message, Hello):
            self._greet(message, now)
        elif self.hello is None:
            raise HelloExpected(
                f"The first frame is {kind_of(message)}, not hello.", hint="Say hello before anything else."
            )
        elif isinstance(message, Report):
            self._check(message)
        return message

    def send(self, message: FromServer) -> Frame:
        """Encode and count."""
        frame = self.codec.encode(message)
        self.counts.add_sent(kind_of(message), self.codec.size(frame))
        return frame

    def check_hello(self, now: Instant) -> None:
        """Raise if the hello is overdue."""
        if self.hello is None and now > self.hello_deadline:
            raise HelloTimeout(
                "No hello came in time.", hint="Send hello as the first frame, within 10 s after connecting."
            )

    def _greet(self, hello: Hello, now: Instant) -> None:
        if self.hello is not None:
            raise HelloRepeated("A second hello came.", hint="Say hello once; reconnect to begin again.")
        self.check_hello(now)
        if hello.protocol < OLDEST_PROTOCOL:
            raise ProtocolUnsupported(
                f"The agent speaks version {hello.protocol}; the oldest one spoken here is {OLDEST_PROTOCOL}.",
                hint="Update the agent.",
            )
        if hello.generation < 0 or (hello.after is not None and hello.after < 0):
            raise ProtocolViolation("The hello has a negative number.", hint="generation and after are 0 or more.")
        self.hello = hello

    def _check(self, report: Report) -> None:
        if len(report.reports) > self.max_reports:
            raise TooManyReports(
                f"A frame with {len(report.reports)} reports came; at most {self.max_reports} are taken.",
                hint="Send fewer reports in one frame; welcome says how many fit.",
            )
        if not report.reports:
            raise ProtocolViolation("An empty report came.", hint="Send a report only when there is an edge.")
        for item in report.reports:
            if item.seq <= self._seq:
                raise ProtocolViolation(
                    f"The report with seq {item.seq} came after {self._seq}.",
                    hint="Within a connection seq rises; what is sent again is sent again in order.",
                )
            if item.n < 1 or item.generation < 1:
                raise ProtocolViolation(
                    f"The report with seq {item.seq} has n {item.n} and generation {item.generation}.",
                    hint="Both count from 1.",
                )
            self._seq = item.seq


# --- the agent's end -------------------------------------------------------------------------------


class Memory(Protocol):
    """What a device remembers beyond a connection. Each call that changes something is one transaction."""

    @property
    def generation(self) -> int: ...

    @property
    def etag(self) -> str: ...

    @property
    def cursor(self) -> int: ...

    @property
    def last(self) -> Event | None:
        """The newest fix, if it is known."""

    def install(self, plan: Plan, lease_until: Instant) -> None:
        """Take over a plan; raises `PlanUnusable` and changes nothing if it can't be evaluated."""

    def extend(self, lease_until: Instant) -> None: ...

    def acknowledge(self, ack: Ack) -> None:
        """Delete what is recorded, move what was refused to the dead list."""

    def forget(self) -> None:
        """Back to generation 0: no plan, no states, no outbox."""

    def outgoing(self, after: int, limit: int) -> Sequence[ReportItem]:
        """Reports behind this seq, in order."""


class AgentSession:
    """One connection of an agent. `window` bounds the reports that are under way unacknowledged."""

    def __init__(
        self,
        codec: Codec,
        memory: Memory,
        *,
        notifications: bool = False,
        capabilities: tuple[str, ...] = CAPABILITIES,
        window: int = 1000,
    ) -> None:
        self.codec = codec
        self.counts = Counts()
        self.welcome: Welcome | None = None
        self.bye: Bye | None = None
        self.skew_ms: int | None = None  # the server's clock minus ours, as good as the hello's round trip
        self.notifications: deque[dict[str, object]] = deque()  # taken by the shell
        self._memory = memory
        self._wants_notifications = notifications
        self._capabilities = capabilities
        self._window = window
        self._under_way: deque[int] = deque()
        self._sent = 0
        self._asked: Instant | None = None  # when a question went out that must be answered
        self._awaits_plan = False  # the hello's answer is a plan that has not come yet
        self._renew_at: Instant | None = None
        self._lease_until: Instant = 0
        self._locate_ms = 0  # how often the server wants the newest fix, while it does
        self._locate_at: Instant | None = None
        self._located: Instant | None = None  # the fix it has

    @property
    def closed(self) -> bool:
        """Nothing more is said on this connection."""
        return self.bye is not None

    @property
    def is_planned(self) -> bool:
        """What the device holds is what the server wanted evaluated when it said welcome, or newer."""
        return self.welcome is not None and not self._awaits_plan

    def frames_to_send(self, now: Instant) -> list[Frame]:
        """Everything that should go out now; raises `AnswerTimeout` when the server has gone silent."""
        if self.closed:
            return []
        if self._asked is not None and now > self._asked + ANSWER_TIMEOUT_S * 1000:
            raise AnswerTimeout("The server did not answer in time.", hint="Connect again.")
        if self._asked is None and self.welcome is None:
            self._asked = now
            return [self._encode(self._hello(now))]
        if self.welcome is None:
            return []
        frames = self._reports(self.welcome)
        fix = self._fix_to_send()
        if fix is not None and self.is_locating(now):
            frames.append(self._position(fix, self.welcome.max_frame_bytes))
            self._located, self._locate_at = fix.ts, now + self._locate_ms
        if self._renew_at is not None and now >= self._renew_at:
            self._renew_at = None
            self._asked = now
            frames.append(self._encode(Renew()))
        return frames

    def seconds_until_due(self, now: Instant) -> float | None:
        """How long `frames_to_send` can wait if nothing else happens; None for ever."""
        dues = []
        if self._asked is not None:
            dues.append(self._asked + round(ANSWER_TIMEOUT_S * 1000) + 1)
        elif self.welcome is None:
            dues.append(now)
        if self._renew_at is not None:
            dues.append(self._renew_at)
        if self._locate_at is not None and self._fix_to_send() is not None:
            dues.append(self._locate_at)
        return max(0, min(dues) - now) / 1000 if dues else None

    def is_locating(self, now: Instant) -> bool:
        """Whether the server waits for the next fix."""
        return self._locate_at is not None and now >= self._locate_at

    def receive(self, frame: Frame, now: Instant) -> None:
        """Handle one frame of the server's."""
        message = self.codec.decode_from_server(frame)
        self.counts.add_received(kind_of(message), self.codec.size(frame))
        if isinstance(message, Bye):
            self.bye = message
            if message.code == "report_gap":
                self._memory.forget()
        elif isinstance(message, Welcome):
            self._welcomed(message, now)
        elif self.welcome is None:
            raise ProtocolViolation(f"The server's first frame is {kind_of(message)}, not welcome.")
        elif isinstance(message, Plan):
            self._planned(message, now)
        elif isinstance(message, Ack):
            self._acknowledged(message)
        elif isinstance(message, Lease):
            self._leased(message.lease_s, self._answered(now))
        elif isinstance(message, Locate):
            self._locate(message, now)
        elif isinstance(message, Notify):
            self.notifications.extend(message.notifications)

    def _hello(self, now: Instant) -> Hello:
        return Hello(
            protocol=PROTOCOL,
            now=now,
            generation=self._memory.generation,
            etag=self._memory.etag,
            capabilities=self._capabilities,
            after=self._memory.cursor if self._wants_notifications else None,
        )

    def _welcomed(self, welcome: Welcome, now: Instant) -> None:
        if self.welcome is not None:
            raise ProtocolViolation("A second welcome came.")
        if not OLDEST_PROTOCOL <= welcome.protocol <= PROTOCOL:
            raise ProtocolUnsupported(
                f"The server speaks version {welcome.protocol} of the protocol.", hint="Update the agent."
            )
        if welcome.lease_s <= 0 or welcome.max_frame_bytes < 1024 or welcome.max_reports < 1:
            raise ProtocolViolation("The welcome leaves no room to report anything.")
        asked = self._answered(now)
        self.welcome = welcome
        self.skew_ms = welcome.now - (asked + now) // 2
        if (welcome.generation, welcome.etag) == (self._memory.generation, self._memory.etag):
            self._leased(welcome.lease_s, asked)
        else:
            self._asked, self._awaits_plan = asked, True

    def _planned(self, plan: Plan, now: Instant) -> None:
        if not plan.full and plan.generation != self._memory.generation:
            raise PlanUnusable(
                f"A change of generation {plan.generation} came; generation {self._memory.generation} is here.",
                hint="Say a new generation in full.",
            )
        if plan.lease_s <= 0:
            raise PlanUnusable("The plan's lease is over before it begins.", hint="lease_s is more than 0.")
        if not self._awaits_plan:
            # Nobody asked, so nobody knows how long it was under way: it may end the lease sooner, never later.
            self._lease_until = min(self._lease_until, now + round(plan.lease_s * 1000))
            self._memory.install(plan, self._lease_until)
            return
        granted = self._answered(now)
        self._awaits_plan = False
        self._lease_until = granted + round(plan.lease_s * 1000)
        self._memory.install(plan, self._lease_until)
        self._renew_at = granted + round(plan.lease_s * 500)

    def _leased(self, lease_s: float, granted: Instant) -> None:
        self._lease_until = granted + round(lease_s * 1000)
        self._memory.extend(self._lease_until)
        self._renew_at = granted + round(lease_s * 500)

    def _locate(self, locate: Locate, now: Instant) -> None:
        if locate.every_s < 0:
            raise ProtocolViolation("A position every negative number of seconds was asked for.")
        self._locate_ms = round(locate.every_s * 1000)
        self._locate_at = now if locate.every_s else None

    def _fix_to_send(self) -> Event | None:
        fix = self._memory.last if self._locate_at is not None else None
        if fix is None or fix.loc is None:
            return None
        return fix if self._located is None or fix.ts > self._located else None

    def _position(self, fix: Event, max_bytes: int) -> Frame:
        assert fix.loc is not None
        frame = self.codec.encode(Position(fix.ts, fix.loc, fix.unc, fix.pairs))
        if self.codec.size(frame) > max_bytes:
            frame = self.codec.encode(Position(fix.ts, fix.loc, fix.unc))
        self.counts.add_sent("position", self.codec.size(frame))
        return frame

    def _answered(self, now: Instant) -> Instant:
        """When the lease that just came began: not later than the question for it went out."""
        asked, self._asked = self._asked, None
        return now if asked is None else min(asked, now)

    def _acknowledged(self, ack: Ack) -> None:
        if ack.seq > self._sent:
            raise ProtocolViolation(f"An ack for {ack.seq} came; the last report sent is {self._sent}.")
        self._memory.acknowledge(ack)
        while self._under_way and self._under_way[0] <= ack.seq:
            self._under_way.popleft()

    def _reports(self, welcome: Welcome) -> list[Frame]:
        frames: list[Frame] = []
        while (room := self._window - len(self._under_way)) > 0:
            items = tuple(self._memory.outgoing(self._sent, min(room, welcome.max_reports)))
            if not items:
                break
            message, frame = self._fitting(items, welcome.max_frame_bytes)
            self.counts.add_sent(kind_of(message), self.codec.size(frame))
            frames.append(frame)
            self._under_way.extend(item.seq for item in message.reports)
            self._sent = message.reports[-1].seq
        return frames

    def _fitting(self, items: tuple[ReportItem, ...], max_bytes: int) -> tuple[Report, Frame]:
        """As many of these as fit. One that is too big alone goes without its pairs: its n must not be missing."""
        while True:
            message = Report(items)
            frame = self.codec.encode(message)
            if self.codec.size(frame) <= max_bytes:
                return message, frame
            if len(items) > 1:
                items = items[: len(items) // 2]
            elif items[0].pairs:
                items = (msgspec.structs.replace(items[0], pairs={}),)
            else:
                return message, frame

    def _encode(self, message: FromAgent) -> Frame:
        frame = self.codec.encode(message)
        self.counts.add_sent(kind_of(message), self.codec.size(frame))
        return frame


class Next(Enum):
    """What an agent does after a connection has ended."""

    RECONNECT = "reconnect"
    RECONNECT_LATER = "reconnect_later"
    STOP = "stop"


def after_close(close_code: int | None) -> Next:
    """Read a close code; None is a connection that broke without one."""
    if close_code == CLOSE_REVOKED:
        return Next.STOP
    if close_code == CLOSE_REPLACED:
        return Next.RECONNECT_LATER
    return Next.RECONNECT
