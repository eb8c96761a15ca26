"""Events and time, for bindings that depend on where other objects are (`server.pubsub.nearby`).

The server evaluates these for every object, also for those with agents: no device knows where another one is.
"""

from matcher.events import Event
from matcher.proximity import Nearings
from server.pubsub.entries import BindingKey, ObjectEntry, object_key
from server.pubsub.work import Work

__all__ = ["expire_nearby", "fold_nearby"]


def fold_nearby(work: Work, entry: ObjectEntry, event: Event) -> bool:
    """Fold an event into the bindings that the object is part of; false if it is late. The entry has the event before.

    Most objects are part of none: then this costs next to nothing.
    """
    nearby = work.world.nearby
    nearby.refresh(work.now)
    if not nearby.is_watched(entry.id):
        return True
    folded = nearby.proximity.fold(object_key(entry.id), event, work.world.states)
    if folded is None:
        return False
    if folded.states:
        _record(work, folded)
    return True


def expire_nearby(work: Work) -> None:
    """Let the dwells end whose time has come."""
    nearby = work.world.nearby
    nearby.refresh(work.now)
    ties = [tie for key in work.world.dwelling if (tie := nearby.tie(key)) is not None]
    if ties:
        folded = nearby.proximity.expire(ties, work.world.states, work.now)
        if folded.states:
            work.tx.touch()
            _record(work, folded)


def _record(work: Work, folded: Nearings[BindingKey]) -> None:
    for key, state in folded.states.items():
        work.recorder.state(key, state)
    for nearing in folded.edges:
        tie = work.world.nearby.tie(nearing.key)
        assert tie is not None  # or it would not have been evaluated
        needs = work.world.nearby.needs(tie, nearing.edge.mode)
        work.recorder.edge(nearing.key, nearing.edge, nearing.event, needs=needs, target_loc=nearing.target_loc)
