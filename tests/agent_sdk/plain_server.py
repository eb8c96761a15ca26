"""A server reduced to the rules an agent can see: generations, n = last + 1, cumulative acks, the lease.

Sans-I/O like the sessions, so that a test can lose any frame at any moment.
"""

from dataclasses import dataclass, field

from agent_sdk.errors import ProtocolViolation
from agent_sdk.protocol.messages import (
    PROTOCOL,
    Ack,
    Bye,
    Hello,
    Lease,
    Notify,
    Plan,
    PlanItem,
    PlanZone,
    Refusal,
    Renew,
    Report,
    Welcome,
)
from agent_sdk.protocol.plans import FullPlan, as_full, difference, etag
from agent_sdk.protocol.session import ServerSession
from matcher.once import OnceState, Service, follow
from matcher.selector.tree import InZones
from zones.shapes import Rectangle

# Zone "west" is lon 0..10, zone "east" is lon 5..15.
ZONES = {
    "west": PlanZone("west", Rectangle((0.0, -1.0, 10.0, 1.0))),
    "east": PlanZone("east", Rectangle((5.0, -1.0, 15.0, 1.0))),
}


def item(handle, zone="west", service=Service(), state=OnceState()):  # noqa: B008 - both are frozen
    return PlanItem(handle, InZones((zone,)), service, state)


@dataclass
class PlainServer:
    """What one object's server remembers, whatever happens to connections."""

    items: dict[str, PlanItem] = field(default_factory=dict)
    generation: int = 1
    states: dict[str, OnceState] = field(default_factory=dict)
    recorded: list[tuple] = field(default_factory=list)  # (handle, n, mode, ts, lon) in the order taken
    stale: int = 0
    repeated: int = 0
    refuse: dict[tuple[str, int], str] = field(default_factory=dict)  # (handle, n) that are refused for good
    notifications: list[dict] = field(default_factory=list)
    lease_s: float = 600.0
    max_reports: int = 3
    max_frame_bytes: int = 4096
    session: ServerSession | None = None
    sent: FullPlan | None = None
    close_code: int | None = None

    def plan(self):
        items = {
            key: PlanItem(key, i.condition, i.service, self.states.get(key, OnceState()), i.precision)
            for key, i in self.items.items()
        }
        used = {zone for i in items.values() for zone in i.condition.zones}
        return FullPlan(self.generation, items, {zone: ZONES[zone] for zone in sorted(used)})

    def connect(self, codec, now):
        self.session = ServerSession(codec, now=now, max_frame_bytes=self.max_frame_bytes, max_reports=self.max_reports)
        self.sent = self.close_code = None

    def receive(self, frame, now):
        """Frames to send back; afterwards `close_code` says whether the connection is to be closed."""
        try:
            message = self.session.receive(frame, now)
        except ProtocolViolation as violation:
            self.close_code = violation.close_code
            return [self.session.send(Bye(violation.code, violation.sentence, violation.hint))]
        return [self.session.send(answer) for answer in self.answers(message, now)]

    def answers(self, message, now):
        if isinstance(message, Hello):
            if message.generation == 0 or message.generation > self.generation:
                self.generation += 1
            plan = self.plan()
            yield Welcome(
                PROTOCOL, now, plan.generation, etag(plan), self.lease_s, self.max_frame_bytes, self.max_reports
            )
            if (message.generation, message.etag) != (plan.generation, etag(plan)):
                yield as_full(plan, lease_s=self.lease_s)
            self.sent = plan
            if message.after is not None and (new := [n for n in self.notifications if n["offset"] > message.after]):
                yield Notify(tuple(new))
        elif isinstance(message, Renew):
            yield Lease(self.lease_s)
        elif isinstance(message, Report):
            yield from self.take(message)

    def take(self, report):
        refused = []
        for entry in report.reports:
            state = self.states.get(entry.handle, OnceState())
            if entry.generation != self.generation:
                self.stale += 1
            elif entry.n <= state.n:
                self.repeated += 1
            elif entry.n > state.n + 1:
                self.close_code = 4400
                yield Bye("report_gap", f"Edge {entry.n} came after {state.n}.")
                return
            else:
                service = self.items[entry.handle].service if entry.handle in self.items else Service()
                self.states[entry.handle], _ = follow(service, state, entry.mode, entry.ts)
                if (code := self.refuse.get((entry.handle, entry.n))) is not None:
                    refused.append(Refusal(entry.seq, code, "No."))
                else:
                    lon = None if entry.loc is None else entry.loc[0]
                    self.recorded.append((entry.handle, entry.n, entry.mode.value, entry.ts, lon))
        yield Ack(report.reports[-1].seq, tuple(refused))

    def change(self):
        """Tell a connected agent what has changed since it was last told."""
        if self.sent is None:
            return []
        plan = self.plan()
        message = difference(self.sent, plan, lease_s=self.lease_s)
        self.sent = plan
        return [] if message is None else [self.session.send(message)]


def full(server, **changes):
    """The server's plan as the message a hello is answered with."""
    message = as_full(server.plan(), lease_s=server.lease_s)
    return Plan(**{name: getattr(message, name) for name in message.__struct_fields__} | changes)
