"""Everything is counted: messages and bytes of agents by kind, reports by outcome, events, notifications.

Names and labels say nothing about users, objects or places.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from agent_sdk.protocol.counts import Counts, Tally

__all__ = ["Metrics"]


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        kinds = ["direction", "kind"]
        self._messages = Counter(
            "fencepost_agent_messages", "Messages to and from agents, by kind.", kinds, registry=self.registry
        )
        self._bytes = Counter(
            "fencepost_agent_bytes", "Bytes of messages to and from agents, by kind.", kinds, registry=self.registry
        )
        self._reports = Counter(
            "fencepost_reports", "Reports of agents, by what became of them.", ["outcome"], registry=self.registry
        )
        self._events = Counter(
            "fencepost_events", "Events published, by what became of them.", ["outcome"], registry=self.registry
        )
        self._notifications = Counter(
            "fencepost_notifications_recorded", "Notifications recorded.", registry=self.registry
        )
        self._delivered = Counter(
            "fencepost_notifications_delivered",
            "Notifications handed to subscribers, by what they read.",
            ["outcome"],
            registry=self.registry,
        )
        self.engine_warm = Gauge(
            "fencepost_engine_warm", "Whether the compiled matching engine is in use.", registry=self.registry
        )
        self.sessions = Gauge("fencepost_agent_sessions", "Agents connected now.", registry=self.registry)

    def recorded(self, notifications: int) -> None:
        if notifications:
            self._notifications.inc(notifications)

    def reported(self, outcomes: Mapping[str, int]) -> None:
        for outcome, count in outcomes.items():
            self._reports.labels(outcome).inc(count)

    def published(self, accepted: int, late: int) -> None:
        self._events.labels("accepted").inc(accepted)
        self._events.labels("late").inc(late)

    def delivered(self, told: int, withdrawn: int) -> None:
        self._delivered.labels("told").inc(told)
        self._delivered.labels("withdrawn").inc(withdrawn)

    def session_ended(self, counts: Counts) -> None:
        self._add("in", counts.received)
        self._add("out", counts.sent)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)

    def _add(self, direction: str, tallies: Mapping[str, Tally]) -> None:
        for kind, tally in tallies.items():
            self._messages.labels(direction, kind).inc(tally.messages)
            self._bytes.labels(direction, kind).inc(tally.bytes)
