"""Real regions as shapely has them, and messages drawn from their own borders."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

__all__ = ["contact_regions", "load_geometries"]

_MOST_TOGETHER = 400


def load_geometries(path: Path) -> NDArray[Any]:
    """The geometries of a gzipped GeoJSON FeatureCollection, in the order of the file."""
    features = json.loads(gzip.decompress(path.read_bytes()))["features"]
    return np.array([shapely.geometry.shape(feature["geometry"]) for feature in features], dtype=object)


def contact_regions(rng: Random, geometries: NDArray[Any]) -> Iterator[Any]:
    """Regions that share edges and corners with many of these, without end.

    By turns: the union of up to 400 neighbours, whose border is made of theirs; the same with its holes filled and
    every second corner taken away, which has corners in common and crosses many; one of the regions itself. All are
    single polygons.
    """
    tree = shapely.STRtree(geometries)
    while True:
        yield _neighbours(rng, geometries, tree)
        yield _thinned(_neighbours(rng, geometries, tree))
        yield _one(rng, geometries)


def _neighbours(rng: Random, geometries: NDArray[Any], tree: Any) -> Any:
    """The union of regions around one of them, in one piece."""
    most = min(_MOST_TOGETHER, len(geometries) // 4)
    while True:
        count = round(10 ** rng.uniform(0.5, np.log10(most)))
        middle = geometries[rng.randrange(len(geometries))].representative_point()
        reach = 0.001
        near = tree.query(middle.buffer(reach))
        while len(near) < count:
            reach *= 1.5
            near = tree.query(middle.buffer(reach))
        nearest = near[np.argsort(shapely.distance(geometries[near], middle))[:count]]
        union = shapely.union_all(geometries[nearest])
        if union.geom_type == "Polygon" and union.is_valid:
            return union


def _one(rng: Random, geometries: NDArray[Any]) -> Any:
    while True:
        one = geometries[rng.randrange(len(geometries))]
        if one.geom_type == "Polygon":
            return one


def _thinned(polygon: Any) -> Any:
    """Without holes, and with every second corner only, where that leaves a polygon."""
    ring = polygon.exterior.coords[:-1]
    thinned = shapely.Polygon(ring[::2]) if len(ring) >= 6 else polygon
    return thinned if thinned.is_valid and thinned.area > 0 else shapely.Polygon(ring)
