"""The publication's forwarding table: counting behind a CR-tree, with its early stop.

A filter matches when as many of its constraints were found as it has, and a predicate when one of its filters does.
Constraints of a predicate that has matched are passed over, and when all have matched the search ends. The table counts
as Siena Fast Forwarding does, in plain Python.
"""

from collections.abc import Sequence

from benchmarks.support.evaluators import Algorithm1, Exact
from matcher.constraints import Predicate, RegionTest
from matcher.crtree import CrTree
from matcher.planar import PlanarRegion

__all__ = ["PublishedTable"]


class PublishedTable:
    """Predicates of constraints on one attribute, known by their places."""

    def __init__(
        self, predicates: Sequence[Predicate], evaluate: Algorithm1 | Exact, *, early_stop: bool = True
    ) -> None:
        self._early_stop = early_stop
        self._tree: CrTree[int] = CrTree(evaluate)
        self._size = len(predicates)
        self._filters: list[int] = []  # of each constraint
        self._predicates: list[int] = []  # of each constraint
        self._needed: list[int] = []  # how many constraints a filter has
        for number, predicate in enumerate(predicates):
            for constraints in predicate:
                for constraint in constraints:
                    assert isinstance(constraint.test, RegionTest)
                    self._tree.insert(len(self._filters), constraint.test.relation, constraint.test.region)
                    self._filters.append(len(self._needed))
                    self._predicates.append(number)
                self._needed.append(len(constraints))

    def match(self, region: PlanarRegion) -> set[int]:
        """The places of the predicates that match."""
        matched: set[int] = set()
        missing = self._needed.copy()
        filters, predicates = self._filters, self._predicates
        wanted = (lambda constraint: predicates[constraint] not in matched) if self._early_stop else None
        for constraint in self._tree.find(region, wanted):
            number = filters[constraint]
            missing[number] -= 1
            if not missing[number]:
                matched.add(predicates[constraint])
                if self._early_stop and len(matched) == self._size:
                    break
        return matched
