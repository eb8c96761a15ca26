"""Constraints on regions without an index: each is evaluated for each message.

This is what an index is held to, and what the publication compares its own with.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from matcher.constraints import Evaluate, RegionTest
from matcher.planar import PlanarRegion
from matcher.relations import relate
from matcher.selector.tree import Relation

__all__ = ["Linear"]

K = TypeVar("K", bound=Hashable)


class Linear(Generic[K]):
    """The interface of `matcher.crtree.CrTree`; nothing is decided by boxes."""

    def __init__(self, evaluate: Evaluate = relate) -> None:
        self._evaluate = evaluate
        self._tests: dict[K, RegionTest] = {}

    def __len__(self) -> int:
        return len(self._tests)

    def insert(self, id: K, relation: Relation, region: PlanarRegion) -> None:
        """Keep a constraint; one that had the id goes."""
        self._tests[id] = RegionTest(relation, region)

    def remove(self, id: K) -> None:
        """Forget a constraint; KeyError if there is none of that id."""
        del self._tests[id]

    def search(self, region: PlanarRegion) -> set[K]:
        """The ids of the constraints that hold for this region."""
        return {id for id, test in self._tests.items() if self._evaluate(region, test.region) == test.relation}
