"""A table of predicates that does not change, matched by bitsets of violated filters.

Every filter has a number, and the filters of one owner lie side by side. A message excludes filters: first those that
test an attribute it does not have, or has with another type. Which these are depends on the names and types only,
so a message like an earlier one finds the set ready. Then the index of each attribute and type excludes those with
a test that fails. What is left matches. Constraints are never counted one by one, as in the published algorithm.

The dear indexes, those of regions, come last. By then an owner may match through a filter that is decided, and its
other filters are dropped (early stop).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matcher.constraints import Constraint, Filter, Predicate, PresentTest
from matcher.table.bits import Bits, Filters, count_up, empty_bits, packed, remaining, set_bits, set_range, settle
from matcher.table.kinds import ConstraintIndex, Kind, kind_of

__all__ = ["Table"]

_KEPT_BYTES = 1 << 23  # of sets for kinds of messages; then they are forgotten and made anew


@dataclass(slots=True)
class _Group:
    """The tests of one kind on one attribute; of a kind None, tests of presence."""

    bit: int
    kind: Kind | None
    entries: list[tuple[int, Any]] = field(default_factory=list)
    filters: Filters = field(default_factory=lambda: np.empty(0, np.int32))
    index: ConstraintIndex | None = None


@dataclass(slots=True)
class _Attribute:
    present: _Group | None = None
    absent: _Group | None = None
    by_test: dict[type, _Group] = field(default_factory=dict)
    by_value: dict[type, list[_Group]] = field(default_factory=dict)


class Table:
    """`predicates` are what it was built of, by id; the number of an owner is its place among them."""

    def __init__(self, predicates: Iterable[tuple[Hashable, Predicate]]) -> None:
        self.predicates = tuple(predicates)
        self._ids = [owner for owner, _ in self.predicates]
        self.places = {owner: place for place, owner in enumerate(self._ids)}
        self._attributes: dict[str, _Attribute] = {}
        self._groups: list[_Group] = []
        starts = [0]
        for _, filters in self.predicates:
            for number, each in enumerate(filters, starts[-1]):
                self._enter(number, each)
            starts.append(starts[-1] + len(filters))
        self.size = starts[-1]
        self._starts = np.array(starts, np.int64)
        self._owners = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(self._starts))
        self._stops_early = bool(len(self._owners)) and int(np.diff(self._starts).max()) > 1
        self._need = np.zeros(self.size, np.int32)
        undecided = empty_bits(self.size)
        for group in self._groups:
            self._build(group, undecided)
        self._decided = ~undecided
        self._excluded: dict[int, Bits] = {}  # by the groups that a message has

    def __len__(self) -> int:
        return len(self.predicates)

    def none_removed(self) -> Bits:
        """The filters of removed owners, to begin with none; the caller keeps it."""
        return empty_bits(self.size)

    def mark_removed(self, owner: Hashable, removed: Bits) -> None:
        place = self.places[owner]
        set_range(removed, self._starts[place], self._starts[place + 1])

    def match(self, values: Mapping[str, Any], removed: Bits, *, early_stop: bool = True) -> set[Hashable]:
        """The owners with a filter that matches."""
        if not self.size:
            return set()
        signature = 0
        cheap: list[tuple[_Group, Any]] = []
        dear: list[tuple[_Group, Any]] = []
        attributes = self._attributes
        for name, value in values.items():
            attribute = attributes.get(name)
            if attribute is None or value is None:
                continue
            if attribute.present is not None:
                signature |= attribute.present.bit
            if attribute.absent is not None:
                signature |= attribute.absent.bit
            for group in attribute.by_value.get(type(value), ()):
                signature |= group.bit
                (dear if group.kind is not None and group.kind.is_dear else cheap).append((group, value))
        excluded = self._excluded.get(signature)
        if excluded is None:
            excluded = self._excluded_by(signature)
        out = np.bitwise_or(excluded, removed)
        for group, value in cheap:
            group.index.exclude(value, out)  # type: ignore[union-attr]
        places: list[int] = []
        if dear and early_stop and self._stops_early:
            places = settle(out, self._decided, self._owners, self._starts).tolist()
        for group, value in dear:
            group.index.exclude(value, out)  # type: ignore[union-attr]
        places += remaining(out, self._owners).tolist()
        return set(map(self._ids.__getitem__, places))

    # --- building ----------------------------------------------------------------------------------

    def _enter(self, number: int, constraints: Filter) -> None:
        for constraint in constraints:
            entries = self._group(constraint).entries
            entry = (number, constraint.test)
            if entries and entries[-1][0] == number and entry in _of_last_filter(entries):
                continue
            entries.append(entry)

    def _group(self, constraint: Constraint) -> _Group:
        attribute = self._attributes.setdefault(constraint.attribute, _Attribute())
        test = constraint.test
        if type(test) is PresentTest:
            group = attribute.present if test.present else attribute.absent
            if group is None:
                group = self._new_group(None)
                if test.present:
                    attribute.present = group
                else:
                    attribute.absent = group
            return group
        group = attribute.by_test.get(type(test))
        if group is None:
            kind = kind_of(test)
            group = attribute.by_test[type(test)] = self._new_group(kind)
            for value_type in kind.values if kind is not None else ():
                attribute.by_value.setdefault(value_type, []).append(group)
        return group

    def _new_group(self, kind: Kind | None) -> _Group:
        group = _Group(1 << len(self._groups), kind)
        self._groups.append(group)
        return group

    def _build(self, group: _Group, undecided: Bits) -> None:
        group.filters = np.unique(np.fromiter((number for number, _ in group.entries), np.int32)).astype(np.int32)
        count_up(self._need, group.filters)
        if group.kind is not None:
            group.index = group.kind.index(group.entries, self.size)
            if group.kind.is_dear:
                set_bits(undecided, group.filters)
        group.entries = []

    def _excluded_by(self, signature: int) -> Bits:
        """The filters that need a group which a message of these groups has not."""
        absent = {attribute.absent.bit for attribute in self._attributes.values() if attribute.absent is not None}
        counts = np.zeros(self.size, np.int32)
        for group in self._groups:
            if bool(signature & group.bit) is not (group.bit in absent):
                count_up(counts, group.filters)
        excluded = packed(counts != self._need)
        if (len(self._excluded) + 1) * excluded.nbytes > _KEPT_BYTES:
            self._excluded.clear()
        self._excluded[signature] = excluded
        return excluded


def _of_last_filter(entries: Sequence[tuple[int, Any]]) -> Iterable[tuple[int, Any]]:
    for entry in reversed(entries):
        if entry[0] != entries[-1][0]:
            return
        yield entry
