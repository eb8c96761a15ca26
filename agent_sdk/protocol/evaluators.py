"""Who evaluates a binding: the object's agent, or the server.

What a binding depends on decides, and nothing else. What depends on one object's own events and on zones is its
agent's, if it has one that can, connected or not: so nothing has to be sent while nothing happens. Where others are
is known to the server alone, and a message without an object has nobody else to look at it.

Both ends may ask: it is a function of the condition, the type of service, and what is known of the agent.
"""

from enum import StrEnum

import msgspec

from agent_sdk.protocol.capabilities import needed_capabilities
from matcher.once import Service
from matcher.selector.conditions import depends_on_others
from matcher.selector.tree import Condition

__all__ = ["Evaluation", "Evaluator", "Situation", "Why", "evaluator_of"]


class Evaluator(StrEnum):
    AGENT = "agent"
    SERVER = "server"
    NOBODY = "nobody"  # the agent has the object's positions and may not, or can't, evaluate


class Why(StrEnum):
    OFFLOADED = "offloaded"  # own events and zones only
    NO_AGENT = "no_agent"  # the object publishes its positions to the server
    NO_OBJECT = "no_object"  # a message that is about no object
    DEPENDS_ON_OTHERS = "depends_on_others"  # where other objects are
    GEOMETRY_NOT_FOR_DEVICES = "geometry_not_for_devices"  # a zone's owner keeps its shape from other people's devices
    AGENT_NOT_CAPABLE = "agent_not_capable"  # its hello did not name all that is needed


class Situation(msgspec.Struct, frozen=True):
    """What is known of the other side."""

    has_object: bool = True
    has_agent: bool = False
    capabilities: frozenset[str] | None = None  # None before its first hello: it is taken to know everything
    geometry_travels: bool = True  # all zones of the binding may go to this device


class Evaluation(msgspec.Struct, frozen=True):
    evaluator: Evaluator
    why: Why


def evaluator_of(condition: Condition, service: Service, situation: Situation) -> Evaluation:
    """Who decides about a binding with this condition."""
    if not situation.has_object:
        return Evaluation(Evaluator.SERVER, Why.NO_OBJECT)
    if depends_on_others(condition):
        return Evaluation(Evaluator.SERVER, Why.DEPENDS_ON_OTHERS)
    if not situation.has_agent:
        return Evaluation(Evaluator.SERVER, Why.NO_AGENT)
    if not situation.geometry_travels:
        return Evaluation(Evaluator.NOBODY, Why.GEOMETRY_NOT_FOR_DEVICES)
    able = situation.capabilities
    if able is not None and not needed_capabilities(condition, service) <= able:
        return Evaluation(Evaluator.NOBODY, Why.AGENT_NOT_CAPABLE)
    return Evaluation(Evaluator.AGENT, Why.OFFLOADED)
