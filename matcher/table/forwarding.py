"""A table of predicates that does not change, matched by bitsets of violated filters.

Every filter has a number, and the filters of one owner lie side by side. A message excludes filters: first those that
test an attribute it does not have, or has with another type. Which these are depends on the names and types only,
so a message like an earlier one finds the set ready. Then the index of each attribute and type excludes those with
a test that fails. What is left matches. Constraints are never counted one by one, as in the published algorithm.

The dear indexes, those of regions, come last. By then an owner may match through a filter that is decided, and its
other filters are dropped (early stop).

A table is made of the arrays of an older one and of those of recent predicates, not of predicates one by one, so that
little of it needs the interpreter's lock.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from matcher.table.bits import (
    Bits,
    Filters,
    count_up,
    empty_bits,
    packed,
    remaining,
    set_bits,
    set_range,
    set_ranges,
    settle,
)
from matcher.table.groups import Groups, Key
from matcher.table.kinds import Kind
from matcher.table.plain import Store
from matcher.table.recent import Part

__all__ = ["Removal", "Table"]

_STEP = 1024
_KEPT_BYTES = 1 << 23  # of sets for kinds of messages; then they are forgotten and made anew


class Removal:
    """Which predicates of a table were removed, and their filters. A match copies the filters in one step."""

    def __init__(self, table: "Table") -> None:
        self._table = table
        self.filters = empty_bits(table.size)
        self.gone = np.zeros(len(table), np.bool_)
        self.count = 0

    def add(self, serial: int) -> None:
        place = int(self._table.serials.searchsorted(serial))
        starts = self._table.starts
        set_range(self.filters, starts[place], starts[place + 1])
        self.gone[place] = True
        self.count += 1

    def add_all(self, serials: Sequence[int]) -> None:
        places = self._table.serials.searchsorted(np.array(serials, np.int64))
        set_ranges(self.filters, self._table.starts, places)
        self.gone[places] = True
        self.count += len(serials)


class Table:
    """`serials` are the serial numbers of its predicates, in order; the number of an owner is its place among them."""

    def __init__(self, parts: Sequence[Part], end: int, number: int) -> None:
        """Of what is in these and not gone. `end` is the first serial number that is in none of them."""
        self.end, self.number = end, number
        kept = [np.flatnonzero(~part.gone) for part in parts]
        self.serials = np.concatenate([part.serials[places] for part, places in zip(parts, kept, strict=True)])
        self._ids = _joined([part.ids for part in parts], kept)
        lengths = [np.diff(part.starts) for part in parts]
        of_kept = np.concatenate([each[places] for each, places in zip(lengths, kept, strict=True)])
        self.starts = np.zeros(len(of_kept) + 1, np.int64)
        np.cumsum(of_kept, out=self.starts[1:])
        self.size = int(self.starts[-1])
        self._owners = np.repeat(np.arange(len(of_kept), dtype=np.int32), of_kept)
        self._stops_early = bool(len(of_kept)) and int(of_kept.max()) > 1
        numbers: list[Filters] = []
        first = 0
        for part, each in zip(parts, lengths, strict=True):
            stays = np.repeat(~part.gone, each)
            numbers.append(np.where(stays, np.cumsum(stays) + (first - 1), -1).astype(np.int32))
            first += int(np.count_nonzero(stays))
        self._groups = Groups()
        self._filters: list[Filters] = []  # of each group
        self._need = np.zeros(self.size, np.int32)
        undecided = empty_bits(self.size)
        for key, kind, stores in _by_key(parts, numbers):
            self._build(key, kind, stores[0][0].merged(stores), undecided)
        self._decided = ~undecided
        self._excluded: dict[int, Bits] = {}  # by the groups that a message has

    def __len__(self) -> int:
        return len(self.serials)

    def part(self, gone: np.ndarray) -> Part:
        return Part(
            self.serials,
            self._ids,
            self.starts,
            gone,
            [(group.key, group.kind, group.store) for group in self._groups.every],
        )

    def match(self, values: Mapping[str, Any], removed: Bits, *, early_stop: bool = True) -> set[Hashable]:
        """The owners with a filter that matches."""
        if not self.size:
            return set()
        met = self._groups.met_by(values)
        excluded = self._excluded.get(met.signature)
        if excluded is None:
            excluded = self._excluded_by(met.signature)
        out = np.bitwise_or(excluded, removed)
        for group, value in met.cheap:
            group.index.exclude(value, out)  # type: ignore[union-attr]
        found: set[Hashable] = set()
        if met.dear and early_stop and self._stops_early:
            found.update(self._ids[settle(out, self._decided, self._owners, self.starts)].tolist())
        for group, value in met.dear:
            group.index.exclude(value, out)  # type: ignore[union-attr]
        found.update(self._ids[remaining(out, self._owners)].tolist())
        return found

    def _build(self, key: Key, kind: Kind | None, store: Store, undecided: Bits) -> None:
        filters = store.filters()
        if not len(filters):
            return
        group = self._groups.enter(key, kind, store)
        self._filters.append(filters)
        count_up(self._need, filters)
        if kind is not None:
            group.index = store.index(self.size)
            if kind.is_dear:
                set_bits(undecided, filters)

    def _excluded_by(self, signature: int) -> Bits:
        """The filters that need a group which a message of these groups has not."""
        counts = np.zeros(self.size, np.int32)
        for group, filters in zip(self._groups.every, self._filters, strict=True):
            if signature & group.bit:
                count_up(counts, filters)
        excluded = packed(counts != self._need)
        if (len(self._excluded) + 1) * excluded.nbytes > _KEPT_BYTES:
            self._excluded.clear()
        self._excluded[signature] = excluded
        return excluded


def _joined(objects: Sequence[np.ndarray], kept: Sequence[np.ndarray]) -> np.ndarray:
    """Those that are kept of each. To copy references takes the interpreter's lock, so it is done in small steps."""
    found = np.empty(sum(map(len, kept)), object)
    at = 0
    for each, places in zip(objects, kept, strict=True):
        for start in range(0, len(places), _STEP):
            step = places[start : start + _STEP]
            found[at : at + len(step)] = each[step]
            at += len(step)
    return found


def _by_key(
    parts: Sequence[Part], numbers: Sequence[Filters]
) -> list[tuple[Key, Kind | None, list[tuple[Store, Filters]]]]:
    found: dict[Key, tuple[Key, Kind | None, list[tuple[Store, Filters]]]] = {}
    for part, new in zip(parts, numbers, strict=True):
        for key, kind, store in part.stores:
            found.setdefault(key, (key, kind, []))[2].append((store, new))
    return list(found.values())
