"""The messages between agent and server. docs/protocol.md describes every field; a test keeps the two together.

Field names are the same in JSON and MessagePack. Unknown fields are ignored, so that a newer peer can add some;
unknown message types end the session.
"""

import msgspec

from matcher.events import Value
from matcher.once import Instant, Mode, OnceState, Service
from matcher.selector.tree import DeviceCondition
from zones.shapes import Point, Shape

__all__ = [
    "PROTOCOL", "Ack", "Bye", "FromAgent", "FromServer", "Hello", "Lease", "Locate", "Notify", "Plan", "PlanAnchor",
    "PlanItem", "PlanZone", "Position", "Refusal", "Renew", "Report", "ReportItem", "Welcome",
]  # fmt: skip

PROTOCOL = 1


class _Message(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    pass


# --- agent to server -------------------------------------------------------------------------------


class Hello(_Message, frozen=True, tag="hello"):
    """The agent's first message: what it can do and what it still has.

    `generation` 0 says "I have nothing (any more)": the server starts a new generation. `etag` names the plan
    the agent holds, so that an unchanged one is not sent again. `after` asks for the owner's notifications
    behind that offset; without it none are pushed.
    """

    protocol: int
    now: Instant
    generation: int = 0
    etag: str = ""
    capabilities: tuple[str, ...] = ()
    after: int | None = None


class ReportItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One edge. `seq` numbers the agent's outbox; (generation, handle, n) names the edge for good.

    An edge the subscriber did not ask for (`modes`) travels without event: the server only needs the state.
    """

    seq: int
    generation: int
    handle: str
    n: int
    mode: Mode
    ts: Instant
    loc: Point | None = None
    unc: float | None = None
    pairs: dict[str, Value] = {}


class Report(_Message, frozen=True, tag="report"):
    reports: tuple[ReportItem, ...]


class Renew(_Message, frozen=True, tag="renew"):
    """Asks for a longer lease."""


class Position(_Message, frozen=True, tag="position"):
    """The newest fix, as locate asks for it. It is not acknowledged: one that is lost is followed by another."""

    ts: Instant
    loc: Point
    unc: float | None = None
    pairs: dict[str, Value] = {}


FromAgent = Hello | Report | Renew | Position


# --- server to agent -------------------------------------------------------------------------------


class Welcome(_Message, frozen=True, tag="welcome"):
    """Answers hello. If generation and etag are those of the hello, the agent's plan is still right."""

    protocol: int
    now: Instant
    generation: int
    etag: str
    lease_s: float
    max_frame_bytes: int
    max_reports: int


class PlanZone(msgspec.Struct, frozen=True, omit_defaults=True):
    """Geometry under an opaque id; a changed zone has a new id."""

    zone: str
    shape: Shape


class PlanAnchor(msgspec.Struct, frozen=True, omit_defaults=True):
    """The zone at whose boundary the options `hysteresis_m`, `unc_factor` and `crossing` look.

    The dead band is never wider than `widest_m`. No way is looked at that began at or before `since`.
    """

    zone: str
    widest_m: float
    since: Instant


class PlanItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One binding to evaluate. `state` counts where the agent has none, a lower n, or the same n but another holds."""

    handle: str
    condition: DeviceCondition
    service: Service = Service()
    state: OnceState = OnceState()
    precision: str = "exact"
    anchor: PlanAnchor | None = None


class Plan(_Message, frozen=True, tag="plan"):
    """What to evaluate. A `full` plan replaces the whole; otherwise items and zones are added or replaced by key
    and those in `drop` and `drop_zones` go. What goes loses its condition and geometry; its state is kept until
    the generation ends. A new generation forgets every earlier state. `newest` is the newest event the server
    knows of the object: fixes that are not newer are late.
    """

    generation: int
    etag: str
    full: bool
    lease_s: float
    items: tuple[PlanItem, ...] = ()
    zones: tuple[PlanZone, ...] = ()
    drop: tuple[str, ...] = ()
    drop_zones: tuple[str, ...] = ()
    newest: Instant | None = None


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    seq: int
    code: str
    sentence: str = ""


class Ack(_Message, frozen=True, tag="ack"):
    """Everything up to `seq` is recorded (or refused for good): the agent deletes it from its outbox."""

    seq: int
    refused: tuple[Refusal, ...] = ()


class Lease(_Message, frozen=True, tag="lease"):
    """Answers renew: the plan may be evaluated for this long from now."""

    lease_s: float


class Locate(_Message, frozen=True, tag="locate"):
    """Asks an agent that can (`positions`) for its newest fix: at once, and then every so many seconds; 0 is no more.

    It holds until the next one or until the connection ends, and says nothing about who wants to know.
    """

    every_s: float


class Notify(_Message, frozen=True, tag="notify"):
    """Notifications addressed to the device's own user, in the format of GET /v1/notifications."""

    notifications: tuple[dict[str, object], ...]


class Bye(_Message, frozen=True, tag="bye"):
    """Why the server is about to close the connection."""

    code: str
    sentence: str
    hint: str = ""


FromServer = Welcome | Plan | Ack | Lease | Locate | Notify | Bye
