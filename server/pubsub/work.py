"""One unit of work: a change of the store and of the world, in one transaction.

A command is a function of a `Work`. It refuses bad input before it changes anything. What it wants to happen when
the change is safe (wake a subscriber, push a plan) it notes here, and `Node` lets it happen after the commit.
"""

from dataclasses import dataclass, field

from sqlalchemy import Connection

from matcher.once import Instant
from server.pubsub.recording import Recorder
from server.pubsub.world import World
from server.settings import Settings
from server.store.writer import Transaction

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
    deadlines: list[Instant] = field(default_factory=list)  # when a dwell ends on the server

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.world, self.now)

    @property
    def conn(self) -> Connection:
        return self.tx.conn
