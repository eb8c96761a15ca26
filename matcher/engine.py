"""Which of very many predicates an event matches.

    engine = Engine()
    engine.add("plant7", [[Constraint("area", RegionTest(Relation.OVERLAPS, plant)),
                           Constraint("wind", NumberTest(CompareOp.GT, 30))]])
    engine.match({"area": storm, "wind": 41.5})  # {"plant7"}

The bulk is in a table that does not change (`matcher.table.forwarding`). What was added since stands in a small one
that grows and is scanned (`matcher.table.recent`); what was removed is masked. A merge makes a new table of all that.
It has three steps, so that the long one can run anywhere: `begin_merge` and `finish_merge` are short and belong to
whoever adds and removes, `Merge.build` is a pure function of values that don't change. Between them everything goes on,
and each match sees one table or the other.

Matching may run in several threads beside one that adds and removes. There are no locks here: what a match
reads is replaced as a whole, or appended to before it is counted, or copied in one step.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matcher.constraints import Constraint, Predicate
from matcher.events import Event, Located, Region
from matcher.selector.tree import Time
from matcher.table.forwarding import Removal, Table
from matcher.table.kinds import kind_of, register, scan_index
from matcher.table.recent import Part, Recent

__all__ = ["Engine", "Merge", "register", "scan_index", "values_of"]

_LEAST = 64
_RECENT_SHARE = 16  # one in so many may be recent before `is_merge_due`: scanning them takes a third of a match then
_REMOVED_SHARE = 4  # one in so many may be removed: those only take room


@dataclass(frozen=True, slots=True)
class _State:
    """What a match reads. All but the last of `recent` wait for a merge to end and are added to no more."""

    table: Table
    removal: Removal
    recent: tuple[Recent, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """What a new table is made of, as it was when the merge began."""

    parts: tuple[Part, ...]
    end: int  # the first serial number that is in none of them
    number: int  # of the engine's merges

    def build(self) -> Table:
        """The long step: pure, for any thread, and mostly without the interpreter's lock."""
        return Table(self.parts, self.end, self.number)


class Engine:
    """Predicates by id. An id is anything hashable; to add it again replaces what it had."""

    def __init__(
        self, predicates: Iterable[tuple[Hashable, Iterable[Sequence[Constraint]]]] = (), *, early_stop: bool = True
    ) -> None:
        """`early_stop` can be switched off to see that it changes no result."""
        self._early_stop = early_stop
        first = Recent(0)
        self._serials: dict[Hashable, int] = {}
        for owner, filters in predicates:  # one by one: a million of them need not be there together
            before = self._serials.get(owner)
            self._serials[owner] = first.add(owner, _predicate(filters))
            if before is not None:
                first.remove(before)
        table = Table((first.part(),), len(first), 0)
        self._state = _State(table, Removal(table), (Recent(len(first)),))
        self._merges = 0  # how many were begun
        self._removed: list[int] | None = None  # since it began; None: no merge is under way

    def __len__(self) -> int:
        return len(self._serials)

    def __contains__(self, owner: object) -> bool:
        return owner in self._serials

    def add(self, owner: Hashable, filters: Iterable[Sequence[Constraint]]) -> None:
        """Match this id from now on if one of the filters matches: if all of its constraints hold."""
        before = self._serials.get(owner)
        self._serials[owner] = self._state.recent[-1].add(owner, _predicate(filters))
        if before is not None:
            self._mask(before)

    def remove(self, owner: Hashable) -> None:
        """Match this id no more; a KeyError if it is not there."""
        self._mask(self._serials.pop(owner))

    def match(self, event: Event | Mapping[str, Any]) -> set[Hashable]:
        """The ids of the predicates that hold for an event, or for values by name."""
        values = values_of(event)
        state = self._state
        found = state.table.match(values, state.removal.filters, early_stop=self._early_stop)
        waiting = state.recent
        while waiting:
            for recent in waiting:
                found.update(recent.match(values))
            # If a merge has begun meanwhile, an id may have gone from there and come back where this has not looked.
            now = self._state.recent
            if recent not in now:  # and it was finished, and others: the place to look at may be in a table
                return self.match(values)
            waiting = now[now.index(recent) + 1 :]
        return found

    def match_many(self, events: Iterable[Event | Mapping[str, Any]]) -> list[set[Hashable]]:
        """The same for each of several, in their order."""
        return [self.match(event) for event in events]

    # --- merging -----------------------------------------------------------------------------------

    @property
    def is_merge_due(self) -> bool:
        """Whether so much has changed that matching would be faster after a merge."""
        state = self._state
        recent, size = sum(map(len, state.recent)), len(state.table)
        return recent > max(_LEAST, size // _RECENT_SHARE) or state.removal.count > max(_LEAST, size // _REMOVED_SHARE)

    def merge(self) -> None:
        """All three steps at once."""
        self.finish_merge(self.begin_merge().build())

    def begin_merge(self) -> Merge:
        """What to build. A merge that was begun before and not finished is forgotten."""
        state = self._state
        last = state.recent[-1]
        end = last.first + len(last)
        self._merges += 1
        self._removed = []
        self._state = _State(state.table, state.removal, (*state.recent, Recent(end)))
        parts = (state.table.part(state.removal.gone.copy()), *(recent.part() for recent in state.recent))
        return Merge(parts, end, self._merges)

    def finish_merge(self, table: Table) -> None:
        """Go over to the table that the last `begin_merge` has led to, with what has changed meanwhile."""
        if self._removed is None or table.number != self._merges:
            raise ValueError("This merge was not begun, or another was begun after it.")
        removal = Removal(table)
        removal.add_all([serial for serial in self._removed if serial < table.end])
        recent = tuple(each for each in self._state.recent if each.first >= table.end)
        self._state = _State(table, removal, recent)
        self._removed = None

    def _mask(self, serial: int) -> None:
        state = self._state
        if serial < state.table.end:
            state.removal.add(serial)
        else:
            next(each for each in reversed(state.recent) if each.first <= serial).remove(serial)
        if self._removed is not None:
            self._removed.append(serial)


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
    return value.planar if type(value) is Region else value


def _predicate(filters: Iterable[Sequence[Constraint]]) -> Predicate:
    predicate = tuple(tuple(each) for each in filters)
    for each in predicate:
        for constraint in each:
            kind_of(constraint.test)  # a test of no known kind is refused here, not in a merge
    return predicate
