"""Why a condition is not true, said with names."""

import pytest

from matcher.events import Event
from matcher.selector.binding import bind
from matcher.selector.causes import Names, causes, format_cause
from matcher.selector.parser import parse_selector
from matcher.selector.tree import NamedZone, ZoneSet, ZoneTag
from matcher.selector.truth import truth


class Streets:
    """Zones A and B of SYSTEM are the west and the east; anna is near, bob's place is not known."""

    def resolve(self, ref: NamedZone | ZoneSet | ZoneTag) -> tuple[str, ...]:
        assert isinstance(ref, NamedZone)
        return (ref.local,)

    def covers(self, zone: str, point: tuple[float, float]) -> bool:
        return (point[0] < 0) is (zone == "A")

    def region(self, zone: str) -> None:
        raise AssertionError(zone)

    def other(self, oid: str) -> str:
        return f"o:{oid}"

    def others(self) -> tuple[str, ...]:
        return ("o:anna", "o:bob")

    def is_near(self, others: tuple[str, ...], metres: float) -> bool | None:
        return True if "o:anna" in others and metres > 100 else None if "o:bob" in others else False


NAMES = Names("mike", lambda zone: NamedZone("SYSTEM", zone), lambda other: other.removeprefix("o:"))


@pytest.mark.parametrize(
    ("selector", "value", "why"),
    [
        ("(mike) within (SYSTEM.B)", False, ["(mike) within (SYSTEM.B)"]),
        ("(mike) within (SYSTEM.A) AND speed > 5", False, ["speed > 5"]),
        ("(mike) within (SYSTEM.A) AND load > 5", None, ["load > 5"]),
        ("(mike) within (SYSTEM.A) AND load > 5 AND plate LIKE 'B%'", None, ["load > 5", "plate LIKE 'B%'"]),
        ("(mike) within (SYSTEM.A) AND load > 5 AND speed > 5", False, ["speed > 5"]),
        ("(mike) within (SYSTEM.A) AND (speed > 5 OR speed = 1)", False, ["speed > 5", "speed = 1"]),
        ("(mike) within (SYSTEM.A) AND (speed > 5 OR load = 1)", None, ["load = 1"]),
        ("(mike) within (SYSTEM.A) AND NOT speed = 3", False, ["NOT speed = 3"]),
        ("(mike) within (SYSTEM.A) AND NOT (speed = 3 AND load = 1)", None, ["NOT load = 1"]),
        ("(mike) within (SYSTEM.A) AND NOT (NOT speed = 4)", False, ["speed = 4"]),
        ("(mike) within (SYSTEM.A) AND NOT (mike) within (SYSTEM.A)", False, ["NOT (mike) within (SYSTEM.A)"]),
        ("(mike) within (SYSTEM.A) AND area overlaps (SYSTEM.A)", None, ["area overlaps (SYSTEM.A)"]),
        ("(mike) within (SYSTEM.A) AND (mike) inside (SYSTEM.B)", None, ["(mike) inside (SYSTEM.B)"]),
        ("(mike) distance (50, anna)", False, ["(mike) distance (50.0, anna)"]),
        ("(mike) distance (500, bob)", None, ["(mike) distance (500.0, bob)"]),
        ("(mike) within (SYSTEM.A) AND oid = 'anna'", False, ["FALSE"]),
        ("speed > 5 OR speed < 2", False, ["speed > 5", "speed < 2"]),
    ],
)
def test_what_makes_a_condition_not_true_is_named(selector: str, value: bool | None, why: list[str]) -> None:
    streets = Streets()
    event = Event(ts=0, oid="mike", loc=(-1.0, 0.0), pairs={"speed": 3})
    (bound,) = bind(parse_selector(selector), "mike", streets, streets)
    assert truth(bound.condition, event, streets) is value
    assert [format_cause(cause, NAMES) for cause in causes(bound.condition, event, streets)] == why
