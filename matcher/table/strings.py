"""Tests of strings: tables by value, and by the beginnings, ends and parts that occur in tests.

A string is cut to each length that a test has, and what is cut off is looked up. For parts that is every place at every
such length, so with few tests, or a long string, they are tried one by one instead. What is looked up are codes, each
standing for one pattern; of the tests only the codes are kept.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from matcher.constraints import StringOp, StringTest
from matcher.table.bits import Bits, Filters, distinct
from matcher.table.building import append_coded
from matcher.table.families import Equal, Runs, Satisfiable, Unequal
from matcher.table.growing import Columns
from matcher.table.plain import ConstraintIndex
from matcher.table.scans import exclude_coded

__all__ = ["StringStore"]


class StringStore:
    def __init__(self) -> None:
        self._by_op: dict[StringOp, _Patterns] = {}

    def add(self, number: int, test: StringTest) -> None:
        patterns = self._by_op.get(test.op)
        if patterns is None:
            patterns = self._by_op[test.op] = _Patterns(test.op)
        patterns.add(number, test.value)

    def exclude(self, value: str, out: Bits, size: int) -> None:
        for patterns in tuple(self._by_op.values()):
            patterns.exclude(value, out, size)

    def filters(self) -> Filters:
        every = [patterns.columns.rows()[0] for patterns in self._by_op.values()]
        return distinct(np.concatenate(every)) if every else np.empty(0, np.int32)

    def merged(self, parts: "Sequence[tuple[StringStore, Filters]]") -> "StringStore":
        store = StringStore()
        for op in dict.fromkeys(op for part, _ in parts for op in part._by_op):
            patterns = _Patterns(op)
            patterns.merge([(part._by_op[op], new) for part, new in parts if op in part._by_op])
            if patterns.columns.count:
                store._by_op[op] = patterns
        return store

    def index(self, size: int) -> ConstraintIndex:
        return _StringIndex(self._by_op, size)


class _Patterns:
    """The tests with one operator."""

    def __init__(self, op: StringOp) -> None:
        self._op = op
        self.columns = Columns(np.int32, np.int32)  # filter, code
        self.codes: dict[str, int] = {}  # patterns in the order of their codes
        self.lengths: dict[int, None] = {}

    def add(self, number: int, pattern: str) -> None:
        code = self.codes.get(pattern)
        if code is None:
            code = self.codes[pattern] = len(self.codes)
            self.lengths[len(pattern)] = None
        filters, codes = self.columns.with_room()
        row = self.columns.count
        filters[row], codes[row] = number, code
        self.columns.count = row + 1

    def exclude(self, value: str, out: Bits, size: int) -> None:
        count = self.columns.count
        filters, codes = self.columns.arrays
        code_count = len(self.codes)  # read after the tests: no test has a code beyond
        found = np.array(
            [
                code
                for pattern in _candidates(self._op, value, tuple(self.lengths), self.codes)
                if (code := self.codes.get(pattern)) is not None and code < code_count
            ],
            np.int64,
        )
        exclude_coded(filters, codes, count, found, code_count, self._op is not StringOp.NE, out, size)

    def merge(self, parts: "Sequence[tuple[_Patterns, Filters]]") -> None:
        columns = self.columns
        filters, codes = columns.with_room(sum(part.columns.count for part, _ in parts))
        for part, new in parts:
            used = np.zeros(len(part.codes), np.bool_)
            own_filters, own_codes = part.columns.rows()
            end = append_coded(new, own_filters, own_codes, filters, codes, used, columns.count)
            translated = np.zeros(len(part.codes), np.int32)
            for place, (pattern, is_used) in enumerate(zip(part.codes, used.tolist(), strict=True)):
                if is_used:
                    translated[place] = self.codes.setdefault(pattern, len(self.codes))
            codes[columns.count : end] = translated[codes[columns.count : end]]
            columns.count = end
        self.lengths = dict.fromkeys(map(len, self.codes))


class _StringIndex:
    def __init__(self, by_op: Mapping[StringOp, _Patterns], size: int) -> None:
        self._indexes: list[ConstraintIndex] = []
        for op, patterns in by_op.items():
            filters, codes = patterns.columns.rows()
            if op is StringOp.EQ:
                self._indexes.append(Equal(filters, codes, patterns.codes, size))
            elif op is StringOp.NE:
                self._indexes.append(Unequal(filters, codes, patterns.codes, size))
            else:
                self._indexes.append(_Parts(op, patterns, size))

    def exclude(self, value: str, out: Bits) -> None:
        for index in self._indexes:
            index.exclude(value, out)


class _Parts:
    """Tests that hold for strings with a certain part."""

    def __init__(self, op: StringOp, patterns: _Patterns, size: int) -> None:
        filters, codes = patterns.columns.rows()
        self._op = op
        self._family = Satisfiable(filters, size)
        self._runs = Runs(filters, codes, patterns.codes)
        self._codes = patterns.codes
        self._lengths = sorted(patterns.lengths)

    def exclude(self, value: str, out: Bits) -> None:
        codes = map(self._codes.get, _candidates(self._op, value, self._lengths, self._codes))
        found = [self._runs.of(code) for code in codes if code is not None]
        if not found:
            self._family.exclude_all(out)
        else:
            self._family.exclude_all_but(found[0] if len(found) == 1 else np.concatenate(found), out)


def _candidates(op: StringOp, value: str, lengths: Iterable[int], patterns: Collection[str]) -> Iterator[str]:
    """Strings, each once, among which are all patterns that a test of this operator finds in the value."""
    size = len(value)
    lengths = [length for length in lengths if length <= size]
    if op is StringOp.PREFIX:
        return (value[:length] for length in lengths)
    if op is StringOp.SUFFIX:
        return (value[size - length :] for length in lengths)
    if op is not StringOp.CONTAINS:
        return iter((value,))
    if len(lengths) * size > len(patterns):
        return (pattern for pattern in tuple(patterns) if pattern in value)
    return iter({value[at : at + length] for length in lengths for at in range(size - length + 1)})
