"""Circles on the ellipsoid: which points are in one, which box and which polygon are around one.

A circle is everything within its radius along geodesics. The certain bounds of `zones.geodesy` decide all points
but those within 0.34 % of the rim, where the exact geodesic does. The same bounds give a cap on the sphere that
the circle can't leave, and box and polygon are drawn around that cap.
"""

import math

from zones.antimeridian import Box
from zones.geodesy import FLATTENING, SEMI_MAJOR_M, SEMI_MINOR_M, distance_m, geodetic_lat, reduced_lat
from zones.shapes import Circle, Point, Ring

__all__ = ["CircleTest", "bounds_of_circle", "ring_around_circle"]

_RADIANS = math.pi / 180
_POLAR_SCALE = (1 - FLATTENING) ** 2

# Rounding moves a point on the unit sphere by less than 1e-15, so a chord is off by less than this (25 nm).
_CHORD_ERROR = 4e-15
_PAD_DEG = 1e-9  # 0.1 mm; covers the rounding of all that leads to a box

# A polygon with so many corners, so much wider than the cap, has the cap inside although its edges are straight
# in lon and lat. Nearer to a pole than this (sine of half the cap's width in lon) straight edges cut too deep.
_CORNERS = 64
_WIDER = 1.01
_STEEPEST = 0.7
_SMALLEST_RAD = 1e-8  # below this, 6 cm, corners would fall on each other


class CircleTest:
    """Whether points are in one circle, prepared for many of them."""

    __slots__ = ("_center", "_certainly_in", "_maybe_in", "_radius_m", "_x", "_y", "_z")

    def __init__(self, circle: Circle) -> None:
        self._center = circle.center
        self._radius_m = circle.radius_m
        lon, lat = circle.center
        beta = reduced_lat(lat)
        self._x = math.cos(beta) * math.cos(lon * _RADIANS)
        self._y = math.cos(beta) * math.sin(lon * _RADIANS)
        self._z = math.sin(beta)
        # Squared chords of the unit sphere. The first is negative for a radius of nanometres: never certain.
        near = 2 * math.sin(circle.radius_m / SEMI_MAJOR_M / 2) - _CHORD_ERROR
        far = 2 * math.sin(circle.radius_m / SEMI_MINOR_M / 2) + _CHORD_ERROR
        self._certainly_in = near * near if near > 0 else -1.0
        self._maybe_in = far * far

    def covers(self, lon: float, lat: float) -> bool:
        lam = lon * _RADIANS
        phi = lat * _RADIANS
        cos = math.cos(phi)
        sin = math.sin(phi)
        # (cos φ, (1 - f) sin φ), brought to length 1, is (cos β, sin β).
        scale = 1 / math.sqrt(cos * cos + _POLAR_SCALE * sin * sin)
        dx = cos * scale * math.cos(lam) - self._x
        dy = cos * scale * math.sin(lam) - self._y
        dz = (1 - FLATTENING) * sin * scale - self._z
        chord = dx * dx + dy * dy + dz * dz
        if chord <= self._certainly_in:
            return True
        if chord > self._maybe_in:
            return False
        return distance_m(self._center, (lon, lat)) <= self._radius_m


def bounds_of_circle(circle: Circle) -> Box:
    """A box with the whole circle in it, at most 0.4 % too wide; all longitudes if it reaches a pole."""
    lon, lat = circle.center
    beta, sigma = reduced_lat(lat), _cap_radius(circle)
    south = geodetic_lat(beta - sigma) - _PAD_DEG if beta - sigma > -math.pi / 2 else -90.0
    north = geodetic_lat(beta + sigma) + _PAD_DEG if beta + sigma < math.pi / 2 else 90.0
    south, north = max(south, -90.0), min(north, 90.0)
    steep = math.sin(sigma) / math.cos(beta)
    # Near 1 the arc sine loses its digits; all longitudes are right there too, only wider.
    if south == -90 or north == 90 or steep > 0.999:
        return -180.0, south, 180.0, north
    half = math.degrees(math.asin(steep)) + _PAD_DEG
    west, east = lon - half, lon + half
    if west <= -180:
        west += 360
    if east >= 180:
        east -= 360
    return west, south, east, north


def ring_around_circle(circle: Circle) -> Ring | None:
    """A polygon with the whole circle in it, its lons beyond ±180 where it crosses; None near a pole.

    There the box has to do. For display and for indexes only: the polygon is about 1 % wider than the circle.
    """
    lon, lat = circle.center
    beta, sigma = reduced_lat(lat), _cap_radius(circle) * _WIDER
    if math.sin(sigma) > _STEEPEST * math.cos(beta) or sigma < _SMALLEST_RAD:
        return None
    corners: list[Point] = []
    for corner in range(_CORNERS):
        # Bearings go down from north, so that the ring runs counter-clockwise.
        bearing = -2 * math.pi * corner / _CORNERS
        sin_beta = math.sin(beta) * math.cos(sigma) + math.cos(beta) * math.sin(sigma) * math.cos(bearing)
        delta = math.atan2(
            math.sin(bearing) * math.sin(sigma) * math.cos(beta), math.cos(sigma) - math.sin(beta) * sin_beta
        )
        corners.append((lon + math.degrees(delta), geodetic_lat(math.asin(sin_beta))))
    return (*corners, corners[0])


def _cap_radius(circle: Circle) -> float:
    """The radius, as an angle, of the cap on the sphere that the circle can't leave."""
    return circle.radius_m / SEMI_MINOR_M * (1 + 1e-12)
