"""The tests of a table by attribute and kind, and which of these groups a message meets.

A filter needs each of its groups: a message that has not the attribute, or has it with another type, can't match it.
So what a message meets, as bits, already excludes filters before any value is looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from matcher.constraints import PresentTest
from matcher.table.kinds import Kind, kind_of
from matcher.table.plain import ConstraintIndex, FilterStore, Store

__all__ = ["Group", "Groups", "Key", "Met"]

Key = tuple[str, type | bool]
"""The attribute and the class of tests; True and False for tests that it is there, or is not."""


@dataclass(slots=True, eq=False)
class Group:
    key: Key
    kind: Kind | None  # None for tests of presence
    store: Store
    place: int
    bit: int
    index: ConstraintIndex | None = None


@dataclass(slots=True)
class Met:
    """The groups whose attribute and type a message has; those of kinds that are dear apart."""

    signature: int
    cheap: list[tuple[Group, Any]] = field(default_factory=list)
    dear: list[tuple[Group, Any]] = field(default_factory=list)


@dataclass(slots=True)
class _Attribute:
    present: Group | None = None
    absent: Group | None = None
    by_value: dict[type, list[Group]] = field(default_factory=dict)


class Groups:
    """One thread may add groups while others look for them."""

    def __init__(self) -> None:
        self.every: list[Group] = []
        self._by_key: dict[Key, Group] = {}
        self._attributes: dict[str, _Attribute] = {}
        self._absent = 0  # the bits of tests that an attribute is not there

    def of_test(self, attribute: str, test: Any) -> Group:
        key = (attribute, test.present if type(test) is PresentTest else type(test))
        found = self._by_key.get(key)
        if found is None:
            kind = kind_of(test)
            found = self.enter(key, kind, FilterStore() if kind is None else kind.store())
        return found

    def enter(self, key: Key, kind: Kind | None, store: Store) -> Group:
        group = Group(key, kind, store, len(self.every), 1 << len(self.every))
        attribute = self._attributes.setdefault(key[0], _Attribute())
        self.every.append(group)
        self._by_key[key] = group
        if key[1] is True:
            attribute.present = group
        elif key[1] is False:
            attribute.absent = group
            self._absent |= group.bit
        for value_type in kind.values if kind is not None else ():
            attribute.by_value.setdefault(value_type, []).append(group)
        return group

    def met_by(self, values: Mapping[str, Any]) -> Met:
        met = Met(self._absent)
        attributes = self._attributes
        for name, value in values.items():
            attribute = attributes.get(name)
            if attribute is None or value is None:
                continue
            if attribute.present is not None:
                met.signature |= attribute.present.bit
            if attribute.absent is not None:
                met.signature &= ~attribute.absent.bit
            for group in attribute.by_value.get(type(value), ()):
                met.signature |= group.bit
                (met.dear if group.kind is not None and group.kind.is_dear else met.cheap).append((group, value))
        return met

    def not_met(self, signature: int, first: int) -> Iterable[Group]:
        """From the group at this place on."""
        return (group for group in self.every[first:] if not signature & group.bit)
