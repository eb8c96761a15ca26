"""Messages and bytes by kind and direction, counted the same way at both ends.

Bytes are those of the frame's payload, before the WebSocket's own few bytes and TLS.
"""

from dataclasses import dataclass, field

__all__ = ["Counts", "Tally"]


@dataclass(slots=True)
class Tally:
    messages: int = 0
    bytes: int = 0

    def add(self, size: int, messages: int = 1) -> None:
        self.messages += messages
        self.bytes += size


@dataclass(slots=True)
class Counts:
    """By the message's `t`; `sent` and `received` are seen from the one who counts."""

    sent: dict[str, Tally] = field(default_factory=dict)
    received: dict[str, Tally] = field(default_factory=dict)

    def add_sent(self, kind: str, size: int) -> None:
        self.sent.setdefault(kind, Tally()).add(size)

    def add_received(self, kind: str, size: int) -> None:
        self.received.setdefault(kind, Tally()).add(size)

    def include(self, other: "Counts") -> None:
        """Add another's counts to these, for example those of a connection that has ended."""
        for mine, theirs in ((self.sent, other.sent), (self.received, other.received)):
            for kind, tally in theirs.items():
                mine.setdefault(kind, Tally()).add(tally.bytes, tally.messages)

    @property
    def messages_sent(self) -> int:
        return sum(tally.messages for tally in self.sent.values())

    @property
    def messages_received(self) -> int:
        return sum(tally.messages for tally in self.received.values())
