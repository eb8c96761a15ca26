"""Indexes of tests of numbers, times and truth values."""

from collections.abc import Sequence

from matcher.constraints import BoolTest, NumberTest, TimeTest
from matcher.selector.tree import CompareOp, Time
from matcher.table.bits import Bits
from matcher.table.families import Bounds, Equal, Number, Unequal

__all__ = ["BoolIndex", "NumberIndex", "TimeIndex"]


class _Comparisons:
    """Only operators that occur cost anything."""

    def __init__(self, entries: Sequence[tuple[int, CompareOp, Number]], size: int) -> None:
        equal = [(number, value) for number, op, value in entries if op is CompareOp.EQ]
        unequal = [(number, value) for number, op, value in entries if op is CompareOp.NE]
        above = [
            (number, value, op is CompareOp.LT) for number, op, value in entries if op in (CompareOp.LT, CompareOp.LE)
        ]
        below = [
            (number, -value, op is CompareOp.GT) for number, op, value in entries if op in (CompareOp.GT, CompareOp.GE)
        ]
        self._equal = Equal(equal, size) if equal else None
        self._unequal = Unequal(unequal, size) if unequal else None
        self._above = Bounds(above, size) if above else None
        self._below = Bounds(below, size) if below else None

    def exclude(self, value: Number, out: Bits) -> None:
        if self._above is not None:
            self._above.exclude(value, out)
        if self._below is not None:
            self._below.exclude(-value, out)
        if self._equal is not None:
            self._equal.exclude(value, out)
        if self._unequal is not None:
            self._unequal.exclude(value, out)


class NumberIndex(_Comparisons):
    def __init__(self, entries: Sequence[tuple[int, NumberTest]], size: int) -> None:
        super().__init__([(number, test.op, test.value) for number, test in entries], size)


class TimeIndex:
    def __init__(self, entries: Sequence[tuple[int, TimeTest]], size: int) -> None:
        self._comparisons = _Comparisons([(number, test.op, test.ms) for number, test in entries], size)

    def exclude(self, value: Time, out: Bits) -> None:
        self._comparisons.exclude(value.ms, out)


class BoolIndex(Equal):
    def __init__(self, entries: Sequence[tuple[int, BoolTest]], size: int) -> None:
        super().__init__([(number, test.value) for number, test in entries], size)
