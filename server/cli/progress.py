"""How far long work has come: one line on stderr that is drawn over, if stderr is a terminal and the work is long."""

import sys
import time
from types import TracebackType
from typing import TextIO

__all__ = ["Progress"]

_CLEAR_LINE = "\r\x1b[K"
_WIDTH = 24
_FIRST_AFTER_S = 0.7  # what is done by then needs no bar
_EVERY_S = 0.1


class Progress:
    """`with Progress("Matching", 1000) as progress: ... progress.at(17)`"""

    def __init__(self, what: str, total: int, err: TextIO | None = None) -> None:
        self._what, self._total = what, total
        self._err = sys.stderr if err is None else err
        # None if the caller has closed it.
        self._is_seen = self._err is not None and self._err.isatty()
        self._due = time.monotonic() + _FIRST_AFTER_S
        self._is_drawn = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def at(self, done: int) -> None:
        if not self._is_seen or (now := time.monotonic()) < self._due:
            return
        self._due = now + _EVERY_S
        share = done / self._total if self._total else 1.0
        bar = "#" * int(share * _WIDTH)
        self._err.write(f"{_CLEAR_LINE}{self._what} [{bar:.<{_WIDTH}}] {share:4.0%}  {done:,} of {self._total:,}")
        self._err.flush()
        self._is_drawn = True

    def clear(self) -> None:
        """Make room for a line of something else; the next `at` draws the bar again, below it."""
        if self._is_drawn:
            self._err.write(_CLEAR_LINE)
            self._err.flush()
            self._is_drawn = False
