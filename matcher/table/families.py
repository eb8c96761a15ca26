"""What the indexes of all types are made of: constraints that hold for few values, or fail for few, or have a bound.

An index is told of a value and excludes the filters with a constraint that the value violates. That a filter may have
several constraints on one attribute is no matter where violated constraints are found; where satisfied ones are, all
of a filter's must be among them, so they are counted.

They are made of arrays by arrays, because a table is built beside threads that want the interpreter's lock.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np

from matcher.table.bits import (
    Bits,
    Filters,
    distinct,
    empty_bits,
    exclude_all_but,
    exclude_all_but_counted,
    exclude_violated,
    prefix_rows,
    set_bits,
    words,
)
from matcher.table.building import in_order, runs_by_code

__all__ = ["Bounds", "Codes", "Equal", "Runs", "Satisfiable", "Unequal"]

# A value that so many filters share has a row of its own; there can be at most 64 times as many constraints as rows.
_SHARE = 64
_LEAST_BLOCK = 256
_MOST_BLOCKS = 128

_NO_BITS = np.empty(0, np.uint64)
_NO_FILTERS = np.empty(0, np.int32)


class Codes(Protocol):
    """What stands for each value, from 0 without a gap."""

    def get(self, value: Any, /) -> int | None: ...

    def __len__(self) -> int: ...


class Satisfiable:
    """Constraints of which one finds out which hold: all filters that have another are excluded."""

    def __init__(self, filters: Filters, size: int) -> None:
        unique = distinct(filters)
        self._need = _NO_FILTERS
        if len(unique) != len(filters):
            self._need = np.bincount(filters, minlength=size).astype(np.int32)
        self.members = unique
        self.every = _NO_BITS
        if len(unique) * _SHARE > size:
            self.every = empty_bits(size)
            set_bits(self.every, self.members)

    def exclude_all_but(self, satisfied: Filters, out: Bits) -> None:
        if len(self._need):
            exclude_all_but_counted(out, self.members, self._need, satisfied)
        else:
            exclude_all_but(out, self.every, self.members, satisfied)

    def exclude_all(self, out: Bits) -> None:
        if len(self.every):
            np.bitwise_or(out, self.every, out=out)
        else:
            set_bits(out, self.members)


class Runs:
    """The filters of each code."""

    def __init__(self, filters: Filters, codes: np.ndarray, codes_of: Codes) -> None:
        self.codes_of = codes_of
        self._filters, self._starts = runs_by_code(filters, codes, len(codes_of))

    def of(self, code: int) -> Filters:
        found: Filters = self._filters[self._starts[code] : self._starts[code + 1]]
        return found

    def longer_than(self, least: float) -> Iterable[int]:
        found: list[int] = np.flatnonzero(np.diff(self._starts) > least).tolist()
        return found


class Equal:
    """Constraints that hold for one value."""

    def __init__(self, filters: Filters, codes: np.ndarray, codes_of: Codes, size: int) -> None:
        self._family = Satisfiable(filters, size)
        self._satisfied = Runs(filters, codes, codes_of)
        self._rows: dict[int, Bits] = {}
        for code in self._satisfied.longer_than(size / _SHARE):
            row = self._rows[code] = empty_bits(size)
            self._family.exclude_all_but(self._satisfied.of(code), row)

    def exclude(self, value: Hashable, out: Bits) -> None:
        code = self._satisfied.codes_of.get(value)
        if code is None:
            self._family.exclude_all(out)
            return
        row = self._rows.get(code)
        if row is not None:
            np.bitwise_or(out, row, out=out)
        else:
            self._family.exclude_all_but(self._satisfied.of(code), out)


class Unequal:
    """Constraints that hold for all values but one."""

    def __init__(self, filters: Filters, codes: np.ndarray, codes_of: Codes, size: int) -> None:
        self._violated = Runs(filters, codes, codes_of)

    def exclude(self, value: Hashable, out: Bits) -> None:
        code = self._violated.codes_of.get(value)
        if code is not None:
            set_bits(out, self._violated.of(code))


class Bounds:
    """Constraints `value < bound` and `value <= bound`; for `>` and `>=` negate both sides.

    Sorted by bound, those that a value violates come first, and the sets of the first so many are prepared in steps.
    Bounds are sums of two doubles, so whole numbers and fractions are compared exactly, however large.
    """

    def __init__(self, filters: Filters, highs: np.ndarray, lows: np.ndarray, strict: np.ndarray, size: int) -> None:
        """Of each the filter's number, the bound as a sum of two, and whether the bound itself is excluded."""
        order = np.lexsort((~strict, lows, highs))
        self._order, self._highs, self._lows, self._strict = in_order(order, filters, highs, lows, strict)
        self._block = max(_LEAST_BLOCK, size // _SHARE, -(-len(order) // _MOST_BLOCKS))
        self._rows = np.zeros((len(order) // self._block + 1, words(size)), np.uint64)
        prefix_rows(self._order, self._block, self._rows)

    def exclude(self, high: float, low: float, rest: int, out: Bits) -> None:
        """A value is given as a sum of two, with the sign of what it is besides."""
        exclude_violated(
            out, self._rows, self._block, self._order, self._highs, self._lows, self._strict, high, low, rest
        )
