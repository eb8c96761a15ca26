"""Index of tests of strings: tables by value, and by the beginnings, ends and parts that occur in tests.

A string is cut to each length that a test has, and what is cut off is looked up. For parts that is every place at every
such length, so with few tests, or a long string, they are tried one by one instead.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from matcher.constraints import StringOp, StringTest
from matcher.table.bits import Bits, Filters
from matcher.table.families import Equal, Satisfiable, Unequal

__all__ = ["StringIndex"]


class StringIndex:
    def __init__(self, entries: Sequence[tuple[int, StringTest]], size: int) -> None:
        by_op: dict[StringOp, list[tuple[int, str]]] = {}
        for number, test in entries:
            by_op.setdefault(test.op, []).append((number, test.value))
        self._indexes = [_INDEXES[op](of_op, size) for op, of_op in by_op.items()]

    def exclude(self, value: str, out: Bits) -> None:
        for index in self._indexes:
            index.exclude(value, out)


class _Parts:
    """Tests that hold for strings with a certain part. Which of the patterns a value has is the subclass's to say."""

    def __init__(self, entries: Sequence[tuple[int, str]], size: int) -> None:
        self._family = Satisfiable((number for number, _ in entries), size)
        numbers: dict[str, list[int]] = {}
        for number, pattern in entries:
            numbers.setdefault(pattern, []).append(number)
        self._filters: dict[str, Filters] = {pattern: np.array(of, np.int32) for pattern, of in numbers.items()}
        self._lengths = sorted({len(pattern) for pattern in numbers})

    def exclude(self, value: str, out: Bits) -> None:
        found = [self._filters[pattern] for pattern in self._patterns_in(value)]
        if not found:
            self._family.exclude_all(out)
        else:
            self._family.exclude_all_but(found[0] if len(found) == 1 else np.concatenate(found), out)

    def _patterns_in(self, value: str) -> Iterator[str]:
        raise NotImplementedError

    def _lengths_up_to(self, most: int) -> Iterator[int]:
        for length in self._lengths:
            if length > most:
                return
            yield length


class _Beginnings(_Parts):
    def _patterns_in(self, value: str) -> Iterator[str]:
        for length in self._lengths_up_to(len(value)):
            if value[:length] in self._filters:
                yield value[:length]


class _Ends(_Parts):
    def _patterns_in(self, value: str) -> Iterator[str]:
        for length in self._lengths_up_to(len(value)):
            end = value[len(value) - length :]
            if end in self._filters:
                yield end


class _Inner(_Parts):
    def _patterns_in(self, value: str) -> Iterator[str]:
        if len(self._lengths) * len(value) > len(self._filters):
            yield from (pattern for pattern in self._filters if pattern in value)
            return
        cut = {
            value[place : place + length]
            for length in self._lengths_up_to(len(value))
            for place in range(len(value) - length + 1)
        }
        yield from (part for part in cut if part in self._filters)


_Index = Equal | Unequal | _Parts
_INDEXES: dict[StringOp, Callable[[list[tuple[int, str]], int], _Index]] = {
    StringOp.EQ: Equal,
    StringOp.NE: Unequal,
    StringOp.PREFIX: _Beginnings,
    StringOp.SUFFIX: _Ends,
    StringOp.CONTAINS: _Inner,
}
