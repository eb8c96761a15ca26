"""What an agent can evaluate, in the words of its hello.

An agent written elsewhere, or years ago, may know less than the server does. It is only given what it named: a plan
with something it can't decide would be worth nothing to anybody.
"""

from matcher.once import Service, Tos
from matcher.selector.conditions import leaves
from matcher.selector.tree import Condition, InZones, Near, Related

__all__ = ["CAPABILITIES", "needed_capabilities"]

CAPABILITIES = ("within", "relations", "conditions", "dwell", "every", "first", "positions", "dead_band", "crossing")


def needed_capabilities(condition: Condition, service: Service) -> frozenset[str]:
    """What an agent must be able to do to evaluate this binding."""
    needed = set()
    for leaf in leaves(condition):
        if isinstance(leaf, InZones) and leaf.zones:
            needed.add("within")
        elif isinstance(leaf, Related):
            needed.add("relations")
        elif isinstance(leaf, Near):
            needed.add("distance")  # which no agent can: it knows where nobody else is
    if not isinstance(condition, InZones | Related):
        needed.add("conditions")
    if service.dwell_s:
        needed.add("dwell")
    if service.tos is not Tos.ONCE:
        needed.add(str(service.tos))
    if service.has_dead_band:
        needed.add("dead_band")
    if service.crossing:
        needed.add("crossing")
    return frozenset(needed)
