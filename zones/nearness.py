"""Whether two places are less than so many metres apart, decided for many pairs.

The certain bounds of `zones.geodesy` decide nearly all of them with a few multiplications: a place is brought onto the
unit sphere once, and a pair is compared by its chord there. Only pairs within 0.34 % of the distance in question need
the exact geodesic.
"""

import math

from zones.geodesy import FLATTENING, SEMI_MAJOR_M, SEMI_MINOR_M, distance_m
from zones.shapes import Point

__all__ = ["Limit", "Spot"]

_RADIANS = math.pi / 180
_POLAR_SCALE = (1 - FLATTENING) ** 2
_NOWHERE = float("nan")

# Rounding moves a point on the unit sphere by less than 1e-15, so a chord is off by less than this (25 nm).
_CHORD_ERROR = 4e-15


class Spot:
    """A place with its image on the unit sphere; without a place the image is no number, and nothing is near it."""

    __slots__ = ("point", "x", "y", "z")

    def __init__(self, point: Point | None) -> None:
        self.point = point
        if point is None:
            self.x = self.y = self.z = _NOWHERE
            return
        lam, phi = point[0] * _RADIANS, point[1] * _RADIANS
        cos, sin = math.cos(phi), math.sin(phi)
        # (cos φ, (1 - f) sin φ), brought to length 1, is (cos β, sin β).
        scale = 1 / math.sqrt(cos * cos + _POLAR_SCALE * sin * sin)
        self.x = cos * scale * math.cos(lam)
        self.y = cos * scale * math.sin(lam)
        self.z = (1 - FLATTENING) * sin * scale


class Limit:
    """A distance, ready to be compared with. `near` and `far` are squared chords: below the first a pair is certainly
    nearer than `metres`, from the second on certainly not.
    """

    __slots__ = ("far", "metres", "near")

    def __init__(self, metres: float) -> None:
        self.metres = metres
        self.near = _squared(2 * math.sin(metres / SEMI_MAJOR_M / 2) - _CHORD_ERROR, metres / SEMI_MAJOR_M)
        self.far = _squared(2 * math.sin(metres / SEMI_MINOR_M / 2) + _CHORD_ERROR, metres / SEMI_MINOR_M)

    def holds(self, one: Spot, other: Spot) -> bool | None:
        """Whether they are less than this apart; None if one of them is nowhere."""
        dx, dy, dz = one.x - other.x, one.y - other.y, one.z - other.z
        chord = dx * dx + dy * dy + dz * dz
        if chord < self.near:
            return True
        return False if chord >= self.far else self.holds_exactly(one, other)

    def holds_exactly(self, one: Spot, other: Spot) -> bool | None:
        """The same, by the geodesic; what `holds` comes to where the bounds leave a doubt."""
        if one.point is None or other.point is None:
            return None
        return distance_m(one.point, other.point) < self.metres


def _squared(chord: float, angle: float) -> float:
    """Beyond half a turn no chord is that long; one of nanometres may be negative, and then nothing is below it."""
    if angle >= math.pi:
        return math.inf
    return chord * chord if chord > 0 else -1.0
