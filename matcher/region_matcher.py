"""Which of many constraints on regions a message's region satisfies, by any of three indexes and two evaluators.

    matcher = RegionMatcher(constraints_from_geojson(plants))
    for message in messages_from_geojson(storms):
        print(message.id, matcher.match(message.region))

This is the engine for regions alone, for files and for comparisons; `matcher.Engine` has filters with other attributes,
and constraints that come and go. The indexes:

- `tree`: the packed tree, compiled. With an approximate evaluator it finds the candidates by boxes.
- `crtree`: the constraint R-tree as published, in plain Python.
- `linear`: no index. Every constraint is evaluated, in plain Python; this is what the others are held to.

Exact evaluation gives the same answers with all three. Boxes are exact, so with an approximate evaluator `tree` and
`crtree` still agree with each other, and where they differ from `linear` they are right.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import chain

import msgspec
import numpy as np

from matcher.approximate import Density, RegionNotSimple, Sampled, relate_sampled
from matcher.constraints import Evaluate
from matcher.crtree import CrTree
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.linear import Linear
from matcher.planar import Box, PlanarRegion
from matcher.region_features import FeatureId, RegionConstraint, RegionMessage, title_of
from matcher.relations import relate
from matcher.selector.tree import Relation

__all__ = ["MAX_KEPT_POINTS", "Approximate", "Index", "RegionMatcher", "Step", "box_around", "require_simple"]

MAX_KEPT_POINTS = 10_000_000  # of all boundaries together; with what belongs to each point, 240 MB

_CODES = {name: code for code, name in enumerate(NAMES)}
_Search = Callable[[PlanarRegion], Iterable[int]]

Step = Callable[[int], None]
"""Is told how many constraints have been prepared, for whoever shows progress."""


class Index(StrEnum):
    TREE = "tree"
    CRTREE = "crtree"
    LINEAR = "linear"


class Approximate(msgspec.Struct, frozen=True):
    """Algorithm 1 instead of exact evaluation (`matcher.approximate`)."""

    density: Density
    halo: bool = True


class RegionMatcher:
    """Constraints that don't change, each with an id of its own."""

    def __init__(
        self,
        constraints: Sequence[RegionConstraint],
        index: Index = Index.TREE,
        approximate: Approximate | None = None,
        step: Step = lambda _: None,
    ) -> None:
        self._ids = [constraint.id for constraint in constraints]
        sampled = None
        if approximate is not None:
            require_simple(constraints)
            sampled = _SampledEvaluator(approximate)
        evaluate: Evaluate = relate if sampled is None else sampled
        plain: CrTree[int] | Linear[int] | None = None
        if index is not Index.TREE:
            plain = CrTree(evaluate) if index is Index.CRTREE else Linear(evaluate)
        for place, constraint in enumerate(constraints):
            if sampled is not None:
                sampled.keep(constraint.region)
            if plain is not None:
                plain.insert(place, constraint.relation, constraint.region)
            step(place)
        self._search: _Search = _tree_search(constraints, sampled) if plain is None else plain.search

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, region: PlanarRegion) -> Iterable[int]:
        """The places of the constraints that hold, in no order: what `match` does, without naming them."""
        return self._search(region)

    def match(self, region: PlanarRegion) -> list[FeatureId]:
        """The ids of the constraints that hold for a message's region, in the order of the constraints."""
        return self.ids(self.search(region))

    def ids(self, places: Iterable[int]) -> list[FeatureId]:
        """The names of what `search` has found."""
        numbers = places.tolist() if isinstance(places, np.ndarray) else places
        return [self._ids[place] for place in sorted(numbers)]


def box_around(*groups: Iterable[RegionConstraint | RegionMessage]) -> Box | None:
    """The universe of a file or several: the box around all regions; None if there are none."""
    boxes = [each.region.box for group in groups for each in group]
    if not boxes:
        return None
    west, south, east, north = zip(*boxes, strict=True)
    return min(west), min(south), max(east), max(north)


def require_simple(features: Iterable[RegionConstraint | RegionMessage]) -> None:
    """Refuse what an approximate evaluator can't be asked about, by its name."""
    for index, feature in enumerate(features):
        if not feature.region.is_simple:
            raise RegionNotSimple(
                f"{title_of(index, feature.id)}: It has {len(feature.region.rings)} rings, and the approximate "
                "evaluator takes regions of one only.",
                hint="Use the exact evaluator for regions with holes or several parts.",
                feature=index,
            )


def _tree_search(constraints: Sequence[RegionConstraint], sampled: "_SampledEvaluator | None") -> _Search:
    regions = [constraint.region for constraint in constraints]
    relations = [constraint.relation for constraint in constraints]
    codes = np.fromiter((_CODES[relation] for relation in relations), np.int8, len(relations))
    tree = PackedTree(np.arange(len(regions)), codes, _edge_regions(regions))
    if sampled is None:
        return lambda region: tree.search(EdgeRegion.of(region))

    def search(region: PlanarRegion) -> list[int]:
        certain, possible = tree.candidates(EdgeRegion.of(region))
        found: list[int] = certain.tolist()
        found += (place for place in possible.tolist() if sampled(region, regions[place]) == relations[place])
        return found

    return search


def _edge_regions(regions: Sequence[PlanarRegion]) -> EdgeRegions:
    """`EdgeRegions.of` all at once: eleven times as fast for a hundred thousand small regions."""
    rings = [ring for region in regions for ring in region.rings]
    edge_ends = np.cumsum(np.fromiter(map(len, rings), np.int64, len(rings)))
    starts = np.concatenate(([0], edge_ends))
    points = np.fromiter(chain.from_iterable(chain.from_iterable(rings)), np.float64, 2 * starts[-1]).reshape(-1, 2)
    edges = np.empty((len(points), 4))
    edges[:, :2] = points
    edges[:-1, 2:] = points[1:]
    edges[edge_ends - 1, 2:] = points[starts[:-1]]
    ring_counts = np.fromiter((len(region.rings) for region in regions), np.int64, len(regions))
    first_rings = np.concatenate(([0], np.cumsum(ring_counts)))
    # Each region lists the starts of its rings and its end, which is the start of the next region: one entry more.
    owner = np.repeat(np.arange(len(regions)), ring_counts + 1)
    return EdgeRegions(
        edges,
        starts[first_rings],
        starts[np.arange(len(owner)) - owner] - starts[first_rings[owner]],
        first_rings + np.arange(len(first_rings)),
        np.array([region.box for region in regions]).reshape(-1, 4),
    )


class _SampledEvaluator:
    """Algorithm 1 between regions, whose points are laid once: of the constraints in advance, as many as fit in memory,
    and of a message when it comes."""

    def __init__(self, approximate: Approximate) -> None:
        self._density, self._halo = approximate.density, approximate.halo
        self._kept: dict[int, Sampled] = {}  # by identity: to compare regions would take longer than to relate them
        self._room = MAX_KEPT_POINTS
        self._last: tuple[PlanarRegion, Sampled] | None = None

    def keep(self, region: PlanarRegion) -> None:
        """The caller keeps the region as long as it keeps this."""
        if self._room > 0:
            sampled = self._kept[id(region)] = Sampled(region, self._density)
            self._room -= sampled.count

    def __call__(self, message: PlanarRegion, constraint: PlanarRegion) -> Relation:
        if self._last is None or self._last[0] is not message:
            self._last = (message, Sampled(message, self._density))
        kept = self._kept.get(id(constraint)) or Sampled(constraint, self._density)
        return relate_sampled(self._last[1], kept, self._halo)
