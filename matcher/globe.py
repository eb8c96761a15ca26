"""The relation of two regions on the globe, where lon 180 and lon -180 are the same line and no boundary.

Shapes are stored split at that line, so on the plane two halves of one storm have a boundary there that it does not
have, and what touches across the line does not touch. Only regions that reach the line are concerned: the plane is
cut open for them at a meridian that neither of the two reaches, and the pieces are put together.

Moving a longitude by 360 is exact beyond 128 degrees; else it may round in the 14th place. Two regions that leave no
meridian free (one goes around the globe, or around a pole) are related on the plane as it is.
"""

import shapely

from matcher.planar import PlanarRegion, from_geometry
from matcher.relations import relate
from matcher.selector.tree import Relation

__all__ = ["is_within_the_plane", "relate_on_globe"]


def is_within_the_plane(region: PlanarRegion) -> bool:
    """Whether it keeps away from where longitude begins again."""
    return region.box[0] > -180 and region.box[2] < 180


def relate_on_globe(a: PlanarRegion, b: PlanarRegion) -> Relation:
    """The one of the eight relations that a has to b."""
    if is_within_the_plane(a) and is_within_the_plane(b):
        return relate(a, b)
    cut = _free_meridian(a, b)
    return relate(a, b) if cut is None else relate(_opened(a, cut), _opened(b, cut))


def _free_meridian(a: PlanarRegion, b: PlanarRegion) -> float | None:
    """The middle of the widest gap between the longitudes of all rings; there is none across the line itself."""
    reached = -180.0
    cut, widest = None, 0.0
    for west, east in sorted((min(ring)[0], max(ring)[0]) for ring in (*a.rings, *b.rings)):
        if west - reached > widest:
            cut, widest = (reached + west) / 2, west - reached
        reached = max(reached, east)
    return (reached + 180) / 2 if 180 - reached > widest else cut


def _opened(region: PlanarRegion, cut: float) -> PlanarRegion:
    """The region on a plane that begins at that meridian."""
    rings = [[(x + 360 if x < cut else x, y) for x, y in ring] for ring in region.rings]
    outer = [shapely.Polygon(ring) for ring in rings]
    # Interiors are on the left: holes run clockwise.
    holes = [polygon for polygon in outer if not polygon.exterior.is_ccw]
    parts = [polygon for polygon in outer if polygon.exterior.is_ccw]
    whole = shapely.union_all(parts)
    for hole in holes:
        whole = whole.difference(hole)
    return from_geometry(whole)
