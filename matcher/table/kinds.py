"""Kinds of constraints: each class of tests with the values it is for and the index that holds many of them.

A new type is a new kind: `register` names its class of tests, the types of the values they are about, the plain
decision of one, and what builds an index of many. Types are taken exactly, so that True is no number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from matcher.table.bits import empty_bits
from matcher.table.numbers import BoolStore, NumberStore, TimeStore
from matcher.table.plain import ConstraintIndex, Entry, Holds, IndexFactory, PlainIndex, PlainStore, Store
from matcher.table.regions import RegionStore
from matcher.table.strings import StringStore

__all__ = ["ConstraintIndex", "Entry", "IndexFactory", "Kind", "kind_of", "register", "scan_index"]


@dataclass(frozen=True, slots=True)
class Kind:
    values: tuple[type, ...]
    store: Callable[[], Store]
    is_dear: bool = False  # looked at last, when others have left few filters


_KINDS: dict[type, Kind] = {}


def register(
    test: type,
    index: IndexFactory,
    *,
    values: tuple[type, ...],
    holds: Holds | None = None,
    is_dear: bool = False,
) -> None:
    """Let tables have tests of a new class. Tables that are built already do not change.

    Tests that are not in a table yet are decided one by one by `holds`; if there is none, by the index of one of them.
    """
    _KINDS[test] = Kind(values, lambda: PlainStore(holds or _by_index(index), index), is_dear)


def kind_of(test: object) -> Kind | None:
    """The kind of a test; None for a test of presence, which needs no index."""
    if type(test) is PresentTest:
        return None
    kind = _KINDS.get(type(test))
    if kind is None:
        raise TypeError(f"{type(test).__name__} is no kind of test that was registered.")
    return kind


def scan_index(holds: Holds) -> IndexFactory:
    """An index that looks at each test that is different, for kinds that have none of their own."""
    return lambda entries, size: PlainIndex(entries, size, holds)


def _by_index(index: IndexFactory) -> Holds:
    def holds(test: Any, value: Any) -> bool:
        out = empty_bits(1)
        index([(0, test)], 1).exclude(value, out)
        return not out[0]

    return holds


def _plainly(test: Any, value: Any) -> bool:
    return holds(Constraint("", test), value)


_KINDS.update(
    {
        BoolTest: Kind((bool,), lambda: BoolStore(_plainly)),
        NumberTest: Kind((int, float), lambda: NumberStore(_plainly)),
        StringTest: Kind((str,), StringStore),
        TimeTest: Kind((Time,), lambda: TimeStore(_plainly)),
        RegionTest: Kind((PlanarRegion,), RegionStore, is_dear=True),
    }
)
