"""Predicates that came lately: a table that grows, scanned from end to end.

Nothing is sorted, so to add a predicate costs what it takes to write it down, and a few thousand are scanned in some
ten microseconds. One thread adds and removes while others match, without locks. A match reads which are removed
first and then how many there are, so of a predicate that is being replaced it sees the old or the new, or both.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from matcher.constraints import Predicate
from matcher.table.bits import Bits, empty_bits, remaining, set_range, words
from matcher.table.groups import Group, Groups, Key
from matcher.table.growing import Columns
from matcher.table.kinds import Kind
from matcher.table.plain import Store
from matcher.table.scans import exclude_lacking, exclude_listed

__all__ = ["Part", "Recent"]

_BITS = 64  # groups that have a bit in `needs`; of those beyond, all filters are listed
_ALL = (1 << _BITS) - 1


@dataclass(frozen=True, slots=True)
class Part:
    """What a table is made of: predicates in the order of their serial numbers, and their tests by group."""

    serials: np.ndarray
    ids: np.ndarray
    starts: np.ndarray  # the first filter of each predicate, and the end of the last
    gone: np.ndarray  # which of them were removed
    stores: list[tuple[Key, Kind | None, Store]]


class Recent:
    """Predicates get serial numbers from `first` on."""

    def __init__(self, first: int) -> None:
        self.first = first
        self._ids: list[Hashable] = []
        self._starts = Columns(np.int64)
        self._starts.with_room()[0][0] = 0
        self._starts.count = 1
        self._gone = Columns(np.bool_)
        self._filters = Columns(np.uint64, np.int32)  # the groups it needs, as bits, and its predicate
        self._removed = empty_bits(0)
        self._groups = Groups()
        self._listed: dict[int, Columns] = {}

    def __len__(self) -> int:
        """How many were added, also if they are removed again."""
        return len(self._ids)

    def add(self, owner: Hashable, predicate: Predicate) -> int:
        """The serial number that it gets."""
        columns = self._filters
        needs, owners = columns.with_room(len(predicate))
        first, place = columns.count, len(self._ids)
        if words(first + len(predicate)) > len(self._removed):
            removed = empty_bits(2 * (first + len(predicate)) + _BITS)
            removed[: len(self._removed)] = self._removed
            self._removed = removed
        for number, constraints in enumerate(predicate, first):
            needed = 0
            for at, constraint in enumerate(constraints):
                if at and constraint in constraints[:at]:
                    continue
                group = self._groups.of_test(constraint.attribute, constraint.test)
                group.store.add(number, constraint.test)
                if group.place >= _BITS:
                    self._list(group, number)
                needed |= group.bit
            needs[number], owners[number] = needed & _ALL, place
        self._gone.with_room()[0][place] = False
        self._gone.count += 1
        self._starts.with_room()[0][place + 1] = first + len(predicate)
        self._starts.count += 1
        self._ids.append(owner)
        columns.count = first + len(predicate)  # from now on it is seen
        return self.first + place

    def remove(self, serial: int) -> None:
        place = serial - self.first
        starts = self._starts.arrays[0]
        set_range(self._removed, starts[place], starts[place + 1])
        self._gone.arrays[0][place] = True

    def match(self, values: Mapping[str, Any]) -> list[Hashable]:
        """The ids of the predicates with a filter that matches."""
        removed = self._removed.copy()
        size = self._filters.count
        if not size:
            return []
        needs, owners = self._filters.arrays
        met = self._groups.met_by(values)
        out = _first_words(removed, words(size))
        exclude_lacking(needs, np.uint64(met.signature & _ALL), out, size)
        if len(self._groups.every) > _BITS:
            for group in self._groups.not_met(met.signature, _BITS):
                self._exclude_listed(group, out, size)
        for group, value in (*met.cheap, *met.dear):
            group.store.exclude(value, out, size)
        return list(map(self._ids.__getitem__, remaining(out, owners).tolist()))

    def part(self) -> Part:
        """What was added; the caller adds no more. What is removed later shows in the serial numbers only."""
        return Part(
            np.arange(self.first, self.first + len(self), dtype=np.int64),
            np.fromiter(self._ids, object, len(self)),
            self._starts.rows()[0],
            self._gone.rows()[0].copy(),
            [(group.key, group.kind, group.store) for group in self._groups.every],
        )

    def _list(self, group: Group, number: int) -> None:
        columns = self._listed.get(group.place)
        if columns is None:
            columns = self._listed[group.place] = Columns(np.int32)
        columns.with_room()[0][columns.count] = number
        columns.count += 1

    def _exclude_listed(self, group: Group, out: Bits, size: int) -> None:
        columns = self._listed.get(group.place)
        if columns is not None:
            count = columns.count
            exclude_listed(columns.arrays[0], count, out, size)


def _first_words(bits: Bits, count: int) -> Bits:
    if len(bits) >= count:
        return bits[:count]
    longer = np.zeros(count, np.uint64)
    longer[: len(bits)] = bits
    return longer
