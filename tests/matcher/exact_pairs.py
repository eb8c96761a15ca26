"""Pairs of regions that are hard to relate, and a plain reference that relates them in rational arithmetic.

The reference shares nothing with `matcher.relations`: it computes every point of intersection, cuts all edges there,
and asks of the middle of each piece which faces lie on its two sides, by counting crossings along a ray. It knows
nothing of orientations, contacts, sectors, or of which ring is a hole.

Generators are functions of a `random.Random`, so that a loop, hypothesis and other implementations can use them.
Every region is valid; regions that a float rounding may have broken are drawn again.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import pairwise
from random import Random

import shapely

from matcher.planar import PlanarRegion, from_geometry, from_parts, from_rings
from matcher.selector.tree import Relation
from zones.errors import RingHasSpike
from zones.shapes import Point

__all__ = [
    "KINDS", "Pair", "draw_pair", "four_intersections", "geometry_of", "is_surely_valid", "moved", "reference_relation",
    "relation_of_matrix", "star",
]  # fmt: skip

Pair = tuple[PlanarRegion, PlanarRegion]
IntPoint = tuple[int, int]
IntEdge = tuple[IntPoint, IntPoint]


# --- the reference ---------------------------------------------------------------------------------


def reference_relation(a: PlanarRegion, b: PlanarRegion) -> Relation:
    edges_a, edges_b = _integer_edges(a, b)
    touch = False
    faces: set[tuple[bool, bool]] = set()  # in a, in b
    for edges, others in ((edges_a, edges_b), (edges_b, edges_a)):
        for edge in edges:
            cuts = sorted({Fraction(0), Fraction(1)} | _cuts(edge, others))
            touch = touch or any(_cuts(edge, [other]) for other in others)
            for first, last in pairwise(cuts):
                faces |= _faces_beside(edge, (first + last) / 2, edges_a, edges_b)
    a_in_b = (True, False) not in faces
    b_in_a = (False, True) not in faces
    if a_in_b and b_in_a:
        return Relation.EQUALS
    if a_in_b:
        return Relation.COVERED_BY if touch else Relation.INSIDE
    if b_in_a:
        return Relation.COVERS if touch else Relation.CONTAINS
    if (True, True) in faces:
        return Relation.OVERLAPS
    return Relation.MEETS if touch else Relation.DISJOINT


def four_intersections(a: PlanarRegion, b: PlanarRegion) -> tuple[bool, bool, bool, bool]:
    """Whether these are not empty: boundary and boundary, boundary and interior, interior and boundary, boundary and
    exterior; the first of each is a's."""
    edges_a, edges_b = _integer_edges(a, b)
    sides: dict[bool, set[tuple[bool, bool]]] = {True: set(), False: set()}  # by whose boundary; of the other region
    for walks_a, edges, others in ((True, edges_a, edges_b), (False, edges_b, edges_a)):
        for edge in edges:
            for first, last in pairwise(sorted({Fraction(0), Fraction(1)} | _cuts(edge, others))):
                faces = _faces_beside(edge, (first + last) / 2, others)
                sides[walks_a].add(((True,) in faces, (False,) in faces))
    touch = any(_cuts(edge, edges_b) for edge in edges_a)
    inside, outside = (True, False), (False, True)
    return touch, inside in sides[True], inside in sides[False], outside in sides[True]


def _integer_edges(*regions: PlanarRegion) -> list[list[IntEdge]]:
    """All coordinates times one power of two, which makes integers of any doubles and changes no relation."""
    scale = max(value.as_integer_ratio()[1] for r in regions for ring in r.rings for point in ring for value in point)
    edges: list[list[IntEdge]] = []
    for region in regions:
        edges.append([])
        for ring in region.rings:
            points = [(int(Fraction(x) * scale), int(Fraction(y) * scale)) for x, y in ring]
            edges[-1] += zip(points, points[1:] + points[:1], strict=True)
    return edges


def _cross(ax: int, ay: int, bx: int, by: int) -> int:
    return ax * by - ay * bx


def _cuts(edge: IntEdge, others: Iterable[IntEdge]) -> set[Fraction]:
    """Where the others meet the edge, 0 at its start and 1 at its end."""
    (ux, uy), (vx, vy) = edge
    dx, dy = vx - ux, vy - uy
    found: set[Fraction] = set()
    for (sx, sy), (wx, wy) in others:
        across = _cross(dx, dy, wx - sx, wy - sy)
        if across:
            t = Fraction(_cross(sx - ux, sy - uy, wx - sx, wy - sy), across)
            r = Fraction(_cross(sx - ux, sy - uy, dx, dy), across)
            if 0 <= t <= 1 and 0 <= r <= 1:
                found.add(t)
        elif _cross(sx - ux, sy - uy, dx, dy) == 0:
            length = dx * dx + dy * dy
            ends = sorted(
                (Fraction((sx - ux) * dx + (sy - uy) * dy, length), Fraction((wx - ux) * dx + (wy - uy) * dy, length))
            )
            if ends[0] <= 1 and ends[1] >= 0:
                found |= {max(ends[0], Fraction(0)), min(ends[1], Fraction(1))}
    return found


def _faces_beside(edge: IntEdge, t: Fraction, *regions: list[IntEdge]) -> set[tuple[bool, ...]]:
    """For both sides of the point at t: in which of the regions they are."""
    (ux, uy), (vx, vy) = edge
    n, d = t.numerator, t.denominator
    x, y = ux * d + (vx - ux) * n, uy * d + (vy - uy) * n  # times d
    upright = uy != vy  # else the ray goes up instead of to the right
    beyond, before = [], []
    for edges in regions:
        odd = on = False
        for (sx, sy), (wx, wy) in edges:
            if not upright:
                sx, sy, wx, wy = sy, sx, wy, wx
            px, py = (x, y) if upright else (y, x)
            if (sy * d > py) != (wy * d > py):
                turn = _cross(wx - sx, wy - sy, px - sx * d, py - sy * d)
                if turn == 0:
                    on = True
                elif (turn > 0) == (wy > sy):
                    odd = not odd
        beyond.append(odd)
        before.append(odd != on)
    return {tuple(beyond), tuple(before)}


# --- shapely, for comparison -----------------------------------------------------------------------


def geometry_of(region: PlanarRegion) -> shapely.Geometry:
    """The region as shapely has it; holes go to the smallest outer ring around them."""
    if region.is_simple:
        return shapely.Polygon(region.rings[0])
    polygons = [shapely.Polygon(ring) for ring in region.rings]
    outer = [polygon for polygon in polygons if shapely.is_ccw(polygon.exterior)]
    holes: dict[int, list[shapely.Geometry]] = {index: [] for index in range(len(outer))}
    for hole in polygons:
        if not shapely.is_ccw(hole.exterior):
            inner = hole.representative_point()
            around = [
                index for index, polygon in enumerate(outer) if polygon.contains(inner) and polygon.area > hole.area
            ]
            holes[min(around, key=lambda index: outer[index].area)].append(hole.exterior)
    parts = [shapely.Polygon(polygon.exterior, holes[index]) for index, polygon in enumerate(outer)]
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)


def relation_of_matrix(matrix: str) -> Relation:
    """The relation in the nine intersections that `shapely.relate` gives."""
    interiors, boundaries = matrix[0] != "F", matrix[4] != "F"
    a_in_b, b_in_a = matrix[2] == "F", matrix[6] == "F"
    if a_in_b and b_in_a:
        return Relation.EQUALS
    if a_in_b:
        return Relation.COVERED_BY if boundaries else Relation.INSIDE
    if b_in_a:
        return Relation.COVERS if boundaries else Relation.CONTAINS
    if interiors:
        return Relation.OVERLAPS
    return Relation.MEETS if boundaries else Relation.DISJOINT


# --- regions ---------------------------------------------------------------------------------------


def star(rng: Random, count: int, center: Point = (0.0, 0.0), radius: float = 1.0) -> PlanarRegion:
    """A polygon in general position whose corners are seen from the centre."""
    while True:
        angles = sorted(rng.random() for _ in range(count))
        if max(later - earlier for earlier, later in zip(angles, [*angles[1:], angles[0] + 1], strict=True)) < 0.49:
            break
    lengths = [radius * rng.uniform(0.2, 1) for _ in angles]
    return from_rings(
        [
            [
                (center[0] + r * math.cos(2 * math.pi * t), center[1] + r * math.sin(2 * math.pi * t))
                for t, r in zip(angles, lengths, strict=True)
            ]
        ]
    )


def moved(region: PlanarRegion, change: Callable[[float, float], Point]) -> PlanarRegion:
    """Every corner somewhere else. The change must not mirror: holes are known by their winding, which stays."""
    rings = tuple(tuple(change(x, y) for x, y in ring) for ring in region.rings)
    return PlanarRegion(rings, shapely.MultiPoint([point for ring in rings for point in ring]).bounds)


def _scaled(region: PlanarRegion, k: float, dx: float, dy: float) -> PlanarRegion:
    return moved(region, lambda x, y: (k * x + dx, k * y + dy))


def _lattice_star(rng: Random, size: int = 6) -> PlanarRegion:
    """A simple polygon with corners on a small grid: straight corners and long collinear edges are frequent."""
    while True:
        points = {(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randrange(3, 9))}
        cx, cy = rng.uniform(1, size - 2) + 0.01, rng.uniform(1, size - 2) + 0.013
        ring = sorted(points, key=lambda point: math.atan2(point[1] - cy, point[0] - cx))
        if len(ring) >= 3:
            polygon = shapely.Polygon(ring)
            if polygon.is_valid and polygon.area > 0:
                return from_rings([ring])


def _cells(rng: Random, columns: int, rows: int, share: float, diagonals: str) -> PlanarRegion:
    """Some cells of a grid, each cut into two triangles or left whole: holes, and parts that touch at corners."""
    while True:
        pieces = []
        for x in range(columns):
            for y in range(rows):
                corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
                diagonal = rng.choice(diagonals)
                if diagonal == ".":
                    halves = [corners]
                elif diagonal == "/":
                    halves = [[corners[0], corners[1], corners[2]], [corners[0], corners[2], corners[3]]]
                else:
                    halves = [[corners[0], corners[1], corners[3]], [corners[1], corners[2], corners[3]]]
                pieces += [shapely.Polygon(half) for half in halves if rng.random() < share]
        if pieces:
            return from_geometry(shapely.union_all(pieces))


def _with_hole(rng: Random) -> PlanarRegion:
    """A lattice polygon with another one cut out, where that leaves a region of grid points."""
    while True:
        outer = geometry_of(_lattice_star(rng, 7))
        hole = geometry_of(_scaled(_lattice_star(rng, 5), 1, rng.randrange(3), rng.randrange(3)))
        if outer.covers(hole):
            left = outer.difference(hole)
            if left.geom_type in ("Polygon", "MultiPolygon") and left.area > 0:
                on_grid = shapely.get_coordinates(left)
                if (on_grid == on_grid.round()).all() and left.is_valid:
                    return from_geometry(left)


def _on_grid(rng: Random) -> PlanarRegion:
    kind = rng.randrange(5)
    if kind == 0:
        return _cells(rng, rng.randrange(1, 4), rng.randrange(1, 4), rng.choice((0.4, 0.7, 0.95)), ".")
    if kind == 1:
        return _cells(rng, rng.randrange(1, 4), rng.randrange(1, 4), rng.choice((0.3, 0.6, 0.95)), "/\\")
    if kind == 2:
        return _with_hole(rng)
    return _lattice_star(rng, rng.choice((4, 6, 8)))


# --- pairs -----------------------------------------------------------------------------------------


def _general_pair(rng: Random) -> Pair:
    a = star(rng, rng.randrange(3, 21))
    reach = rng.choice((0.0, 0.5, 1.2, 2.0))
    center = (rng.uniform(-reach, reach), rng.uniform(-reach, reach))
    return a, star(rng, rng.randrange(3, 21), center, rng.choice((0.05, 0.3, 1.0, 3.0)))


def _lattice_pair(rng: Random) -> Pair:
    a, b = _on_grid(rng), _on_grid(rng)
    if rng.randrange(2):
        b = _scaled(b, rng.choice((1, 1, 1, 2, 3, 0.5)), rng.randrange(-3, 4), rng.randrange(-3, 4))
    return a, b


def _related_pair(rng: Random) -> Pair:
    """The second is made of the first: most of their boundaries is common."""
    while True:
        a = _on_grid(rng)
        kind = rng.randrange(6)
        if kind == 0:
            return a, from_parts([[ring] for ring in a.rings[:1]])
        if kind == 1:  # another starting point and points added on edges: equal
            rings = [_refined(rng, ring) for ring in a.rings]
            b = PlanarRegion(tuple(rings), a.box)
        elif kind == 2:  # without one corner
            ring = list(a.rings[0])
            if len(ring) < 4:
                continue
            del ring[rng.randrange(len(ring))]
            if not shapely.Polygon(ring).is_valid:
                continue
            b = from_rings([ring])
        elif kind == 3:  # grown or shrunk from one of its corners
            cx, cy = rng.choice(rng.choice(a.rings))
            k = rng.choice((0.5, 2.0, 3.0, -1.0))
            b = _scaled(a, k, cx - k * cx, cy - k * cy)
        elif kind == 4:  # what is left of its box
            rest = shapely.box(*a.box).difference(geometry_of(a))
            if rest.is_empty or rest.geom_type not in ("Polygon", "MultiPolygon"):
                continue
            b = from_geometry(rest)
        else:  # some of its parts and holes, filled
            b = from_rings([rng.choice(a.rings)])
        return (a, b) if rng.randrange(2) else (b, a)


def _refined(rng: Random, ring: tuple[Point, ...]) -> tuple[Point, ...]:
    points: list[Point] = []
    for (x, y), (next_x, next_y) in zip(ring, ring[1:] + ring[:1], strict=True):
        points.append((x, y))
        if rng.randrange(2):
            points.append(((x + next_x) / 2, (y + next_y) / 2))
    start = rng.randrange(len(points))
    return tuple(points[start:] + points[:start])


def _ugly_pair(rng: Random) -> Pair:
    """A pair of the grid, turned, stretched and moved in floating point: what was collinear almost is."""
    while True:
        a, b = rng.choice((_lattice_pair, _related_pair))(rng)
        angle, scale = rng.uniform(0, 7), 10.0 ** rng.uniform(-6, 6)
        dx, dy = (rng.choice((0.0, 1.0, 1e3, 1e-3)) * scale * rng.uniform(-1, 1) for _ in range(2))
        cos, sin = math.cos(angle) * scale, math.sin(angle) * scale

        def turned(x: float, y: float, cos: float = cos, sin: float = sin, dx: float = dx, dy: float = dy) -> Point:
            return cos * x - sin * y + dx, sin * x + cos * y + dy

        a, b = moved(a, turned), moved(b, turned)
        if all(is_surely_valid(region) for region in (a, b)):
            return a, b


def _nudged_pair(rng: Random) -> Pair:
    """A pair of the grid with some corners one float away from where they were."""
    while True:
        a, b = rng.choice((_lattice_pair, _related_pair))(rng)
        near: dict[Point, Point] = {}

        def nudged(value: float) -> float:
            return math.nextafter(value, value + rng.choice((-1, 1))) if rng.randrange(4) == 0 else value

        def nudge(x: float, y: float, near: dict[Point, Point] = near) -> Point:
            if (x, y) not in near:
                near[x, y] = nudged(x + 1.0), nudged(y + 1.0)
            return near[x, y]

        a = moved(a, nudge)
        if rng.randrange(2):
            near.clear()
        b = moved(b, nudge)
        if all(is_surely_valid(region) for region in (a, b)):
            return a, b


def _sliver_pair(rng: Random) -> Pair:
    """Triangles a few floats thin, across or along each other."""

    def sliver() -> PlanarRegion:
        x, y = rng.choice(((0.0, 0.0), (1.0, 1.0), (0.25, 0.25)))
        far = rng.choice(((3.0, 3.0), (2.0, 2.0), (3.0, 1.0), (1.5, 1.5)))
        t = rng.choice((0.25, 0.5, 0.75))
        mx, my = x + t * (far[0] - x), y + t * (far[1] - y)
        for _ in range(rng.randrange(1, 4)):
            my = math.nextafter(my, rng.choice((-9, 9)))
        return from_rings([[(x, y), far, (mx, my)]])

    while True:
        try:
            return sliver(), sliver() if rng.randrange(3) else _lattice_star(rng)
        except RingHasSpike:  # the floats went back to where they came from
            continue


def is_surely_valid(region: PlanarRegion) -> bool:
    """Valid by exact arithmetic: edges of the region meet at common corners only, and rings are where they were."""
    (edges,) = _integer_edges(region)
    for index, edge in enumerate(edges):
        for other in edges[index + 1 :]:
            met = _cuts(edge, [other])
            if met and (len(met) > 1 or not met <= {0, 1} or not _cuts(other, [edge]) <= {0, 1}):
                return False
    return bool(geometry_of(region).is_valid)


KINDS: dict[str, Callable[[Random], Pair]] = {
    "general": _general_pair,
    "lattice": _lattice_pair,
    "related": _related_pair,
    "ugly": _ugly_pair,
    "nudged": _nudged_pair,
    "sliver": _sliver_pair,
}


def draw_pair(rng: Random) -> Pair:
    """A pair of any kind."""
    return KINDS[rng.choice(tuple(KINDS))](rng)
