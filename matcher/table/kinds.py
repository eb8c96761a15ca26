"""Kinds of constraints: each class of tests with the values it is for and the index that holds many of them.

A new type is a new kind: `register` names its class of tests, the types of the values they are about, the plain
decision of one, and what builds an index of many. Types are taken exactly, so that True is no number.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from matcher.constraints import (
    BoolTest,
    Constraint,
    NumberTest,
    PresentTest,
    RegionTest,
    StringTest,
    TimeTest,
    holds,
)
from matcher.planar import PlanarRegion
from matcher.selector.tree import Time
from matcher.table.bits import Bits, set_bits
from matcher.table.numbers import BoolIndex, NumberIndex, TimeIndex
from matcher.table.regions import RegionIndex
from matcher.table.strings import StringIndex

__all__ = ["ConstraintIndex", "Entry", "IndexFactory", "Kind", "constraint_holds", "kind_of", "register", "scan_index"]

Entry = tuple[int, Any]
"""The number of a filter and one of its tests; entries come in the order of filters, and none twice."""


class ConstraintIndex(Protocol):
    def exclude(self, value: Any, out: Bits) -> None:
        """Exclude the filters of which a test fails for the value. A filter that is out already needs no look."""


IndexFactory = Callable[[Sequence[Entry], int], ConstraintIndex]
"""Builds an index of these entries in a table of so many filters."""


@dataclass(frozen=True, slots=True)
class Kind:
    test: type
    values: tuple[type, ...]
    index: IndexFactory
    holds: Callable[[Any, Any], bool] | None = None  # None: `matcher.constraints.holds` knows it
    is_dear: bool = False  # looked at last, when others have left few filters


_KINDS: dict[type, Kind] = {}


def register(
    test: type,
    index: IndexFactory,
    *,
    values: tuple[type, ...],
    holds: Callable[[Any, Any], bool] | None = None,
    is_dear: bool = False,
) -> None:
    """Let tables have tests of a new class. Tables that are built already do not change."""
    _KINDS[test] = Kind(test, values, index, holds, is_dear)


def kind_of(test: object) -> Kind | None:
    """The kind of a test; None for a test of presence, which needs no index."""
    if type(test) is PresentTest:
        return None
    kind = _KINDS.get(type(test))
    if kind is None:
        raise TypeError(f"{type(test).__name__} is no kind of test that was registered.")
    return kind


def constraint_holds(constraint: Constraint, value: Any) -> bool:
    """The plain decision, of new kinds too."""
    kind = kind_of(constraint.test)
    if kind is None or kind.holds is None:
        return holds(constraint, value)
    return type(value) in kind.values and kind.holds(constraint.test, value)


def scan_index(holds: Callable[[Any, Any], bool]) -> IndexFactory:
    """An index that looks at each test that is different, for kinds that have none of their own."""

    def build(entries: Sequence[Entry], size: int) -> ConstraintIndex:
        return _Scan(entries, size, holds)

    return build


class _Scan:
    def __init__(self, entries: Sequence[Entry], size: int, holds: Callable[[Any, Any], bool]) -> None:
        self._holds = holds
        by_test: dict[Any, list[int]] = {}
        for number, test in entries:
            by_test.setdefault(test, []).append(number)
        self._filters = {test: np.array(numbers, np.int32) for test, numbers in by_test.items()}

    def exclude(self, value: Any, out: Bits) -> None:
        for test, filters in self._filters.items():
            if not self._holds(test, value):
                set_bits(out, filters)


register(BoolTest, BoolIndex, values=(bool,))
register(NumberTest, NumberIndex, values=(int, float))
register(StringTest, StringIndex, values=(str,))
register(TimeTest, TimeIndex, values=(Time,))
register(RegionTest, RegionIndex, values=(PlanarRegion,), is_dear=True)
