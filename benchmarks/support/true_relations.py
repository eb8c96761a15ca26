"""What answers are held to: GEOS, and where ours differs from it, exact arithmetic.

GEOS decides a million pairs in seconds and is nearly always right; `matcher.relations` is exact and plain, and takes a
hundred times as long. So GEOS is asked about every pair, and each constraint of which it says something else than the
design under test is settled by exact arithmetic. It is the design's error unless that agrees with it.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import shapely

from benchmarks.support.evaluators import RELATIONS
from matcher.constraints import Predicate
from matcher.engines.pairs import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS
from matcher.planar import PlanarRegion
from matcher.relations import relate
from matcher.selector.tree import Relation

__all__ = ["AnswerWrong", "TrueRelations", "code_of_matrix", "codes_of", "geometry_of", "matched_predicates"]


class AnswerWrong(Exception):
    """A design that claims to be exact was not; there are no figures then."""


class TrueRelations:
    """The relations of messages to these constraints, as codes of `matcher.engines.pairs`."""

    def __init__(self, regions: Sequence[PlanarRegion], relations: Sequence[Relation]) -> None:
        self._regions = regions
        self.geometries = np.array([geometry_of(region) for region in regions], dtype=object)
        self.wanted = np.array([RELATIONS.index(relation) for relation in relations], np.int8)
        self._boxes = np.array([region.box for region in regions])
        self.settled = 0  # how often GEOS was wrong

    def codes(self, message: PlanarRegion) -> np.ndarray:
        """By GEOS, and where boxes lie apart by them."""
        west, south, east, north = message.box
        boxes = self._boxes
        near = np.flatnonzero(
            (boxes[:, 0] <= east) & (boxes[:, 2] >= west) & (boxes[:, 1] <= north) & (boxes[:, 3] >= south)
        )
        found = np.full(len(boxes), DISJOINT, np.int8)
        geometry = geometry_of(message)
        shapely.prepare(geometry)
        found[near] = codes_of(shapely.relate(geometry, self.geometries[near]))
        return found

    def check(self, message: PlanarRegion, codes: np.ndarray, found: Iterable[int]) -> None:
        """Whether these and no others hold; where GEOS was wrong `codes` are put right."""
        answer = set(found)
        for place in answer.symmetric_difference(np.flatnonzero(codes == self.wanted).tolist()):
            truth = relate(message, self._regions[place])
            if (RELATIONS[self.wanted[place]] == truth) != (place in answer):
                raise AnswerWrong(f"Constraint {place}, {RELATIONS[self.wanted[place]]}: the regions are {truth}.")
            codes[place] = RELATIONS.index(truth)
            self.settled += 1


def matched_predicates(predicates: Sequence[Predicate], places: dict[int, int], holds: np.ndarray) -> set[int]:
    """Which predicates match if these constraints hold; `places` has those of constraints by the ids of their tests."""
    return {
        number
        for number, predicate in enumerate(predicates)
        if any(all(holds[places[id(constraint.test)]] for constraint in each) for each in predicate)
    }


def geometry_of(region: PlanarRegion) -> shapely.Geometry:
    """For shapely: a ring that runs clockwise is a hole of the part before it."""
    parts: list[list[Sequence[tuple[float, float]]]] = []
    for ring in region.rings:
        if shapely.LinearRing(ring).is_ccw:
            parts.append([ring])
        else:
            parts[-1].append(ring)
    polygons = [shapely.Polygon(shell, holes) for shell, *holes in parts]
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)


def codes_of(matrices: np.ndarray) -> np.ndarray:
    known = {matrix: code_of_matrix(matrix) for matrix in set(matrices.tolist())}
    return np.array([known[matrix] for matrix in matrices.tolist()], np.int8)


def code_of_matrix(matrix: str) -> int:
    """The relation of two regions from their DE-9IM matrix: rows and columns are interior, boundary, exterior."""
    touches = matrix[4] != "F"
    if matrix[0] == "F":
        return MEETS if touches else DISJOINT
    a_in_b, b_in_a = matrix[2] == "F", matrix[6] == "F"
    if a_in_b and b_in_a:
        return EQUALS
    if a_in_b:
        return COVERED_BY if touches else INSIDE
    if b_in_a:
        return COVERS if touches else CONTAINS
    return OVERLAPS
