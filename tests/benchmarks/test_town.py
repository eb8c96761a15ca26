"""The traffic of the benchmarks: the same for everybody who knows the seed, and spread evenly."""

from collections import Counter

from benchmarks.support.town import Timetable, fixes_of, reference_edges
from matcher.once import Mode

_TIMETABLE = Timetable(vans=40, fixes=30, per_second=20.0, seed=7)


def test_a_van_drives_the_same_way_in_whichever_process() -> None:
    together = fixes_of(_TIMETABLE, range(40))
    apart = [*fixes_of(_TIMETABLE, range(13)), *fixes_of(_TIMETABLE, range(13, 40))]
    assert Counter(together) == Counter(apart)
    assert together == sorted(together, key=lambda fix: fix.due_ms)


def test_fixes_come_evenly_and_a_van_never_has_two_at_once() -> None:
    fixes = fixes_of(_TIMETABLE, range(40))
    assert [fix.due_ms for fix in fixes] == [round(number * 50) for number in range(_TIMETABLE.total)]
    assert len({(fix.van, fix.due_ms) for fix in fixes}) == _TIMETABLE.total


def test_edges_of_the_reference_alternate() -> None:
    edges = sorted(reference_edges(_TIMETABLE), key=lambda edge: edge.due_ms)
    assert len(edges) > 20
    assert set(reference_edges(_TIMETABLE).values()) == {1}
    last: dict[tuple[int, str], Mode] = {}
    for edge in edges:
        expected = Mode.LEAVE if last.get((edge.van, edge.target)) is Mode.ENTER else Mode.ENTER
        assert edge.mode is expected
        last[edge.van, edge.target] = edge.mode
