"""What the indexes of all types are made of: constraints that hold for few values, or fail for few, or have a bound.

An index is told of a value and excludes the filters with a constraint that the value violates. That a filter may have
several constraints on one attribute is no matter where violated constraints are found; where satisfied ones are, all
of a filter's must be among them, so they are counted.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from matcher.table.bits import (
    Bits,
    Filters,
    empty_bits,
    exclude_all_but,
    exclude_all_but_counted,
    exclude_prefix,
    prefix_rows,
    set_bits,
    words,
)

__all__ = ["Bounds", "Equal", "Number", "Satisfiable", "Unequal"]

Number = int | float

# A value that so many filters share has a row of its own; there can be at most 64 times as many constraints as rows.
_SHARE = 64
_LEAST_BLOCK = 256
_MOST_BLOCKS = 128

_NO_BITS = np.empty(0, np.uint64)
_NO_FILTERS = np.empty(0, np.int32)


class Satisfiable:
    """Constraints of which one finds out which hold: all filters that have another are excluded."""

    def __init__(self, filters: Iterable[int], size: int) -> None:
        members = np.fromiter(filters, np.int32)
        unique = np.unique(members)
        self._need = _NO_FILTERS
        if len(unique) != len(members):
            self._need = np.bincount(members, minlength=size).astype(np.int32)
        self.members = unique.astype(np.int32)
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


class Equal:
    """Constraints that hold for one value."""

    def __init__(self, entries: Sequence[tuple[int, Hashable]], size: int) -> None:
        self._family = Satisfiable((number for number, _ in entries), size)
        self._satisfied = _by_value(entries)
        self._rows: dict[Hashable, Bits] = {}
        for value, satisfied in self._satisfied.items():
            if len(satisfied) * _SHARE > size:
                row = self._rows[value] = empty_bits(size)
                self._family.exclude_all_but(satisfied, row)

    def exclude(self, value: Hashable, out: Bits) -> None:
        row = self._rows.get(value)
        if row is not None:
            np.bitwise_or(out, row, out=out)
            return
        satisfied = self._satisfied.get(value)
        if satisfied is None:
            self._family.exclude_all(out)
        else:
            self._family.exclude_all_but(satisfied, out)


class Unequal:
    """Constraints that hold for all values but one."""

    def __init__(self, entries: Sequence[tuple[int, Hashable]], size: int) -> None:
        self._violated = _by_value(entries)

    def exclude(self, value: Hashable, out: Bits) -> None:
        violated = self._violated.get(value)
        if violated is not None:
            set_bits(out, violated)


class Bounds:
    """Constraints `value < bound` and `value <= bound`; for `>` and `>=` negate both sides.

    Sorted by bound, those that a value violates come first, and the sets of the first so many are prepared in steps.
    Bounds are compared as Python compares: whole numbers and fractions exactly, however large.
    """

    def __init__(self, entries: Sequence[tuple[int, Number, bool]], size: int) -> None:
        """Of each the filter's number, the bound, and whether the bound itself is excluded."""
        ordered = sorted(entries, key=lambda entry: (entry[1], not entry[2]))
        self._order = np.fromiter((number for number, _, _ in ordered), np.int32)
        self._bounds: list[Number] = []
        self._starts: list[int] = []  # how many lie below each bound
        self._strict: list[int] = []  # and with those that exclude the bound itself
        for place, (_, bound, strict) in enumerate(ordered):
            if not self._bounds or self._bounds[-1] != bound:
                self._bounds.append(bound)
                self._starts.append(place)
                self._strict.append(place)
            if strict:
                self._strict[-1] = place + 1
        self._starts.append(len(ordered))
        self._block = max(_LEAST_BLOCK, size // _SHARE, -(-len(ordered) // _MOST_BLOCKS))
        self._rows = np.zeros((len(ordered) // self._block + 1, words(size)), np.uint64)
        prefix_rows(self._order, self._block, self._rows)

    def exclude(self, value: Number, out: Bits) -> None:
        count = self._violated(value)
        if count:
            step = count // self._block
            row = self._rows[step] if step else _NO_BITS
            exclude_prefix(out, row, self._order, step * self._block, count)

    def _violated(self, value: Number) -> int:
        if value != value:  # NaN is neither below nor above anything
            return len(self._order)
        place = bisect_left(self._bounds, value)
        if place < len(self._bounds) and self._bounds[place] == value:
            return self._strict[place]
        return self._starts[place]


def _by_value(entries: Sequence[tuple[int, Hashable]]) -> dict[Hashable, Filters]:
    found: dict[Hashable, list[int]] = {}
    for number, value in entries:
        found.setdefault(value, []).append(number)
    return {value: np.array(numbers, np.int32) for value, numbers in found.items()}
