"""A device without its connection: evaluator and store, kept in step.

Everything that changes goes to the store first and is believed after the commit. The session reaches the device
through `agent_sdk.protocol.session.Memory`, which this is.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from agent_sdk.errors import StateFileUnusable
from agent_sdk.evaluator import Evaluator, Outcome
from agent_sdk.outbox import DeadReport, DeviceStore
from agent_sdk.protocol.messages import Ack, Plan, ReportItem
from matcher.events import Event
from matcher.once import Instant

__all__ = ["CLOCK_AHEAD_MS", "Device", "DeviceCounts"]

CLOCK_AHEAD_MS = 300_000


@dataclass(slots=True)
class DeviceCounts:
    """What became of the fixes.

    `suspended` ones came when nothing may be evaluated: no plan, the lease is over, or the outbox is full.
    `invalid` ones broke the rules for events, or are dated ahead of the server's clock.
    """

    fixes: int = 0
    invalid: int = 0
    late: int = 0
    suspended: int = 0
    edges: int = 0


class Device:
    """Evaluates fixes and remembers; knows nothing of sockets or clocks."""

    def __init__(self, store: DeviceStore) -> None:
        self._store = store
        remembered = store.load()
        self._evaluator = Evaluator(remembered.plan, remembered.states, newest=remembered.newest, last=remembered.last)
        self._etag = remembered.etag
        self._cursor = remembered.cursor
        self.lease_until = remembered.lease_until
        self.skew_ms = 0  # the server's clock minus ours, as far as known
        self.counts = DeviceCounts()

    # --- what the session asks for -------------------------------------------------------------------

    @property
    def generation(self) -> int:
        return self._evaluator.plan.generation

    @property
    def etag(self) -> str:
        return self._etag

    @property
    def cursor(self) -> int:
        return self._cursor

    @property
    def last(self) -> Event | None:
        return self._evaluator.last

    def install(self, plan: Plan, lease_until: Instant) -> None:
        after = self._evaluator.with_plan(plan)
        last = after.last if after.needs_last else None
        self._store.save_plan(plan, after.states, newest=after.newest, last=last, lease_until=lease_until)
        self._evaluator, self._etag, self.lease_until = after, plan.etag, lease_until

    def extend(self, lease_until: Instant) -> None:
        self._store.save_lease(lease_until)
        self.lease_until = lease_until

    def acknowledge(self, ack: Ack) -> None:
        self._evaluator.begin_anew(self._store.acknowledge(ack))

    def forget(self) -> None:
        self._store.forget()
        self._evaluator = Evaluator(newest=self._evaluator.newest)
        self._etag, self.lease_until = "", None

    def outgoing(self, after: int, limit: int) -> Sequence[ReportItem]:
        return self._store.outgoing(after, limit)

    # --- what the source and the clock bring ---------------------------------------------------------

    def may_evaluate(self, now: Instant) -> bool:
        """There is a plan, its lease is not over, and an edge would find room.

        A full outbox stops the evaluation instead of dropping edges: the states wait too, so what is told later
        still alternates.
        """
        return (
            self.generation > 0 and self.lease_until is not None and now < self.lease_until and not self._store.is_full
        )

    def refuse(self) -> None:
        """Count a fix that broke the rules for events."""
        self.counts.fixes += 1
        self.counts.invalid += 1

    def fix(self, event: Event, now: Instant) -> int:
        """Evaluate one fix and store what it changed; says how many edges it gave.

        One from the future is not taken: the server would refuse its edges, and every true fix behind it would be
        late.
        """
        self.counts.fixes += 1
        if event.ts > now + self.skew_ms + CLOCK_AHEAD_MS:
            self.counts.invalid += 1
            return 0
        if not self.may_evaluate(now):
            self.counts.suspended += 1
            return 0
        if event.oid:
            event = msgspec.structs.replace(event, oid="")  # it speaks of itself, as conditions and server know
        outcome = self._evaluator.fix(event)
        if outcome.late:
            self.counts.late += 1
            return 0
        return self._take(outcome)

    def advance(self, present: Instant, now: Instant) -> int:
        """Let dwells end; `present` is the instant up to which every fix has been seen."""
        due = self._evaluator.next_deadline()
        if due is None or due > present or not self.may_evaluate(now):
            return 0
        return self._take(self._evaluator.advance(present))

    def next_deadline(self) -> Instant | None:
        return self._evaluator.next_deadline()

    def read_up_to(self, cursor: int) -> None:
        """The owner's notifications up to this offset have been handled."""
        if cursor > self._cursor:
            self._store.save_cursor(cursor)
            self._cursor = cursor

    # --- looking in ----------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Reports that the server has not acknowledged."""
        return self._store.waiting

    def dead(self) -> tuple[DeadReport, ...]:
        return self._store.dead()

    def close(self) -> None:
        if self._evaluator.newest is not None:
            with suppress(StateFileUnusable):  # then it is as if it had been killed
                self._store.save_newest(self._evaluator.newest)
        self._store.close()

    def _take(self, outcome: Outcome) -> int:
        is_needed = self._evaluator.needs_last_after(outcome)
        if outcome.states or is_needed:
            held = outcome.last if is_needed else None
            self._store.save_fix(self._evaluator.reports(outcome), outcome.states, outcome.newest, held)
        self._evaluator.accept(outcome)
        self.counts.edges += len(outcome.edges)
        return len(outcome.edges)
