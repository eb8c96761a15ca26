"""An agent is given what it says it can do, and nothing else."""

import pytest

from agent_sdk.protocol.capabilities import CAPABILITIES, needed_capabilities
from matcher.once import Service, Tos
from matcher.selector.tree import And, Compare, CompareOp, Const, InZones, Literal, Name, Not

_INSIDE = InZones(("z",))
_FAST = Compare(CompareOp.GT, Name("speed"), Literal(3))


@pytest.mark.parametrize(
    ("condition", "service", "needed"),
    [
        (_INSIDE, Service(), "within"),
        (_FAST, Service(), "conditions"),
        (Not(_INSIDE), Service(), "conditions within"),
        (And((_INSIDE, _FAST)), Service(dwell_s=3), "conditions dwell within"),
        (_INSIDE, Service(tos=Tos.EVERY), "every within"),
        (_INSIDE, Service(tos=Tos.FIRST), "first within"),
        (Const(True), Service(), "conditions"),
        (_INSIDE, Service(hysteresis_m=5), "dead_band within"),
        (_INSIDE, Service(unc_factor=1, crossing=True), "crossing dead_band within"),
    ],
)
def test_a_binding_needs_what_it_uses(condition, service, needed):
    assert " ".join(sorted(needed_capabilities(condition, service))) == needed


def test_our_own_agent_can_do_everything():
    everything = And((_INSIDE, _FAST))
    for tos in Tos:
        service = Service(tos=tos, dwell_s=1, hysteresis_m=5, crossing=True)
        assert needed_capabilities(everything, service) <= set(CAPABILITIES)
