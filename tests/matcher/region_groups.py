"""Groups of regions of one small neighbourhood: of each group all ordered pairs are tried, which makes millions cheap.

Within a group regions share what makes pairs hard: the points of one lattice, the edges of one triangulation, one
rotation in floating point, or the same few lines. A region may be there twice.
"""

import math
from collections.abc import Callable
from random import Random

import shapely

from matcher.planar import PlanarRegion, from_geometry, from_rings
from tests.matcher.exact_pairs import KINDS, is_surely_valid, moved
from zones.shapes import Point

__all__ = ["GROUP_KINDS", "has_hole", "part_count"]


def _of_pairs(kind: str) -> Callable[[Random, int], list[PlanarRegion]]:
    """Pairs of this kind all lie around one place."""

    def draw(rng: Random, size: int) -> list[PlanarRegion]:
        regions: list[PlanarRegion] = []
        while len(regions) < size:
            regions += KINDS[kind](rng)
        return regions[:size]

    return draw


def _turned(rng: Random, size: int) -> list[PlanarRegion]:
    """A lattice turned, stretched and moved in floating point: shared points stay shared, collinear ones almost."""
    angle, scale = rng.uniform(0, 7), 10.0 ** rng.uniform(-6, 6)
    dx, dy = (rng.choice((0.0, 1.0, 1e3, 1e-3)) * scale * rng.uniform(-1, 1) for _ in range(2))
    cos, sin = math.cos(angle) * scale, math.sin(angle) * scale

    def turn(x: float, y: float) -> Point:
        return cos * x - sin * y + dx, sin * x + cos * y + dy

    regions: list[PlanarRegion] = []
    while len(regions) < size:
        drawn = [moved(region, turn) for region in KINDS[rng.choice(("lattice", "related"))](rng)]
        regions += [region for region in drawn if is_surely_valid(region)]
    return regions[:size]


def _tiles(rng: Random, size: int) -> list[PlanarRegion]:
    """Neighbouring triangles of random points, and unions of them: what real borders are like."""
    points = shapely.MultiPoint([(rng.random(), rng.random()) for _ in range(rng.randrange(12, 30))])
    tiles = [tile for tile in shapely.delaunay_triangles(points).geoms if is_surely_valid(from_geometry(tile))]
    regions: list[PlanarRegion] = []
    while len(regions) < size:
        x, y, reach = rng.random(), rng.random(), rng.uniform(0, 0.5)
        near = [tile for tile in tiles if tile.distance(shapely.Point(x, y)) <= reach and rng.random() < 0.8]
        if near:
            region = from_geometry(shapely.coverage_union_all(near))
            if is_surely_valid(region):
                regions.append(region)
    return regions


def _comb(rng: Random, size: int) -> list[PlanarRegion]:
    """Boxes and trapezoids whose sides lie on a few lines: long collinear stretches that overlap in part."""
    at = sorted({round(rng.uniform(0, 10), 1) for _ in range(9)})
    regions: list[PlanarRegion] = []
    while len(regions) < size:
        (x0, x1), (y0, y1) = sorted(rng.sample(at, 2)), sorted(rng.sample(at, 2))
        left, right = sorted(rng.choice(at) for _ in range(2))
        ring = (
            [(x0, y0), (x1, y0), (right, y1), (left, y1)]
            if rng.randrange(2)
            else [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        )
        if shapely.Polygon(ring).is_valid:
            regions.append(from_rings([ring]))
    return regions


GROUP_KINDS: dict[str, Callable[[Random, int], list[PlanarRegion]]] = {
    "general": _of_pairs("general"),
    "lattice": _of_pairs("lattice"),
    "related": _of_pairs("related"),
    "nudged": _of_pairs("nudged"),
    "sliver": _of_pairs("sliver"),
    "turned": _turned,
    "tiles": _tiles,
    "comb": _comb,
}


def part_count(region: PlanarRegion) -> int:
    """How many rings are outer ones."""
    return sum(bool(shapely.is_ccw(shapely.LinearRing(ring))) for ring in region.rings)


def has_hole(region: PlanarRegion) -> bool:
    return part_count(region) < len(region.rings)
