"""Evaluators of relations as `CrTree` and `simplify` take them, in compiled code.

What depends on one region only is prepared once and kept for as long as the region is: a constraint meets many
messages. Of messages the last one is kept.
"""

from typing import Generic, TypeVar

from benchmarks.support.algorithm1 import Walk, length_of, relate_walks, walk_of
from matcher.approximate import Density
from matcher.engines.pairs import NAMES, relate_edges
from matcher.engines.regions import EdgeRegion
from matcher.planar import PlanarRegion
from matcher.selector.tree import Relation

__all__ = ["RELATIONS", "Algorithm1", "Exact"]

RELATIONS = tuple(Relation(name) for name in NAMES)

P = TypeVar("P")


class _Prepared(Generic[P]):
    """By identity, which is good as long as the region is kept beside what was made of it."""

    def __init__(self) -> None:
        self._constraints: dict[int, tuple[PlanarRegion, P]] = {}
        self._message: tuple[PlanarRegion, P] | None = None

    def _made(self, region: PlanarRegion) -> P:
        raise NotImplementedError

    def keep(self, region: PlanarRegion) -> None:
        """Prepare the region of a constraint."""
        self._constraints[id(region)] = (region, self._made(region))

    def of(self, region: PlanarRegion) -> P:
        known = self._constraints.get(id(region))
        if known is not None:
            return known[1]
        if self._message is None or self._message[0] is not region:
            self._message = (region, self._made(region))
        return self._message[1]


class Exact(_Prepared[EdgeRegion]):
    """The exact relation: `matcher.relations.relate`, faster."""

    def _made(self, region: PlanarRegion) -> EdgeRegion:
        return EdgeRegion.of(region)

    def __call__(self, a: PlanarRegion, b: PlanarRegion) -> Relation:
        one, other = self.of(a), self.of(b)
        code: int = relate_edges(one.edges, one.rings, one.box, other.edges, other.rings, other.box)
        return RELATIONS[code]


class Algorithm1(_Prepared[tuple[Walk, float] | None]):
    """Algorithm 1 with its density; regions that it can't decide, those with holes and parts, exactly."""

    def __init__(self, density: Density, halo: bool) -> None:
        super().__init__()
        self.density, self.halo = density, halo
        self.exact = Exact()

    def keep(self, region: PlanarRegion) -> None:
        super().keep(region)
        if not region.is_simple:
            self.exact.keep(region)

    def _made(self, region: PlanarRegion) -> tuple[Walk, float] | None:
        walk = walk_of(region, self.density)
        return None if walk is None else (walk, length_of(walk))

    def __call__(self, a: PlanarRegion, b: PlanarRegion) -> Relation:
        one, other = self.of(a), self.of(b)
        if one is None or other is None:
            return self.exact(a, b)
        return RELATIONS[relate_walks(*one, *other, self.halo)]
