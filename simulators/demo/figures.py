"""What the demo counts, and what the counts must agree with.

The witness looks at every position itself, with the same point-in-zone as device and server. It knows what there was
to be told before anybody told it, so an edge that was lost, doubled or made up on the way can't stay unseen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from agent_sdk.protocol.counts import Counts
from matcher.once import Mode
from zones.covers import prepare
from zones.shapes import Point, Shape
from zones.validation import check_shape

__all__ = ["Edge", "Figures", "Traffic", "Witness", "describe_savings", "disagreement"]


class Edge(msgspec.Struct, frozen=True):
    oid: str
    target: str
    mode: Mode


class Figures(msgspec.Struct, frozen=True):
    """The fields of `--json`, in this order."""

    seconds: float
    agents: int
    fixes: int
    enters: int
    leaves: int
    messages_sent: int
    messages_server_side: int
    savings: float


class Traffic(msgspec.Struct, frozen=True):
    """Frames between agents and server, by what they are for."""

    reports: int = 0
    plans: int = 0
    greetings: int = 0  # one hello and one welcome for each connection
    acks: int = 0
    leases: int = 0  # asked for and given

    @classmethod
    def of(cls, counts: Iterable[Counts]) -> "Traffic":
        """Added up from what each agent has counted."""
        total = Counts()
        for each in counts:
            total.include(each)

        def frames(kind: str) -> int:
            return sum(side[kind].messages for side in (total.sent, total.received) if kind in side)

        return cls(
            reports=frames("report"),
            plans=frames("plan"),
            greetings=frames("hello") + frames("welcome"),
            acks=frames("ack"),
            leases=frames("renew") + frames("lease"),
        )

    @property
    def messages_sent(self) -> int:
        """What matching on the device costs: the plans that go out and the reports that come back."""
        return self.reports + self.plans

    def savings(self, fixes: int) -> float:
        """The share of messages that need not be sent, compared with one for each fix."""
        return 1 - self.messages_sent / fixes if fixes else 0.0


class Witness:
    """Counts the edges that the positions of all objects give. Before its first fix an object is nowhere."""

    def __init__(self, zones: Mapping[str, Shape]) -> None:
        self.edges: Counter[Edge] = Counter()
        self._areas = {name: prepare(check_shape(shape)) for name, shape in zones.items()}
        self._inside: set[tuple[str, str]] = set()

    def see(self, oid: str, point: Point) -> None:
        for name, area in self._areas.items():
            place = (oid, name)
            holds = area.covers(point)
            if holds == (place in self._inside):
                continue
            if holds:
                self._inside.add(place)
            else:
                self._inside.remove(place)
            self.edges[Edge(oid, name, Mode.ENTER if holds else Mode.LEAVE)] += 1


def describe_savings(savings: float) -> str:
    """The share saved, in words: at first the plans alone can be more than the fixes there were."""
    return f"{savings:.1%} saved" if savings >= 0 else "nothing saved yet"


def disagreement(expected: Counter[Edge], received: Counter[Edge]) -> str | None:
    """What the subscriber has heard too little or too much of; None if it heard exactly what happened."""
    missing, surplus = expected - received, received - expected
    if not missing and not surplus:
        return None
    parts = [
        f"{counted.total()} {what}, the first {_shown(counted)}"
        for counted, what in ((missing, "missing"), (surplus, "too many"))
        if counted
    ]
    return f"The subscriber did not hear what happened: {'; '.join(parts)}."


def _shown(counted: Counter[Edge]) -> str:
    edge = next(iter(counted))
    return f"{edge.mode.value} of {edge.oid} at {edge.target}"
