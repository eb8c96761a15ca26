"""Where the demo's lines go: results to stdout, progress to stderr.

On a terminal the running count stays on the last line and everything else scrolls above it. In a pipe or a file there
is no last line to stay on, so the count is a line among the others.
"""

import sys
from typing import TextIO

__all__ = ["Screen"]

_CLEAR_LINE = "\r\x1b[K"


class Screen:
    def __init__(self, out: TextIO | None = None, err: TextIO | None = None, *, as_json: bool = False) -> None:
        self._err = sys.stderr if err is None else err
        # With --json stdout is for the figures alone.
        self._out = self._err if as_json else sys.stdout if out is None else out
        self._keeps_last_line = self._err.isatty() and self._out.isatty()
        self._last_line = ""

    def say(self, sentence: str) -> None:
        """Progress."""
        self._print(sentence, self._err)

    def tell(self, line: str) -> None:
        """Something that happened in the town."""
        self._print(line, self._out)

    def count(self, line: str) -> None:
        """The running count; the next one takes its place."""
        if not self._keeps_last_line:
            self._print(line, self._err)
            return
        self._last_line = line
        self._err.write(_CLEAR_LINE + line)
        self._err.flush()

    def end_count(self) -> None:
        """Leave the last count where it is and go on below it."""
        if self._last_line:
            self._last_line = ""
            self._err.write("\n")
            self._err.flush()

    def _print(self, line: str, file: TextIO) -> None:
        file.write((_CLEAR_LINE if self._last_line else "") + line + "\n")
        file.flush()
        if self._last_line:
            self._err.write(self._last_line)
            self._err.flush()
