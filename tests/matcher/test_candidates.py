"""What the packed tree leaves to another evaluator is what the boxes leave."""

from random import Random

import numpy as np
import pytest

from matcher.box_relations import POSSIBLE, POSSIBLE_IF_SIMPLE, box_relation
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.linear import Linear
from matcher.planar import PlanarRegion, from_parts
from matcher.relations import relate
from matcher.selector.tree import Relation
from tests.matcher.exact_pairs import draw_pair


def in_a_corner(rng: Random) -> PlanarRegion:
    """On a grid so small that boxes touch, coincide and share sides all the time; sometimes of two parts."""

    def box():
        (west, east), (south, north) = (sorted(rng.sample(range(4), 2)) for _ in range(2))
        return west, south, east, north

    west, south, east, north = box()
    parts = [[[(west, south), (east, south), (east, north), (west, north)]]]
    if rng.randrange(4) == 0:  # at opposite corners of a larger box
        parts.append([[(x + 4, y + 4) for x, y in parts[0][0]]])
    return from_parts(parts)


@pytest.mark.parametrize("seed", range(4))
def test_candidates_are_what_the_table_of_boxes_says(seed: int):
    rng = Random(seed)
    for size in (0, 1, 8, 9, 70, 400):
        regions = [in_a_corner(rng) if seed % 2 else rng.choice(draw_pair(rng)[:2]) for _ in range(size)]
        relations = [rng.choice(tuple(Relation)) for _ in regions]
        ids = rng.sample(range(10 * size), size)
        codes = np.array([NAMES.index(relation) for relation in relations], np.int8)
        tree = PackedTree(ids, codes, EdgeRegions.of([EdgeRegion.of(region) for region in regions]))
        linear: Linear[int] = Linear()
        for id, relation, region in zip(ids, relations, regions, strict=True):
            linear.insert(id, relation, region)
        for _ in range(20):
            query = rng.choice(regions) if regions and rng.randrange(2) else in_a_corner(rng)
            certain, possible = set(), set()
            for id, relation, region in zip(ids, relations, regions, strict=True):
                boxes = box_relation(query.box, region.box)
                table = POSSIBLE_IF_SIMPLE if query.is_simple and region.is_simple else POSSIBLE
                if boxes == Relation.DISJOINT:
                    if relation == Relation.DISJOINT:
                        certain.add(id)
                elif boxes in table[relation]:
                    possible.add(id)
            found = tree.candidates(EdgeRegion.of(query))
            assert [sorted(each.tolist()) for each in found] == [sorted(certain), sorted(possible)]
            holding = {id for id in possible if relate(query, regions[ids.index(id)]) == relations[ids.index(id)]}
            assert certain | holding == linear.search(query)
