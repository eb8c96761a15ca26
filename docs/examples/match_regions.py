"""Which plants a storm touches: regions of messages matched against constraints, without a server.

    python match_regions.py PLANTS.geojson STORMS.geojson

Both are FeatureCollections of Polygons and MultiPolygons. A plant says in its property `relation` when it wants to hear
of a storm: disjoint, meets, overlaps, equals, inside, contains, covers or covered-by, read "storm RELATION plant".
"""

import sys
from pathlib import Path

from matcher.region_features import constraints_from_geojson, messages_from_geojson
from matcher.region_matcher import RegionMatcher


def main(plants: str, storms: str) -> None:
    matcher = RegionMatcher(constraints_from_geojson(Path(plants).read_bytes()))
    for storm in messages_from_geojson(Path(storms).read_bytes()):
        print(storm.id, *matcher.match(storm.region))


if __name__ == "__main__":
    main(*sys.argv[1:])
