"""Tests that no compiled code knows: those of kinds that others have registered, and the odd one of our own kinds.

They are looked at one by one, in plain Python, for the filters that are left.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from matcher.table.bits import Bits, Filters, distinct, set_bits
from matcher.table.growing import Columns

__all__ = ["ConstraintIndex", "Entry", "FilterStore", "Holds", "IndexFactory", "PlainIndex", "PlainStore", "Store"]

Entry = tuple[int, Any]
"""The number of a filter and one of its tests; entries come in the order of filters, and none twice."""

Holds = Callable[[Any, Any], bool]
"""Whether a test holds for a value of a type that it is for."""


class ConstraintIndex(Protocol):
    def exclude(self, value: Any, out: Bits) -> None:
        """Exclude the filters of which a test fails for the value. A filter that is out already needs no look."""


IndexFactory = Callable[[Sequence[Entry], int], ConstraintIndex]
"""Builds an index of these entries in a table of so many filters."""


class Store(Protocol):
    """The tests of one kind on one attribute, in the order of filters: to add to, to scan, and to make an index of.

    One thread adds while others scan. A table keeps the store that its index was made of, for the next table.
    """

    def add(self, number: int, test: Any) -> None: ...

    def exclude(self, value: Any, out: Bits, size: int) -> None:
        """As an index does, for filters with numbers below `size`."""

    def filters(self) -> Filters:
        """The filters that have such tests, in order, each once."""

    def merged(self, parts: Sequence[tuple[Self, Filters]]) -> Self:
        """A store of what these have, by the new numbers of their filters; -1 is for those to be left out."""

    def index(self, size: int) -> ConstraintIndex: ...


class FilterStore:
    """Tests of presence: there is nothing to know but which filters have them."""

    def __init__(self) -> None:
        self._columns = Columns(np.int32)

    def add(self, number: int, test: Any) -> None:
        self._columns.with_room()[0][self._columns.count] = number
        self._columns.count += 1

    def exclude(self, value: Any, out: Bits, size: int) -> None:
        """Nothing: who has the value satisfies all of them."""

    def filters(self) -> Filters:
        found: Filters = distinct(self._columns.rows()[0])
        return found

    def merged(self, parts: "Sequence[tuple[FilterStore, Filters]]") -> "FilterStore":
        store = FilterStore()
        numbers = np.concatenate([new[part._columns.rows()[0]] for part, new in parts])
        store._columns = Columns.of(numbers[numbers >= 0])
        return store

    def index(self, size: int) -> ConstraintIndex:
        return PlainIndex((), size, lambda test, value: True)


class PlainStore:
    def __init__(self, holds: Holds, factory: IndexFactory | None = None) -> None:
        """Without a factory, its index too looks at each."""
        self.holds = holds
        self._factory = factory
        self._entries: list[Entry] = []  # only ever appended to

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, number: int, test: Any) -> None:
        self._entries.append((number, test))

    def exclude(self, value: Any, out: Bits, size: int) -> None:
        entries = self._entries
        for place in range(len(entries)):  # others may come meanwhile, behind these
            number, test = entries[place]
            if number >= size:
                break
            if not int(out[number >> 6]) >> (number & 63) & 1 and not self.holds(test, value):
                out[number >> 6] |= np.uint64(1 << (number & 63))

    def filters(self) -> Filters:
        found: Filters = distinct(np.fromiter((number for number, _ in self._entries), np.int32))
        return found

    def merged(self, parts: "Sequence[tuple[PlainStore, Filters]]") -> "PlainStore":
        store = PlainStore(self.holds, self._factory)
        for part, new in parts:
            store._entries += [(int(new[number]), test) for number, test in part._entries if new[number] >= 0]
        return store

    def index(self, size: int) -> ConstraintIndex:
        if self._factory is None:
            return PlainIndex(self._entries, size, self.holds)
        return self._factory(self._entries, size)


class PlainIndex:
    """A look at each test that is different."""

    def __init__(self, entries: Sequence[Entry], size: int, holds: Holds) -> None:
        self.holds = holds
        by_test: dict[Any, list[int]] = {}
        for number, test in entries:
            by_test.setdefault(test, []).append(number)
        self._filters = {test: np.array(numbers, np.int32) for test, numbers in by_test.items()}

    def exclude(self, value: Any, out: Bits) -> None:
        for test, filters in self._filters.items():
            if not self.holds(test, value):
                set_bits(out, filters)
