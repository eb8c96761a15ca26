"""How far a point is from the boundary of a zone, in metres: positive inside, negative outside.

The answer is never larger than the true geodesic distance and at most 0.5 % smaller (below a micrometre it may be 0),
so "deeper than 50 m" is never said too early. Three steps make it so:

- On the sphere of reduced latitudes (`zones.geodesy`) every distance σ bounds the geodesic one from below, b σ <= s,
  and is at most 0.34 % smaller.
- An edge is straight in lon and lat, so it is a curve there. Its straight chord through the globe is nowhere further
  from it than max|X''| / 8, a bound that falls to a quarter with each halving of the edge.
- So the chords of all edges give a lower bound at once, and only the edges that could be nearest are halved, until
  the lower bound is within 0.1 % of a place that is certainly on the edge.

Not every drawn edge is a boundary: where a zone was cut at the antimeridian the two sides belong together, and an edge
along lat 90 is a single point.
"""

import math
from abc import ABC, abstractmethod
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import shapely

from zones.antimeridian import normalise_lon
from zones.covers import Area, outline, prepare
from zones.geodesy import FLATTENING, SEMI_MINOR_M, distance_m, reduced_lat
from zones.shapes import Circle, Point, Shape

__all__ = ["Boundary", "Floats", "boundary_of"]

Floats = npt.NDArray[np.float64]
_Edge = tuple[float, float, float, float]  # lon, lat, lon, lat
_Place = tuple[float, float, float]  # on the unit sphere of reduced latitudes

_CLOSE_ENOUGH = 0.999  # of the angle from below to the one from above; with b/a this is 0.44 % in all
_CHORD_ERROR = 4e-15  # what rounding does to a chord of the unit sphere, 25 nm
_SECOND_DERIVATIVE = 1.02  # reduced latitude grows up to 1.0034 times as fast as latitude, and is a little bent
_WIDEST_M = 1e7  # of a band, for zones without a boundary: the whole globe
_FAR = 5.0  # from so many radii on, 0.34 % of the distance are less than 0.5 % of that to the rim


class Boundary(ABC):
    """A shape prepared for being asked how deep in it points are. Nothing is worked out before the first question."""

    def __init__(self, shape: Shape, area: Area) -> None:
        self.shape = shape
        self.area = area

    def depth_m(self, point: Point) -> float:
        """The distance to the boundary, negative outside; infinite if there is no boundary."""
        distance = self.distance_m(point)
        return distance if self.area.covers(point) else -distance

    @abstractmethod
    def distance_m(self, point: Point) -> float:
        """The distance to the boundary from whichever side; never larger than it is, at most 0.5 % smaller."""

    @cached_property
    def widest_band_m(self) -> float:
        """The widest dead band that the zone allows: half of how deep one can be in the narrowest of its parts.

        So there is always room to be deeper than the band, in every part.
        """
        return min(self._deepest_m() / 2, _WIDEST_M)

    @abstractmethod
    def _deepest_m(self) -> float:
        """How deep in it some point is, or in the narrowest of its parts; a bound from below."""

    @cached_property
    def edges(self) -> Floats:
        """Rows of lon, lat, lon, lat: the straight lines that are boundary; a circle has none."""
        return np.empty((0, 4)) if isinstance(self.shape, Circle) else _boundary_edges(self.shape)


def boundary_of(shape: Shape, area: Area | None = None) -> Boundary:
    """`area` is what `zones.covers.prepare` made of the shape, if that is at hand."""
    area = prepare(shape) if area is None else area
    return _Rim(shape, area) if isinstance(shape, Circle) else _Edges(shape, area)


class _Rim(Boundary):
    shape: Circle

    def distance_m(self, point: Point) -> float:
        center, radius_m = self.shape.center, self.shape.radius_m
        at_least = SEMI_MINOR_M * _angle(math.dist(_on_sphere(*center), _on_sphere(*point)) - _CHORD_ERROR)
        if at_least >= _FAR * radius_m:
            return at_least - radius_m
        # A geodesic from the centre through the point meets the rim: it is far shorter than half way round.
        return max(abs(radius_m - distance_m(center, point)) * (1 - 1e-9) - 1e-8, 0.0)

    def _deepest_m(self) -> float:
        return self.shape.radius_m


class _Edges(Boundary):
    def distance_m(self, point: Point) -> float:
        chords = self._chords
        if not chords.edges:
            return math.inf
        place = _on_sphere(*point)
        lower, upper = chords.bounds(np.array(place))
        maybe = np.flatnonzero(lower < _nearly(upper)).tolist()
        heap = [(float(lower[number]), chords.edges[number]) for number in maybe]
        heapify(heap)
        while heap and heap[0][0] < _nearly(upper) and upper > _CHORD_ERROR:
            _, edge = heappop(heap)
            near, *halves = _halved(edge, place)
            upper = min(upper, near)
            for half in halves:
                bound = _bound(half, place)
                if bound < upper:
                    heappush(heap, (bound, half))
        return SEMI_MINOR_M * _angle(_nearly(upper) - _CHORD_ERROR)

    @cached_property
    def _chords(self) -> "_Chords":
        return _Chords(self.edges)

    def _deepest_m(self) -> float:
        parts = list(shapely.get_parts(outline(self.shape)))
        depths = [self.depth_m(_middle(part)) for part in parts]
        west, _, east, _ = self.area.bounds
        if len(parts) > 1 and (west > east or (west, east) == (-180, 180)):
            # What was cut at the antimeridian is put together again: the middle may be on the line.
            inner = [shapely.point_on_surface(part) for part in parts]
            moved = [shapely.transform(part, _one_turn_on) for part in parts]
            for whole in shapely.get_parts(shapely.union_all([*parts, *moved])):
                depth = self.depth_m(_middle(whole))
                for number, point in enumerate(inner):
                    if whole.intersects(point) or whole.intersects(shapely.transform(point, _one_turn_on)):
                        depths[number] = max(depths[number], depth)
        return max(min(depths), 0.0)


class _Chords:
    """The straight lines between the ends of all edges, through the unit sphere."""

    def __init__(self, edges: Floats) -> None:
        self.edges: list[_Edge] = [(a, b, c, d) for a, b, c, d in edges.tolist()]
        self._start, self._end = _on_spheres(edges[:, :2]), _on_spheres(edges[:, 2:])
        self._along = self._end - self._start
        squared = np.einsum("ij,ij->i", self._along, self._along)
        self._squared = np.where(squared > 0, squared, 1.0)
        self._bend = np.array([_bend(edge) for edge in self.edges])

    def bounds(self, place: Floats) -> tuple[Floats, float]:
        """For each edge a distance that none of its points is nearer than; and that of the nearest end."""
        from_start = place - self._start
        share = np.clip(np.einsum("ij,ij->i", from_start, self._along) / self._squared, 0.0, 1.0)
        gap = from_start - share[:, None] * self._along
        lower = np.sqrt(np.einsum("ij,ij->i", gap, gap)) - self._bend
        from_end = place - self._end
        ends = min(np.einsum("ij,ij->i", from_start, from_start).min(), np.einsum("ij,ij->i", from_end, from_end).min())
        return lower, math.sqrt(ends)


# --- edges -------------------------------------------------------------------------------------------


def _boundary_edges(shape: Shape) -> Floats:
    lines: list[_Edge] = []
    on_the_line: list[tuple[float, float]] = []
    for ring in shapely.get_rings(shapely.get_parts(outline(shape))):
        for (lon_a, lat_a), (lon_b, lat_b) in pairwise(shapely.get_coordinates(ring).tolist()):
            if abs(lon_a) == 180 and lon_a == lon_b:
                on_the_line.append((min(lat_a, lat_b), max(lat_a, lat_b)))
            elif not (abs(lat_a) == 90 and lat_a == lat_b):
                lines.append((lon_a, lat_a, lon_b, lat_b))
    lines += [(180.0, south, 180.0, north) for south, north in _covered_once(on_the_line)]
    return np.array(lines, dtype=np.float64).reshape(-1, 4)


def _covered_once(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The stretches that an odd number of these cover: the others have the zone on both sides."""
    places = sorted({end for span in spans for end in span})
    stretches = pairwise(places)
    return [each for each in stretches if sum(low <= each[0] and each[1] <= high for low, high in spans) % 2]


def _middle(polygon: shapely.Geometry) -> Point:
    """A place deep inside, as seen on a map that is right in the polygon's middle latitude."""
    _, south, _, north = shapely.bounds(polygon).tolist()
    scale = max(math.cos(math.radians((south + north) / 2)), 1e-3)
    drawn = shapely.transform(polygon, lambda at: at * [scale, 1.0])
    lon, lat = shapely.get_coordinates(shapely.maximum_inscribed_circle(drawn))[0].tolist()
    return normalise_lon(lon / scale), min(max(lat, -90.0), 90.0)


def _one_turn_on(coordinates: Floats) -> Floats:
    moved: Floats = coordinates + np.array([360.0, 0.0])
    return moved


# --- on the sphere of reduced latitudes --------------------------------------------------------------


def _halved(edge: _Edge, place: _Place) -> tuple[float, _Edge, _Edge]:
    """The edge in two, cut near the point of its chord that is nearest; and how far the cut is from the place."""
    lon_a, lat_a, lon_b, lat_b = edge
    share = _share(_on_sphere(lon_a, lat_a), _on_sphere(lon_b, lat_b), place)
    share = share if 0.05 < share < 0.95 else 0.5
    lon, lat = lon_a + share * (lon_b - lon_a), lat_a + share * (lat_b - lat_a)
    return math.dist(_on_sphere(lon, lat), place), (lon_a, lat_a, lon, lat), (lon, lat, lon_b, lat_b)


def _bound(edge: _Edge, place: _Place) -> float:
    """No point of the edge is nearer than this."""
    (ax, ay, az), (bx, by, bz) = _on_sphere(*edge[:2]), _on_sphere(*edge[2:])
    share = _share((ax, ay, az), (bx, by, bz), place)
    nearest = (ax + share * (bx - ax), ay + share * (by - ay), az + share * (bz - az))
    return math.dist(nearest, place) - _bend(edge)


def _share(first: _Place, last: _Place, place: _Place) -> float:
    """How far along the chord, from 0 to 1, the point of it that is nearest to the place is."""
    (ax, ay, az), (bx, by, bz), (px, py, pz) = first, last, place
    dx, dy, dz = bx - ax, by - ay, bz - az
    squared = dx * dx + dy * dy + dz * dz
    return min(max(((px - ax) * dx + (py - ay) * dy + (pz - az) * dz) / squared, 0.0), 1.0) if squared else 0.0


def _bend(edge: _Edge) -> float:
    """How far the edge, a curve, is from its chord at most: an eighth of its second derivative."""
    lon_a, lat_a, lon_b, lat_b = edge
    d_lon, d_lat = math.radians(abs(lon_b - lon_a)), math.radians(abs(lat_b - lat_a))
    nearest_equator = 0.0 if lat_a * lat_b <= 0 else min(abs(lat_a), abs(lat_b))
    cos, sin = math.cos(reduced_lat(nearest_equator)), abs(math.sin(reduced_lat(max(abs(lat_a), abs(lat_b)))))
    return _SECOND_DERIVATIVE * (cos * d_lon * d_lon + 2 * sin * d_lon * d_lat + d_lat * d_lat) / 8


def _nearly(chord: float) -> float:
    """The chord of an angle that is a little smaller. (Half way round the globe chords hardly differ.)"""
    return 2 * math.sin(_CLOSE_ENOUGH * _angle(chord) / 2)


def _angle(chord: float) -> float:
    return 2 * math.asin(min(max(chord, 0.0) / 2, 1.0))


def _on_sphere(lon: float, lat: float) -> _Place:
    lam, phi = math.radians(lon), math.radians(lat)
    cos, sin = math.cos(phi), (1 - FLATTENING) * math.sin(phi)
    length = math.hypot(cos, sin)
    return cos / length * math.cos(lam), cos / length * math.sin(lam), sin / length


def _on_spheres(points: Floats) -> Floats:
    return np.array([_on_sphere(lon, lat) for lon, lat in points.tolist()]).reshape(-1, 3)
