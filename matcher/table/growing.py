"""Arrays that one thread appends to while others read them, without locks.

A writer fills the row behind the last, then publishes the new length; a full array is replaced by a larger copy before
that. So who reads the length first and the arrays after it finds all these rows in them, and nobody ever writes there.
"""

from collections.abc import Sequence

import numpy as np

__all__ = ["Columns"]

_FIRST_ROOM = 64


class Columns:
    """Arrays of one length, each given by its type and, if a row has more than one number, how many."""

    __slots__ = ("_room", "arrays", "count")

    def __init__(self, *types: type | tuple[type, int]) -> None:
        self.count = 0
        self._room = _FIRST_ROOM
        self.arrays: tuple[np.ndarray, ...] = tuple(
            np.empty((_FIRST_ROOM, each[1]), each[0]) if isinstance(each, tuple) else np.empty(_FIRST_ROOM, each)
            for each in types
        )

    @classmethod
    def of(cls, *arrays: np.ndarray) -> "Columns":
        """Arrays that are full."""
        columns = cls()
        columns.count = columns._room = len(arrays[0])
        columns.arrays = arrays
        return columns

    @classmethod
    def joined(cls, parts: Sequence[Sequence[np.ndarray]]) -> "Columns":
        return cls.of(*(np.concatenate(of_all) for of_all in zip(*parts, strict=True)))

    def with_room(self, more: int = 1) -> tuple[np.ndarray, ...]:
        """The arrays, with place for so many rows behind `count`; once they are filled, add to `count`."""
        if self.count + more > self._room:
            room = max(2 * self._room, self.count + more)
            grown = []
            for old in self.arrays:
                new = np.empty((room, *old.shape[1:]), old.dtype)
                new[: self.count] = old[: self.count]
                grown.append(new)
            self.arrays = tuple(grown)
            self._room = room
        return self.arrays

    def rows(self) -> tuple[np.ndarray, ...]:
        """What is there now."""
        count = self.count
        return tuple(array[:count] for array in self.arrays)
