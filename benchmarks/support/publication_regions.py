"""Regions as section 5 of the publication draws them.

Constraints of the synthetic workloads: two random points of the universe span a box, three or four points lie on
different sides of it, others in it, 20 in all, joined to a ring that does not cross itself; regions of less than a
tenth of the universe are drawn again. The publication does not say how it joins the points: here they are sorted by
their direction from their mean, which never crosses, because the mean of points is within their hull.

Messages of the real workloads are of three types, whose boxes have 1 to 25 % of the universe. Of how they differ the
publication gives the number of points and words; what is made of the words is said at each.
"""

import math
from enum import StrEnum
from random import Random

from matcher.planar import Box, PlanarRegion, from_rings
from zones.shapes import Point

__all__ = ["UNIVERSE", "RegionType", "draw_message", "draw_region"]

UNIVERSE: Box = (0.0, 0.0, 1000.0, 1000.0)
_POINTS = 20
_LEAST_SHARE = 0.1
_MESSAGE_SHARE = (0.01, 0.25)


class RegionType(StrEnum):
    A = "A"  # round, at most 10 points: clouds, storms
    B = "B"  # irregular, 30 to 50 points: herds, fires
    C = "C"  # long and narrow, up to 5 points: flights


def draw_region(rng: Random, universe: Box = UNIVERSE) -> PlanarRegion:
    """One region of the synthetic workloads; constraints and messages are drawn alike."""
    west, south, east, north = universe
    least = _LEAST_SHARE * (east - west) * (north - south)
    while True:
        (x0, x1), (y0, y1) = (sorted((rng.uniform(low, high), rng.uniform(low, high)))
                              for low, high in ((west, east), (south, north)))  # fmt: skip
        if (x1 - x0) * (y1 - y0) < least:
            continue
        ring = _irregular(rng, (x0, y0, x1, y1), _POINTS, rng.choice((3, 4)))
        if _area(ring) >= least:
            return from_rings([ring])


def draw_message(rng: Random, kind: RegionType, universe: Box = UNIVERSE) -> PlanarRegion:
    """One region of a type, anywhere in the universe; its box has 1 to 25 % of it."""
    west, south, east, north = universe
    width, height = east - west, north - south
    while True:
        share = rng.uniform(*_MESSAGE_SHARE)
        # How much wider than high, both measured in the universe's own: near 1 for A, anything up to 1 to 4 otherwise.
        aspect = math.exp(rng.uniform(-0.1, 0.1) if kind is RegionType.A else rng.uniform(-math.log(4), math.log(4)))
        w, h = width * math.sqrt(share * aspect), height * math.sqrt(share / aspect)
        if w <= width and h <= height:
            break
    x0, y0 = west + rng.uniform(0, width - w), south + rng.uniform(0, height - h)
    box = (x0, y0, x0 + w, y0 + h)
    return from_rings([_RINGS[kind](rng, box)])


def _round(rng: Random, box: Box) -> list[Point]:
    """A: a point near the middle of each side and others between them, near the ellipse in the box."""
    x0, y0, x1, y1 = box
    x, y, rx, ry = (x0 + x1) / 2, (y0 + y1) / 2, (x1 - x0) / 2, (y1 - y0) / 2
    between = rng.randrange(4, 7)
    share = [between // 4 + (quarter < between % 4) for quarter in range(4)]
    rng.shuffle(share)
    ring: list[Point] = []
    sides = ((x1, None), (None, y1), (x0, None), (None, y0))
    for quarter, (on_x, on_y) in enumerate(sides):
        near = rng.uniform(-0.2, 0.2)
        ring.append((x + near * rx if on_x is None else on_x, y + near * ry if on_y is None else on_y))
        for place in range(share[quarter]):
            angle = math.pi / 2 * (quarter + (place + 1 + rng.uniform(-0.2, 0.2)) / (share[quarter] + 1))
            length = rng.uniform(0.85, 1)
            ring.append((x + length * rx * math.cos(angle), y + length * ry * math.sin(angle)))
    return ring


def _ragged(rng: Random, box: Box) -> list[Point]:
    """B: as synthetic regions are drawn, with more points."""
    return _irregular(rng, box, rng.randint(30, 50), 4)


def _narrow(rng: Random, box: Box) -> list[Point]:
    """C: a strip along a diagonal of the box, 2 to 6 % of it high, half of them with a bend."""
    x0, y0, x1, y1 = box
    thick = rng.uniform(0.02, 0.06)
    shares = [(0.0, 0.0), (1.0, 1 - thick), (1.0, 1.0)]
    if rng.random() < 0.5:
        at = rng.uniform(0.3, 0.7)
        shares.append((at, at * (1 - thick) + thick * rng.uniform(0.6, 1.6)))
    shares.append((0.0, thick))
    falls = rng.random() < 0.5
    return [(x1 - u * (x1 - x0) if falls else x0 + u * (x1 - x0), y0 + v * (y1 - y0)) for u, v in shares]


_RINGS = {RegionType.A: _round, RegionType.B: _ragged, RegionType.C: _narrow}


def _irregular(rng: Random, box: Box, count: int, sides: int) -> list[Point]:
    """Points on so many sides of the box and the others in it, by their direction from their mean."""
    x0, y0, x1, y1 = box
    on_sides: list[Point] = [
        (x0, rng.uniform(y0, y1)),
        (x1, rng.uniform(y0, y1)),
        (rng.uniform(x0, x1), y0),
        (rng.uniform(x0, x1), y1),
    ]
    points = rng.sample(on_sides, sides)
    points += [(rng.uniform(x0, x1), rng.uniform(y0, y1)) for _ in range(count - sides)]
    x, y = sum(p[0] for p in points) / count, sum(p[1] for p in points) / count
    return sorted(points, key=lambda p: math.atan2(p[1] - y, p[0] - x))


def _area(ring: list[Point]) -> float:
    return abs(sum(p[0] * q[1] - q[0] * p[1] for p, q in zip(ring, ring[1:] + ring[:1], strict=True))) / 2
