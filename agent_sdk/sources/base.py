"""What the agent asks of a source of fixes.

A source is iterated once, in the agent's event loop. It may attach pairs (speed, battery, priority) that
conditions use and notifications carry.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from matcher.events import Event
from matcher.once import Instant

__all__ = ["Source"]


class Source(ABC):
    """Subclass it for another kind of sensor; `__aiter__` is all it needs."""

    is_patient: bool = False  # nothing is lost when the next fix is taken later: a trace waits, a GPS does not
    is_checked: bool = False  # every event came from `checked_fix` or `parse_event`, so the agent need not look
    lag_s: float = 2.0  # how long after its ts a fix may arrive

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[Event]:
        """The fixes, until the source ends."""

    @property
    def waiting(self) -> int:
        """Fixes that are there and have not been taken yet, as far as the source knows."""
        return 0

    def seconds_until_seen(self, instant: Instant, now: Instant) -> float | None:
        """How long until every fix up to this instant has been handed out; None if only later fixes can tell.

        A dwell must not end before the fix that would have interrupted it has had time to arrive.
        """
        return max(0.0, (instant - now) / 1000 + self.lag_s)

    def hint(self, next_needed_in_s: float) -> None:  # noqa: B027 - a source that can't sample less does nothing
        """The next fix is not needed before this many seconds from now. A source may save power; it need not."""
