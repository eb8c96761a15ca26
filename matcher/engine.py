"""Which of very many predicates an event matches.

    engine = Engine()
    engine.add("plant7", [[Constraint("area", RegionTest(Relation.OVERLAPS, plant)),
                           Constraint("wind", NumberTest(CompareOp.GT, 30))]])
    engine.match({"area": storm, "wind": 41.5})  # {"plant7"}

The bulk is in a table that does not change (`matcher.table.forwarding`). What was added since stands beside it and is
looked at one by one; what was removed is masked. A merge makes a new table of all that. It has three steps, so that the
long one can run anywhere: `begin_merge` and `finish_merge` are short and belong to whoever adds and removes,
`Merge.build` is a pure function of values that don't change. Between them everything goes on, and each match sees
one table or the other.

Matching may run in several threads beside one that adds and removes. There are no locks here: what a match
reads is replaced as a whole or copied in one step.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matcher.constraints import Constraint, Predicate
from matcher.events import Event, Located, Region
from matcher.planar import from_shape
from matcher.selector.tree import Time
from matcher.table.bits import Bits
from matcher.table.forwarding import Table
from matcher.table.kinds import constraint_holds, kind_of, register, scan_index

__all__ = ["Engine", "Merge", "register", "scan_index", "values_of"]

_LEAST_RECENT = 64
_RECENT_SHARE = 32  # one in so many may be recent before `is_merge_due`


@dataclass(frozen=True, slots=True)
class _State:
    """What a match reads. The table never changes; the others are changed in steps that a reader sees whole."""

    table: Table
    removed: Bits
    recent: dict[Hashable, Predicate]


@dataclass(frozen=True, slots=True)
class Merge:
    """What a new table is made of, as it was when the merge began."""

    table: Table
    gone: frozenset[Hashable]
    recent: tuple[tuple[Hashable, Predicate], ...]

    def build(self) -> Table:
        """The long step: pure, for any thread."""
        kept = (entry for entry in self.table.predicates if entry[0] not in self.gone)
        return Table((*kept, *self.recent))


class Engine:
    """Predicates by id. An id is anything hashable; to add it again replaces what it had."""

    def __init__(
        self, predicates: Iterable[tuple[Hashable, Iterable[Sequence[Constraint]]]] = (), *, early_stop: bool = True
    ) -> None:
        """`early_stop` can be switched off to see that it changes no result."""
        self._early_stop = early_stop
        latest = {owner: _predicate(filters) for owner, filters in predicates}
        table = Table(latest.items())
        self._state = _State(table, table.none_removed(), {})
        self._gone: set[Hashable] = set()  # of the table
        self._changed: set[Hashable] | None = None  # since a merge began; None: no merge is under way

    def __len__(self) -> int:
        return len(self._state.table) - len(self._gone) + len(self._state.recent)

    def __contains__(self, owner: object) -> bool:
        return owner in self._state.recent or (owner in self._state.table.places and owner not in self._gone)

    def add(self, owner: Hashable, filters: Iterable[Sequence[Constraint]]) -> None:
        """Match this id from now on if one of the filters matches: if all of its constraints hold."""
        predicate = _predicate(filters)
        self._mask(owner)
        self._state.recent[owner] = predicate
        self._note(owner)

    def remove(self, owner: Hashable) -> None:
        """Match this id no more; a KeyError if it is not there."""
        if owner not in self:
            raise KeyError(owner)
        self._mask(owner)
        self._state.recent.pop(owner, None)
        self._note(owner)

    def match(self, event: Event | Mapping[str, Any]) -> set[Hashable]:
        """The ids of the predicates that hold for an event, or for values by name."""
        values = values_of(event)
        state = self._state
        found = state.table.match(values, state.removed, early_stop=self._early_stop)
        for owner, predicate in tuple(state.recent.items()):
            for each in predicate:
                if all(constraint_holds(constraint, values.get(constraint.attribute)) for constraint in each):
                    found.add(owner)
                    break
        return found

    def match_many(self, events: Iterable[Event | Mapping[str, Any]]) -> list[set[Hashable]]:
        """The same for each of several, in their order."""
        return [self.match(event) for event in events]

    # --- merging -----------------------------------------------------------------------------------

    @property
    def is_merge_due(self) -> bool:
        """Whether so much has changed that matching would be faster after a merge."""
        changes = len(self._state.recent) + len(self._gone)
        return changes > max(_LEAST_RECENT, len(self._state.table) // _RECENT_SHARE)

    def merge(self) -> None:
        """All three steps at once."""
        self.finish_merge(self.begin_merge().build())

    def begin_merge(self) -> Merge:
        """What to build. A merge that was begun before and not finished is forgotten."""
        self._changed = set()
        state = self._state
        return Merge(state.table, frozenset(self._gone), tuple(state.recent.items()))

    def finish_merge(self, table: Table) -> None:
        """Go over to the table that the last `begin_merge` has led to, with what has changed meanwhile."""
        if self._changed is None:
            raise ValueError("No merge was begun.")
        recent = self._state.recent
        removed = table.none_removed()
        gone = {owner for owner in self._changed if owner in table.places}
        for owner in gone:
            table.mark_removed(owner, removed)
        self._state = _State(table, removed, {owner: recent[owner] for owner in self._changed if owner in recent})
        self._gone = gone
        self._changed = None

    def _mask(self, owner: Hashable) -> None:
        state = self._state
        if owner in state.table.places and owner not in self._gone:
            state.table.mark_removed(owner, state.removed)
            self._gone.add(owner)

    def _note(self, owner: Hashable) -> None:
        if self._changed is not None:
            self._changed.add(owner)


def values_of(event: Event | Mapping[str, Any]) -> Mapping[str, Any]:
    """What an event says of each attribute, as constraints see it: regions are planar, a place is just a value."""
    if isinstance(event, Event):
        values: dict[str, Any] = {name: _planar(value) for name, value in event.pairs.items()}
        values["ts"] = Time(event.ts)
        values["oid"] = event.oid or None
        values["loc"] = None if event.loc is None else Located(event.loc)
        values["unc"] = event.unc
        values["lpid"] = event.lpid
        return values
    if Region in map(type, event.values()):
        return {name: _planar(value) for name, value in event.items()}
    return event


def _planar(value: Any) -> Any:
    return from_shape(value.shape) if type(value) is Region else value


def _predicate(filters: Iterable[Sequence[Constraint]]) -> Predicate:
    predicate = tuple(tuple(each) for each in filters)
    for each in predicate:
        for constraint in each:
            kind_of(constraint.test)  # a test of no known kind is refused here, not in a merge
    return predicate
