"""What the controller does for a connected agent, as commands: greet it, renew its lease.

Greeting decides whether the agent goes on in its generation or starts a new one. It goes on only if it names the
current one: an agent that has nothing, or something older, has lost its place to another evaluator or lost its file.
"""

from dataclasses import dataclass

from sqlalchemy import update

from agent_sdk.protocol.messages import Hello
from agent_sdk.protocol.plans import FullPlan
from matcher.once import Instant
from server.controller.enrolment import AgentIdentity
from server.controller.plans import build_plan
from server.controller.positions import locate_every_s
from server.pubsub.work import Work
from server.store import models

__all__ = ["Assignment", "greet", "plan_for", "renew"]


@dataclass(frozen=True)
class Assignment:
    """What an agent is to evaluate and until when; `newest` is the newest event the server has of its object.

    `lease_until` is 0 if the lease has ended and the server has taken over. `locate_every_s` is how often it has to say
    where it is, 0 for never.
    """

    plan: FullPlan
    newest: Instant | None
    lease_until: Instant
    locate_every_s: float


def greet(work: Work, agent: AgentIdentity, hello: Hello) -> Assignment | None:
    """The agent's plan; None if it is no longer the object's agent."""
    if not _extend_lease(work, agent):
        return None
    work.world.agents[agent.object_id].capabilities = frozenset(hello.capabilities)
    entry = work.world.objects[agent.object_id]
    if hello.generation != entry.generation:
        entry.generation += 1
        work.recorder.object_changed(entry)
        assignment = plan_for(work, agent)
        # The plan has the dwells that were running. How they go on only the device sees: it reports no edge for one
        # that ended outside, so none of them may run on here until the next handover.
        # Those that depend on others are the server's all the time.
        nearby = work.world.nearby
        work.interrupt(key for key in work.world.unsettled if key.object_id == entry.id and nearby.tie(key) is None)
        return assignment
    return plan_for(work, agent)


def plan_for(work: Work, agent: AgentIdentity) -> Assignment | None:
    if not _is_current(work, agent):
        return None
    entry = work.world.objects[agent.object_id]
    holding = work.world.agents[agent.object_id]
    plan = build_plan(work.world, entry)
    return Assignment(plan, entry.newest, holding.lease_until, locate_every_s(work, holding))


def renew(work: Work, agent: AgentIdentity) -> bool:
    """Lengthen the lease; false if there is none to lengthen any more (it ended, and the server took over)."""
    holding = work.world.agents.get(agent.object_id)
    return holding is not None and holding.lease_until != 0 and _extend_lease(work, agent)


def _extend_lease(work: Work, agent: AgentIdentity) -> bool:
    if not _is_current(work, agent):
        return False
    work.tx.touch()
    until = work.now + round(work.settings.lease_s * 1000)
    work.world.agents[agent.object_id].lease_until = until
    work.conn.execute(
        update(models.Agent).where(models.Agent.id == agent.agent_id).values(lease_until=until, last_seen=work.now)
    )
    return True


def _is_current(work: Work, agent: AgentIdentity) -> bool:
    holding = work.world.agents.get(agent.object_id)
    return holding is not None and holding.id == agent.agent_id
