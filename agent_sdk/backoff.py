"""How long to wait before trying again: exponential, with full jitter.

A server that restarts is met by all its devices at once. Drawing the whole delay at random, and not only a part of
it, spreads them the most evenly.
"""

from collections.abc import Callable

__all__ = ["Backoff"]


class Backoff:
    """`random` gives numbers in [0, 1)."""

    def __init__(self, random: Callable[[], float], *, base_s: float = 0.5, cap_s: float = 60.0) -> None:
        self._random = random
        self._base_s = base_s
        self._cap_s = cap_s
        self._attempts = 0

    def next_s(self) -> float:
        """The delay before the next attempt."""
        ceiling = min(self._cap_s, self._base_s * 2.0 ** min(self._attempts, 60))
        self._attempts += 1
        return self._random() * ceiling

    def longest_s(self) -> float:
        """A delay of the longest kind, for when trying again soon would do harm."""
        return self._cap_s * (0.5 + self._random() / 2)

    def reset(self) -> None:
        """It worked: begin again with short delays."""
        self._attempts = 0
