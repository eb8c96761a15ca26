"""The part of a replay that speaks of distances between objects.

It is the trigger graph of `matcher.proximity`, with the objects of the trace in it from the start. Where one is that
was not heard of yet is UNKNOWN, and so changes nothing: it could as well be missing.
"""

from collections.abc import Iterable

from matcher.evaluation import Rule
from matcher.events import Event
from matcher.once import Instant, OnceState, Service
from matcher.places import Places
from matcher.proximity import Nearing, Nearings, Proximity, Tie
from matcher.selector.binding import ZoneDirectory, bind
from matcher.selector.conditions import depends_on_others
from matcher.selector.mentions import distances
from matcher.selector.tree import Selector
from zones.names import fold

__all__ = ["ReplayedDistances"]

_Key = tuple[str, str]  # the left object, and the target: the other one, a zone, or "" for the whole list
_OBJECT = "o:"  # begins the ids of objects, so that none is a zone's


class ReplayedDistances:
    """The bindings of a selector that depend on others, and their states. Oids are as they were first written."""

    def __init__(
        self, selector: Selector, service: Service, directory: ZoneDirectory, places: Places, oids: Iterable[str]
    ) -> None:
        self._oids: dict[str, str] = {}
        for oid in oids:
            self._oids.setdefault(fold(oid), oid)
        self._states: dict[_Key, OnceState] = {}
        self._proximity: Proximity[_Key] = Proximity(places)
        self._ties: list[Tie[_Key]] = []
        for left in dict.fromkeys(fold(term.oid) for term in distances(selector)):
            if left not in self._oids:
                continue
            for bound in bind(selector, self._oids[left], directory, self):
                is_pair = bound.target.startswith(_OBJECT)
                if is_pair or depends_on_others(bound.condition):
                    rule = Rule((left, bound.target), bound.condition, service)
                    self._ties.append(Tie(rule, _OBJECT + left, target=bound.target if is_pair else ""))
        for tie in self._ties:
            self._proximity.link(tie)

    def other(self, oid: str) -> str | None:
        """The id of the object of that name (`matcher.selector.binding`)."""
        return _OBJECT + fold(oid) if fold(oid) in self._oids else None

    def others(self) -> tuple[str, ...]:
        return tuple(_OBJECT + folded for folded in self._oids)

    def is_linked(self, folded: str) -> bool:
        """Whether somebody wants to know a distance to this object."""
        return self._proximity.is_linked(_OBJECT + folded)

    def fold(self, folded: str, event: Event) -> list[Nearing[_Key]]:
        """What an event of this object does to the bindings it is part of."""
        if not self.is_linked(folded):
            return []
        done = self._proximity.fold(_OBJECT + folded, event, self._states)
        return [] if done is None else self._accept(done)

    def expire(self, now: Instant) -> list[Nearing[_Key]]:
        return self._accept(self._proximity.expire(self._ties, self._states, now))

    def left_of(self, key: _Key) -> str:
        """The oid of the object that is told about."""
        return self._oids[key[0]]

    def other_of(self, key: _Key) -> str | None:
        """The oid of the other one; None if the binding is not about one."""
        return self._oids[key[1].removeprefix(_OBJECT)] if key[1].startswith(_OBJECT) else None

    def _accept(self, done: Nearings[_Key]) -> list[Nearing[_Key]]:
        self._states |= done.states
        return done.edges
