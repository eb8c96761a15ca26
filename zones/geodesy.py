"""Metres on WGS 84.

A geodesic is exact to nanometres and costs some 30 µs, too much for a test that every fix of every device goes
through. So most answers come from bounds that are certain. They need the reduced latitude β,
tan β = (1 - f) tan φ: with it the ellipsoid's line element is

    ds² = (a² sin²β + b² cos²β) dβ² + a² cos²β dλ²

which lies between b² and a² times that of the unit sphere, dβ² + cos²β dλ². Every path, and so the shortest one,
is therefore between b and a times as long as its image on that sphere: b σ <= s <= a σ, two bounds that are only
0.34 % apart.
"""

import math

from geographiclib.geodesic import Geodesic

from zones.shapes import Point

__all__ = [
    "FLATTENING",
    "SEMI_MAJOR_M",
    "SEMI_MINOR_M",
    "destination",
    "distance_m",
    "geodetic_lat",
    "reduced_lat",
]

SEMI_MAJOR_M: float = Geodesic.WGS84.a
FLATTENING: float = Geodesic.WGS84.f
SEMI_MINOR_M: float = SEMI_MAJOR_M * (1 - FLATTENING)


def distance_m(a: Point, b: Point) -> float:
    """The length of the shortest line between two points."""
    lon_a, lat_a = a
    lon_b, lat_b = b
    # A pole has every longitude; without this its distance would depend on how it is written, in the last digit.
    if abs(lat_a) == 90:
        lon_a = lon_b
    elif abs(lat_b) == 90:
        lon_b = lon_a
    return float(Geodesic.WGS84.Inverse(lat_a, lon_a, lat_b, lon_b, Geodesic.DISTANCE)["s12"])


def destination(point: Point, bearing_deg: float, metres: float) -> Point:
    """Where one gets by going that far, starting at that angle from north, clockwise."""
    lon, lat = point
    end = Geodesic.WGS84.Direct(lat, lon, bearing_deg, metres, Geodesic.LATITUDE | Geodesic.LONGITUDE)
    return float(end["lon2"]), float(end["lat2"])


def reduced_lat(lat_deg: float) -> float:
    """The latitude on the sphere of the bounds, in radians."""
    lat = math.radians(lat_deg)
    return math.atan2((1 - FLATTENING) * math.sin(lat), math.cos(lat))


def geodetic_lat(reduced_rad: float) -> float:
    """The latitude in degrees whose `reduced_lat` this is."""
    return math.degrees(math.atan2(math.sin(reduced_rad), (1 - FLATTENING) * math.cos(reduced_rad)))
