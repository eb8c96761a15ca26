"""Which bindings an event could make true, out of those of all subscriptions that speak of every object.

A subscription that names its objects is found by their oids. One that speaks of everybody ("any storm whose area
overlaps my plant") would have to be looked at for every event of every object; the matching engine says for which of
them that is worth it. Bindings about which it knows nothing, `(*) within (SYSTEM.*)` among them, are not its affair.

The engine is compiled code, which takes seconds to come to life when it was never used on a machine. Until `start` was
called everything is a candidate: slower, and right.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from matcher.compilation import Compiled
from matcher.events import Event, Region
from matcher.globe import is_within_the_plane

if TYPE_CHECKING:
    from matcher.engine import Engine, Merge
    from matcher.table.forwarding import Table

__all__ = ["Candidates", "Key"]

Key = tuple[int, str]  # a subscription's id, and the target of one of its bindings


@dataclass
class Candidates:
    _compiled: dict[Key, Compiled] = field(default_factory=dict)
    _targets: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _engine: "Engine | None" = None

    def __len__(self) -> int:
        return len(self._compiled)

    def put(self, subscription_id: int, compiled: dict[str, Compiled]) -> None:
        """The bindings of a subscription by their targets; those it had before go."""
        self.remove(subscription_id)
        self._targets[subscription_id] = tuple(compiled)
        for target, each in compiled.items():
            self._compiled[subscription_id, target] = each
            if self._engine is not None:
                self._engine.add((subscription_id, target), each.filters)

    def remove(self, subscription_id: int) -> None:
        for target in self._targets.pop(subscription_id, ()):
            del self._compiled[subscription_id, target]
            if self._engine is not None:
                self._engine.remove((subscription_id, target))

    def of(self, event: Event) -> Iterable[Key]:
        """At least those that the event makes true."""
        if not self._compiled:
            return ()
        regions = (value for value in event.pairs.values() if type(value) is Region)
        if self._engine is None or not all(is_within_the_plane(region.planar) for region in regions):
            return self._compiled.keys()
        return cast("set[Key]", self._engine.match(event))

    # --- the engine --------------------------------------------------------------------------------

    def start(self, engine: "Engine") -> None:
        """From now on use this engine, which is empty."""
        for key, each in self._compiled.items():
            engine.add(key, each.filters)
        self._engine = engine

    @property
    def is_merge_due(self) -> bool:
        return self._engine is not None and self._engine.is_merge_due

    def begin_merge(self) -> "Merge":
        assert self._engine is not None
        return self._engine.begin_merge()

    def finish_merge(self, table: "Table") -> None:
        assert self._engine is not None
        self._engine.finish_merge(table)
