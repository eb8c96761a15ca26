"""Positions that agents report because somebody is told of distances to their objects.

As published: the controller commands an agent that has edges in the trigger graph to report periodically, and no other
one. Reported positions go to the evaluation of distances and nowhere else: zones are the agent's own affair. What comes
without being asked for (any more) is dropped, and nothing of it is kept.
"""

import logging
from typing import TYPE_CHECKING

from agent_sdk.protocol.messages import Position
from matcher.event_format import check_event
from matcher.events import Event
from server.controller.enrolment import AgentIdentity
from server.pubsub.meeting import fold_nearby
from server.pubsub.publishing import refuse_future
from server.pubsub.work import Work
from zones.errors import CallerError

if TYPE_CHECKING:
    from server.pubsub.entries import AgentEntry

__all__ = ["locate_every_s", "take_position"]

_log = logging.getLogger("fencepost.controller")


def locate_every_s(work: Work, agent: "AgentEntry") -> float:
    """How often this agent has to report where it is; 0 if nobody needs to know."""
    if agent.capabilities is None or "positions" not in agent.capabilities:
        return 0.0
    work.world.nearby.refresh(work.now)
    return work.settings.locate_every_s if work.world.nearby.is_watched(agent.object_id) else 0.0


def take_position(work: Work, agent: AgentIdentity, position: Position) -> bool:
    """Evaluate the distances of the agent's object anew; false if the position changes nothing."""
    holding = work.world.agents.get(agent.object_id)
    if holding is None or holding.id != agent.agent_id or holding.lease_until == 0:
        return False
    if not locate_every_s(work, holding):
        return False
    entry = work.world.objects[agent.object_id]
    try:
        refuse_future(position.ts, work.now, work.settings.clock_ahead_s)
        event = check_event(Event(position.ts, position.loc, entry.oid, position.unc, None, position.pairs))
    except CallerError as error:
        _log.info("position_refused", extra={"agent": agent.agent_id, "code": error.code})
        return False
    if not fold_nearby(work, entry, event):
        return False
    work.tx.touch()
    entry.last = event
    entry.newest = event.ts if entry.newest is None else max(entry.newest, event.ts)
    work.recorder.object_changed(entry)
    return True
