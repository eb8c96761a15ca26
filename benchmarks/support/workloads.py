"""The publication's workloads: constraints of random relations, one to a predicate or two to a filter of a few."""

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from matcher.box_relations import POSSIBLE, POSSIBLE_IF_SIMPLE, box_relation
from matcher.constraints import Constraint, Filter, Predicate, RegionTest
from matcher.engines.packed import PackedTree
from matcher.engines.pairs import NAMES
from matcher.engines.regions import EdgeRegion, EdgeRegions
from matcher.planar import Box, PlanarRegion, from_parts
from matcher.selector.tree import Relation

__all__ = ["ATTRIBUTE", "DATA", "DATA_SETS", "DataSet", "Workload", "box_around", "load_regions", "packed_tree"]

ATTRIBUTE = "area"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Real regions are too large for the repository and stand beside it on some machines."""


@dataclass(frozen=True)
class DataSet:
    title: str
    file: str
    published: str  # what the publication had instead
    published_size: int


DATA_SETS = {
    "output_areas": DataSet(
        "Census output areas, south-east England",
        "zones_oa_london_se.geojson.gz",
        "Vegetation in southern California",
        85_550,
    ),
    "communes": DataSet(
        "Communes around Lyon", "zones_communes_rhone.geojson.gz", "Natural features in Rhône-Alpes", 17_048
    ),
    "buildings": DataSet(
        "Buildings north of Bayreuth", "zones_buildings_bayreuth.geojson.gz", "Buildings in central London", 4_170
    ),
}


class Workload:
    """Regions with a relation each, drawn at random; and constraints, filters and predicates of them."""

    def __init__(self, regions: Sequence[PlanarRegion], rng: Random) -> None:
        self.regions = list(regions)
        rng.shuffle(self.regions)  # neighbours in a file are neighbours on the ground, and no two of a filter shall be
        every = list(Relation)
        self.relations = [rng.choice(every) for _ in self.regions]
        self.constraints = [
            Constraint(ATTRIBUTE, RegionTest(relation, region))
            for relation, region in zip(self.relations, self.regions, strict=True)
        ]
        self.boxes = np.array([region.box for region in self.regions])
        self.places = {id(constraint.test): place for place, constraint in enumerate(self.constraints)}

    def __len__(self) -> int:
        return len(self.regions)

    def one_each(self, count: int | None = None) -> list[Predicate]:
        """Scenario 1: each of the first so many constraints is a predicate."""
        return [((constraint,),) for constraint in self.constraints[:count]]

    def shared_out(self, predicates: int, count: int | None = None) -> list[Predicate]:
        """Scenario 2: filters of two of the first so many constraints, shared out among so many predicates."""
        constraints = self.constraints[:count]
        filters: list[Filter] = [(one, other) for one, other in zip(constraints[::2], constraints[1::2], strict=False)]
        return [tuple(filters[number::predicates]) for number in range(predicates)]

    def candidates(self, message: PlanarRegion) -> np.ndarray:
        """Which constraints the boxes leave to be evaluated: boxes that lie apart decide all, others exclude some."""
        west, south, east, north = message.box
        boxes = self.boxes
        found: np.ndarray = (
            (boxes[:, 0] <= east) & (boxes[:, 2] >= west) & (boxes[:, 1] <= north) & (boxes[:, 3] >= south)
        )
        for place in np.flatnonzero(found).tolist():
            region = self.regions[place]
            table = POSSIBLE_IF_SIMPLE if message.is_simple and region.is_simple else POSSIBLE
            found[place] = box_relation(message.box, region.box) in table[self.relations[place]]
        return found


def packed_tree(regions: Sequence[PlanarRegion], relations: Sequence[Relation]) -> PackedTree:
    """Our index of these constraints; its ids are their places."""
    codes = np.array([NAMES.index(relation) for relation in relations], np.int8)
    return PackedTree(range(len(regions)), codes, EdgeRegions.of([EdgeRegion.of(region) for region in regions]))


@cache
def load_regions(folder: Path, name: str) -> list[PlanarRegion]:
    """All regions of one of `DATA_SETS`, in the order of its file."""
    with gzip.open(folder / DATA_SETS[name].file, "rt", encoding="utf-8") as file:
        features = json.load(file)["features"]
    regions = []
    for feature in features:
        geometry = feature["geometry"]
        coordinates = geometry["coordinates"]
        regions.append(from_parts([coordinates] if geometry["type"] == "Polygon" else coordinates))
    return regions


def box_around(regions: Sequence[PlanarRegion]) -> Box:
    """The universe of real regions."""
    boxes = np.array([region.box for region in regions])
    west, south = boxes[:, :2].min(axis=0).tolist()
    east, north = boxes[:, 2:].max(axis=0).tolist()
    return west, south, east, north
