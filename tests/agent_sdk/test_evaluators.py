"""Who evaluates what, as a table."""

import pytest

from agent_sdk.protocol.capabilities import CAPABILITIES
from agent_sdk.protocol.evaluators import Evaluation, Evaluator, Situation, Why, evaluator_of
from matcher.once import Service, Tos
from matcher.selector.binding import bind
from matcher.selector.parser import parse_selector
from matcher.selector.tree import Condition, NamedZone, ZoneSet, ZoneTag

AGENT = Situation(has_agent=True, capabilities=frozenset(CAPABILITIES))


class Directory:
    """Zones by their names, and a friend."""

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        assert isinstance(ref, NamedZone)
        return (ref.local,)

    def other(self, oid: str) -> str:
        return f"o:{oid}"

    def others(self) -> tuple[str, ...]:
        return ("o:anna",)


def conditions(selector: str, oid: str = "mike") -> dict[str, Condition]:
    """By the target of the binding."""
    directory = Directory()
    return {bound.target: bound.condition for bound in bind(parse_selector(selector), oid, directory, directory)}


@pytest.mark.parametrize(
    ("selector", "evaluators"),
    [
        ("(mike) within (mike.A)", {"A": "agent offloaded"}),
        ("(*) within (mike.A, mike.B)", {"A": "agent offloaded", "B": "agent offloaded"}),
        ("(mike) overlaps (mike.A)", {"A": "agent offloaded"}),
        ("area overlaps (mike.A)", {"A": "agent offloaded"}),
        ("(mike) distance (500, anna)", {"o:anna": "server depends_on_others"}),
        ("(mike) distance (500, *)", {"o:anna": "server depends_on_others"}),
        ("NOT (mike) within (mike.A)", {"": "agent offloaded"}),
        ("NOT (mike) distance (500, anna)", {"": "server depends_on_others"}),
        ("speed > 30", {"": "agent offloaded"}),
        ("(mike) within (mike.A) AND speed > 30", {"A": "agent offloaded"}),
        ("(mike) within (mike.A) AND (mike) distance (500, anna)", {"A": "server depends_on_others"}),
        ("(mike) distance (500, anna) AND (mike) within (mike.A)", {"o:anna": "server depends_on_others"}),
        (
            "(mike) within (mike.A) OR (mike) distance (500, anna)",
            {"A": "agent offloaded", "o:anna": "server depends_on_others"},
        ),
        (
            "(mike) within (mike.A) OR (mike) within (mike.A, mike.B) AND (mike) distance (500, anna)",
            {"A": "server depends_on_others", "B": "server depends_on_others"},
        ),
    ],
)
def test_an_agent_evaluates_what_depends_on_its_own_events_and_on_zones(
    selector: str, evaluators: dict[str, str]
) -> None:
    found = {target: evaluator_of(each, Service(), AGENT) for target, each in conditions(selector).items()}
    assert {target: f"{each.evaluator} {each.why}" for target, each in found.items()} == evaluators


@pytest.mark.parametrize(
    ("selector", "situation", "evaluation"),
    [
        ("(mike) within (mike.A)", Situation(), Evaluation(Evaluator.SERVER, Why.NO_AGENT)),
        ("(mike) distance (500, anna)", Situation(), Evaluation(Evaluator.SERVER, Why.DEPENDS_ON_OTHERS)),
        ("area overlaps (mike.A)", Situation(has_object=False), Evaluation(Evaluator.SERVER, Why.NO_OBJECT)),
        (
            "area overlaps (mike.A)",
            Situation(has_object=False, has_agent=True),
            Evaluation(Evaluator.SERVER, Why.NO_OBJECT),
        ),
        (
            "(mike) within (mike.A)",
            Situation(has_agent=True, geometry_travels=False),
            Evaluation(Evaluator.NOBODY, Why.GEOMETRY_NOT_FOR_DEVICES),
        ),
        (
            "(mike) within (mike.A)",
            Situation(has_agent=True, capabilities=None),
            Evaluation(Evaluator.AGENT, Why.OFFLOADED),
        ),
        (
            "(mike) within (mike.A) AND speed > 30",
            Situation(has_agent=True, capabilities=frozenset({"within"})),
            Evaluation(Evaluator.NOBODY, Why.AGENT_NOT_CAPABLE),
        ),
        (
            "(mike) overlaps (mike.A)",
            Situation(has_agent=True, capabilities=frozenset({"within", "conditions"})),
            Evaluation(Evaluator.NOBODY, Why.AGENT_NOT_CAPABLE),
        ),
        (
            "(mike) distance (500, anna)",
            Situation(has_agent=True, capabilities=frozenset()),
            Evaluation(Evaluator.SERVER, Why.DEPENDS_ON_OTHERS),
        ),
    ],
)
def test_what_is_known_of_the_agent_decides_the_rest(
    selector: str, situation: Situation, evaluation: Evaluation
) -> None:
    (condition,) = conditions(selector).values()
    assert evaluator_of(condition, Service(), situation) == evaluation


@pytest.mark.parametrize(
    ("service", "capability"),
    [(Service(tos=Tos.EVERY), "every"), (Service(tos=Tos.FIRST), "first"), (Service(dwell_s=5), "dwell")],
    ids=["every", "first", "dwell"],
)
def test_an_agent_has_to_know_the_type_of_service(service: Service, capability: str) -> None:
    (condition,) = conditions("(mike) within (mike.A)").values()
    without = Situation(has_agent=True, capabilities=frozenset(CAPABILITIES) - {capability})
    assert evaluator_of(condition, service, AGENT).evaluator is Evaluator.AGENT
    assert evaluator_of(condition, service, without).why is Why.AGENT_NOT_CAPABLE
