"""Mobile Location Agent: evaluates subscriptions where the position is known.

    async with Agent(url, credential, source) as agent:
        await agent.run()

Names are imported when they are first used, so that `import agent_sdk` costs a device next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_sdk.client import Agent, AgentCounts
    from agent_sdk.enrolment import enrol
    from agent_sdk.errors import AgentError, AgentReplaced, AgentRevoked
    from agent_sdk.sources.base import Source
    from agent_sdk.sources.callback import CallbackSource
    from agent_sdk.sources.gpsd import GpsdSource
    from agent_sdk.sources.trace import TraceSource

__all__ = [
    "Agent", "AgentCounts", "AgentError", "AgentReplaced", "AgentRevoked", "CallbackSource", "GpsdSource", "Source",
    "TraceSource", "enrol",
]  # fmt: skip

_HOMES = {
    "Agent": "agent_sdk.client",
    "AgentCounts": "agent_sdk.client",
    "AgentError": "agent_sdk.errors",
    "AgentReplaced": "agent_sdk.errors",
    "AgentRevoked": "agent_sdk.errors",
    "CallbackSource": "agent_sdk.sources.callback",
    "GpsdSource": "agent_sdk.sources.gpsd",
    "Source": "agent_sdk.sources.base",
    "TraceSource": "agent_sdk.sources.trace",
    "enrol": "agent_sdk.enrolment",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'agent_sdk' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
