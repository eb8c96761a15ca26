"""Which stretches of a straight way lie in a zone: what happened between two fixes, as far as one can tell.

The way is straight in lon and lat, as edges are, and takes the short side across the antimeridian. A stretch is given
by the shares of the way, from 0 to 1, at which it begins and ends. One shorter than a billionth of the way is a touch
and not a stretch, and two that are no further apart than that are one.
"""

import math
from itertools import pairwise

import numpy as np

from zones.antimeridian import normalise_lon
from zones.boundaries import Boundary
from zones.covers import Area
from zones.geodesy import reduced_lat
from zones.shapes import Circle, Point

__all__ = ["Stretch", "along", "stretches_in"]

Stretch = tuple[float, float]

_TOUCH = 1e-9
_GOLDEN = (math.sqrt(5) - 1) / 2
_STEPS = 48  # of a search that narrows to 0.618 each time: 1e-10
_WIDE_DEG = 15.0  # on shorter ways the distance to a circle's centre has one minimum


def along(start: Point, end: Point, share: float) -> Point:
    """The place at that share of the way."""
    (lon, lat), (d_lon, d_lat) = start, _way(start, end)
    return normalise_lon(lon + share * d_lon), lat + share * d_lat


def stretches_in(boundary: Boundary, start: Point, end: Point) -> tuple[Stretch, ...]:
    """The stretches of the way that the zone covers, in order."""
    d_lon, d_lat = _way(start, end)
    if not _may_meet(boundary.area, start, d_lon, d_lat) or (d_lon == 0 and d_lat == 0):
        return ()
    if isinstance(boundary.shape, Circle):
        found = _in_circle(boundary.shape, boundary.area, start, end)
    else:
        found = _in_edges(boundary, start, end)
    joined: list[Stretch] = []
    for begin, finish in found:
        if joined and begin - joined[-1][1] <= _TOUCH:
            joined[-1] = (joined[-1][0], finish)
        else:
            joined.append((begin, finish))
    return tuple(each for each in joined if each[1] - each[0] > _TOUCH)


def _way(start: Point, end: Point) -> Point:
    d_lon = end[0] - start[0]
    if d_lon > 180:
        d_lon -= 360
    elif d_lon < -180:
        d_lon += 360
    return d_lon, end[1] - start[1]


def _may_meet(area: Area, start: Point, d_lon: float, d_lat: float) -> bool:
    lon, lat = start
    west, east = (lon, lon + d_lon) if d_lon >= 0 else (lon + d_lon, lon)
    low, high = (lat, lat + d_lat) if d_lat >= 0 else (lat + d_lat, lat)
    for box_west, south, box_east, north in area.boxes:
        if high < south or low > north:
            continue
        if any(west <= box_east + turn and east >= box_west + turn for turn in (0.0, 360.0, -360.0)):
            return True
    return False


# --- polygons and rectangles -------------------------------------------------------------------------


def _in_edges(boundary: Boundary, start: Point, end: Point) -> list[Stretch]:
    """Between two places where the way meets the boundary it is all in or all out: the middle tells."""
    (lon, lat), (d_lon, d_lat) = start, _way(start, end)
    edges = boundary.edges
    cuts = {0.0, 1.0}
    for turn in (0.0, 360.0, -360.0):
        if turn and -180 <= lon + d_lon <= 180:
            continue
        from_lon, from_lat = edges[:, 0] + turn - lon, edges[:, 1] - lat
        e_lon, e_lat = edges[:, 2] - edges[:, 0], edges[:, 3] - edges[:, 1]
        turning = d_lon * e_lat - d_lat * e_lon
        is_parallel = turning == 0
        safe = np.where(is_parallel, 1.0, turning)
        share = (from_lon * e_lat - from_lat * e_lon) / safe
        place = (from_lon * d_lat - from_lat * d_lon) / safe
        meets = ~is_parallel & (place >= -_TOUCH) & (place <= 1 + _TOUCH) & (share > 0) & (share < 1)
        cuts.update(share[meets].tolist())
        # The way may run along an edge: then it meets the boundary where the edge begins and ends.
        length = d_lon * d_lon + d_lat * d_lat
        for at_lon, at_lat in ((from_lon, from_lat), (from_lon + e_lon, from_lat + e_lat)):
            share = (at_lon * d_lon + at_lat * d_lat) / length
            cuts.update(share[is_parallel & (share > 0) & (share < 1)].tolist())
    pieces = pairwise(sorted(cuts))
    return [(a, b) for a, b in pieces if boundary.area.covers(along(start, end, (a + b) / 2))]


# --- circles -----------------------------------------------------------------------------------------


def _in_circle(circle: Circle, area: Area, start: Point, end: Point) -> list[Stretch]:
    """Where the way is nearest to the centre it is in the circle, or nowhere near."""
    found = []
    d_lon, _ = _way(start, end)
    pieces = max(1, math.ceil(abs(d_lon) / _WIDE_DEG))
    for number in range(pieces):
        first, last = number / pieces, (number + 1) / pieces
        nearest = _nearest(circle, start, end, first, last)
        if area.covers(along(start, end, nearest)):
            found.append((_edge(area, start, end, nearest, first), _edge(area, start, end, nearest, last)))
    return found


def _nearest(circle: Circle, start: Point, end: Point, low: float, high: float) -> float:
    (lon, lat), (d_lon, d_lat) = start, _way(start, end)
    center_lon, beta = circle.center[0], reduced_lat(circle.center[1])
    cos = math.cos(beta)

    def apart(share: float) -> float:
        other = reduced_lat(lat + share * d_lat)
        half_lat, half_lon = (other - beta) / 2, math.radians(lon + share * d_lon - center_lon) / 2
        return math.sin(half_lat) ** 2 + cos * math.cos(other) * math.sin(half_lon) ** 2

    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = apart(left), apart(right)
    ends = [(apart(low), low), (apart(high), high)]
    for _ in range(_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = apart(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = apart(right)
    return min((at_left, left), (at_right, right), *ends)[1]


def _edge(area: Area, start: Point, end: Point, inside: float, other: float) -> float:
    """The share nearest to `other` up to which one is inside all the way."""
    if area.covers(along(start, end, other)):
        return other
    while abs(other - inside) > _TOUCH / 16:
        middle = (inside + other) / 2
        if area.covers(along(start, end, middle)):
            inside = middle
        else:
            other = middle
    return inside
