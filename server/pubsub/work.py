"""One unit of work: a change of the store and of the world, in one transaction.

A command is a function of a `Work`. It refuses bad input before it changes anything. What it wants to happen when
the change is safe (wake a subscriber, push a plan) it notes here, and `Node` lets it happen after the commit.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from matcher.once import Instant, interrupted
from matcher.selector.conditions import zones_in
from server.pubsub.entries import BindingKey, ObjectEntry
from server.pubsub.recording import Recorder
from server.pubsub.world import World
from server.settings import Settings
from server.store.models import User
from server.store.writer import Transaction
from zones.names import fold

__all__ = ["Work"]


@dataclass
class Work:
    tx: Transaction
    world: World
    settings: Settings
    now: Instant
    recorder: Recorder = field(init=False)
    plans: set[int] = field(default_factory=set)  # objects whose agents' plans may have changed
    ended_agents: set[int] = field(default_factory=set)  # agents whose sessions must end

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.world, self.now)

    @property
    def conn(self) -> Connection:
        return self.tx.conn

    def user_id(self, name: str) -> int | None:
        """The user of that name; users are added straight to the store, so the world may not know them yet."""
        known = self.world.user_id(name)
        if known is None and "\0" not in name:  # which no name has, and PostgreSQL takes in no text
            row = self.conn.execute(
                select(User.id, User.name, User.last_offset).where(User.folded == fold(name))
            ).first()
            if row is not None:
                self.world.put_user(row.id, row.name, row.last_offset)
                known = row.id
        return known

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Around a change of zones, subscriptions or grants: dwells end whose binding it makes another one.

        A dwell that ran on would end in an edge that no event caused under the new condition. Devices compare item by
        item and do the same, so what an edit leaves alone runs on with both.
        """
        before = self._unsettled()
        yield
        after = self._unsettled()
        self.interrupt(key for key, task in before.items() if key in self.world.unsettled and after.get(key) != task)

    def interrupt(self, keys: Iterable[BindingKey]) -> None:
        """Stop waiting, and forget what counts as inside, without an edge."""
        for key in list(keys):
            self.recorder.state(key, interrupted(self.world.states[key]))

    def forget_last(self, entry: ObjectEntry) -> None:
        """An agent ends: it has seen later events of its object than we have, so no way began at ours.

        If we still wait for a dwell to end, the agent has never begun, and our last event is the last there is.
        """
        own = (key for key in self.world.dwelling if self.world.nearby.tie(key) is None)
        if all(key.object_id != entry.id for key in own):
            entry.last = None

    def settle(self) -> None:
        """Work out what the change means for distances, and whose agents have to hear of it.

        Where an agent reported was for distances alone: when the last one goes, it is forgotten.
        """
        nearby = self.world.nearby
        nearby.refresh(self.now)
        changed = nearby.changed_objects() & self.world.agents.keys()
        self.plans.update(changed)
        for object_id in changed:
            entry = self.world.objects[object_id]
            if entry.last is not None and not nearby.is_watched(object_id):
                self.tx.touch()
                self.forget_last(entry)
                self.recorder.object_changed(entry)

    def _unsettled(self) -> dict[BindingKey, object]:
        """What each running dwell waits for, as far as it is evaluated at all; and so for what counts as inside."""
        world = self.world
        world.nearby.refresh(self.now)
        return {
            rule.key: (
                rule.condition,
                rule.service,
                rule.precision,
                [*map(world.zone_version, zones_in(rule.condition))],
            )
            for object_id in {key.object_id for key in world.unsettled}
            for rule in (*world.rulebook.rules_at(object_id), *world.nearby.rules(object_id))
            if rule.key in world.unsettled
        }
