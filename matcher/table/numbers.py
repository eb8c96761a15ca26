"""Tests of numbers, times and truth values.

Doubles can't hold every whole number, so a number is kept as the sum of two: 106 bits are enough for all but the odd
one, which is looked at in plain Python. Comparing the first parts and then the second is exact, because rounding never
changes the order of two numbers.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from matcher.constraints import BoolTest, NumberTest, TimeTest
from matcher.selector.tree import CompareOp, Time
from matcher.table.bits import Bits, Filters, distinct, place_of_number
from matcher.table.building import append_comparisons, bounds_of, number_codes, with_operator
from matcher.table.families import Bounds, Equal, Unequal
from matcher.table.growing import Columns
from matcher.table.plain import ConstraintIndex, Holds, PlainStore
from matcher.table.scans import exclude_comparisons

__all__ = ["BoolStore", "NumberStore", "TimeStore"]

_Number = int | float

_BELOW, _EQUAL, _ABOVE, _INCOMPARABLE = 1, 2, 4, 8
_ALLOWED = {
    CompareOp.EQ: _EQUAL,
    CompareOp.NE: _BELOW | _ABOVE | _INCOMPARABLE,
    CompareOp.LT: _BELOW,
    CompareOp.LE: _BELOW | _EQUAL,
    CompareOp.GT: _ABOVE,
    CompareOp.GE: _ABOVE | _EQUAL,
}


class _Comparisons:
    """Subclasses say how a test and a value become numbers."""

    def __init__(self, holds: Holds) -> None:
        self._columns = Columns(np.int32, np.int8, np.float64, np.float64)  # filter, allowed, high, low
        self._odd = PlainStore(holds)

    def _operand(self, test: Any) -> tuple[CompareOp, _Number]:
        raise NotImplementedError

    def _number(self, value: Any) -> _Number:
        raise NotImplementedError

    def add(self, number: int, test: Any) -> None:
        op, operand = self._operand(test)
        high, low, rest = _split(operand)
        if rest:
            self._odd.add(number, test)
            return
        columns = self._columns
        filters, allowed, highs, lows = columns.with_room()
        row = columns.count
        filters[row], allowed[row], highs[row], lows[row] = number, _ALLOWED[op], high, low
        columns.count = row + 1

    def exclude(self, value: Any, out: Bits, size: int) -> None:
        count = self._columns.count
        filters, allowed, highs, lows = self._columns.arrays
        high, low, rest = _split(self._number(value))
        exclude_comparisons(filters, allowed, highs, lows, count, high, low, rest, out, size)
        if len(self._odd):
            self._odd.exclude(value, out, size)

    def filters(self) -> Filters:
        found: Filters = distinct(np.concatenate((self._columns.rows()[0], self._odd.filters())))
        return found

    def merged(self, parts: Sequence[tuple[Self, Filters]]) -> Self:
        store = type(self)(self._odd.holds)
        columns = store._columns
        to_filters, to_allowed, to_highs, to_lows = columns.with_room(sum(part._columns.count for part, _ in parts))
        for part, new in parts:
            filters, allowed, highs, lows = part._columns.rows()
            columns.count = append_comparisons(
                new, filters, allowed, highs, lows, to_filters, to_allowed, to_highs, to_lows, columns.count
            )
        store._odd = self._odd.merged([(part._odd, new) for part, new in parts])
        return store

    def index(self, size: int) -> ConstraintIndex:
        return _ComparisonIndex(self._columns.rows(), self._odd, self._number, size)


class NumberStore(_Comparisons):
    def _operand(self, test: NumberTest) -> tuple[CompareOp, _Number]:
        return test.op, test.value

    def _number(self, value: _Number) -> _Number:
        return value


class TimeStore(_Comparisons):
    def _operand(self, test: TimeTest) -> tuple[CompareOp, _Number]:
        return test.op, test.ms

    def _number(self, value: Time) -> _Number:
        return value.ms


class BoolStore(_Comparisons):
    def _operand(self, test: BoolTest) -> tuple[CompareOp, _Number]:
        return CompareOp.EQ, test.value

    def _number(self, value: bool) -> _Number:
        return value


class _ComparisonIndex:
    """Only operators that occur cost anything."""

    def __init__(self, columns: Sequence[np.ndarray], odd: PlainStore, number: Any, size: int) -> None:
        self._number = number
        self._odd = odd.index(size) if len(odd) else None
        self._equal = self._unequal = self._above = self._below = None
        filters, allowed, highs, lows = columns
        chosen, of_highs, of_lows = with_operator(filters, allowed, highs, lows, _ALLOWED[CompareOp.EQ])
        if len(chosen):
            self._equal = Equal(chosen, *_coded(of_highs, of_lows), size)
        chosen, of_highs, of_lows = with_operator(filters, allowed, highs, lows, _ALLOWED[CompareOp.NE])
        if len(chosen):
            self._unequal = Unequal(chosen, *_coded(of_highs, of_lows), size)
        chosen, of_highs, of_lows, strict = bounds_of(
            filters, allowed, highs, lows, _ALLOWED[CompareOp.LT], _ALLOWED[CompareOp.LE], 1
        )
        if len(chosen):
            self._above = Bounds(chosen, of_highs, of_lows, strict, size)
        chosen, of_highs, of_lows, strict = bounds_of(
            filters, allowed, highs, lows, _ALLOWED[CompareOp.GT], _ALLOWED[CompareOp.GE], -1
        )
        if len(chosen):
            self._below = Bounds(chosen, of_highs, of_lows, strict, size)

    def exclude(self, value: Any, out: Bits) -> None:
        number = self._number(value)
        high, low, rest = _split(number)
        if self._above is not None:
            self._above.exclude(high, low, rest, out)
        if self._below is not None:
            self._below.exclude(-high, -low, -rest, out)
        if self._equal is not None:
            self._equal.exclude(number, out)
        if self._unequal is not None:
            self._unequal.exclude(number, out)
        if self._odd is not None:
            self._odd.exclude(value, out)


def _split(number: _Number) -> tuple[float, float, int]:
    """A number as two doubles, and the sign of what is still left of it."""
    if type(number) is float:
        return number, 0.0, 0
    try:
        high = float(number)
    except OverflowError:  # less than infinity, more than any double
        return (float("inf"), 0.0, -1) if number > 0 else (float("-inf"), 0.0, 1)
    left = int(number) - int(high)
    if not left:
        return high, 0.0, 0
    low = float(left)
    left -= int(low)
    return high, low, (left > 0) - (left < 0)


class _NumberCodes:
    """The places of numbers, which are in order."""

    def __init__(self, highs: np.ndarray, lows: np.ndarray) -> None:
        self._highs, self._lows = highs, lows

    def __len__(self) -> int:
        return len(self._highs)

    def get(self, number: _Number) -> int | None:
        high, low, rest = _split(number)
        place: int = -1 if rest else place_of_number(self._highs, self._lows, high, low)
        return None if place < 0 else place


def _coded(highs: np.ndarray, lows: np.ndarray) -> tuple[np.ndarray, _NumberCodes]:
    """Codes of numbers, the same for the same, and the code of each number."""
    codes, *numbers = number_codes(np.lexsort((lows, highs)), highs, lows)
    return codes, _NumberCodes(*numbers)
