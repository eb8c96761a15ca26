"""Driving along the streets of a city whose blocks all have one size.

A traveller is always on a street, between two neighbouring crossings. At a crossing it goes straight on or turns,
and turns back only where there is no other way. So traces look like those of vehicles, cross the same places again
and again, and depend on nothing but the random numbers that come in.
"""

from collections.abc import Callable
from math import isfinite

import msgspec

from zones.shapes import Point

__all__ = ["Chance", "Crossing", "Streets", "Traveller", "drive", "neighbours", "position", "set_out"]

Crossing = tuple[int, int]  # column from the west, row from the south
Chance = Callable[[], float]  # gives numbers in [0, 1)

_STRAIGHT_ON = 3  # times as likely as each turn


class Streets(msgspec.Struct, frozen=True):
    """`columns` by `rows` crossings, `block_m` apart east and north; `step` is the same in degrees of lon and lat."""

    south_west: Point
    step: tuple[float, float]
    block_m: tuple[float, float]
    columns: int
    rows: int

    def __post_init__(self) -> None:
        if self.columns < 1 or self.rows < 1 or self.columns * self.rows < 2:
            raise ValueError(f"{self.columns} by {self.rows} crossings have no street between them")
        if not all(isfinite(length) and length > 0 for length in self.block_m):
            raise ValueError(f"blocks can't be {self.block_m[0]} by {self.block_m[1]} metres")


class Traveller(msgspec.Struct, frozen=True):
    """On the way from one crossing to a neighbouring one, `along_m` metres behind the first."""

    origin: Crossing
    towards: Crossing
    along_m: float = 0.0


def neighbours(streets: Streets, crossing: Crossing) -> tuple[Crossing, ...]:
    """The crossings one block away: east, west, north, south, as far as the city goes."""
    column, row = crossing
    around = ((column + 1, row), (column - 1, row), (column, row + 1), (column, row - 1))
    return tuple((x, y) for x, y in around if 0 <= x < streets.columns and 0 <= y < streets.rows)


def set_out(streets: Streets, chance: Chance) -> Traveller:
    """Somewhere on some street, going in some direction."""
    origin = (_pick(streets.columns, chance), _pick(streets.rows, chance))
    ways = neighbours(streets, origin)
    towards = ways[_pick(len(ways), chance)]
    return Traveller(origin, towards, chance() * _length_m(streets, origin, towards))


def drive(streets: Streets, traveller: Traveller, metres: float, chance: Chance) -> Traveller:
    """Go that far along the streets; each crossing on the way takes one random number."""
    if not (isfinite(metres) and metres >= 0):
        raise ValueError(f"can't drive {metres} metres")
    origin, towards, along_m = traveller.origin, traveller.towards, traveller.along_m + metres
    while along_m >= (length_m := _length_m(streets, origin, towards)):
        along_m -= length_m
        origin, towards = towards, _turn(streets, origin, towards, chance)
    return Traveller(origin, towards, along_m)


def position(streets: Streets, traveller: Traveller) -> Point:
    """Where that is, in lon and lat."""
    (column, row), (to_column, to_row) = traveller.origin, traveller.towards
    share = traveller.along_m / _length_m(streets, traveller.origin, traveller.towards)
    lon, lat = streets.south_west
    step_lon, step_lat = streets.step
    return (
        lon + (column + (to_column - column) * share) * step_lon,
        lat + (row + (to_row - row) * share) * step_lat,
    )


def _turn(streets: Streets, origin: Crossing, here: Crossing, chance: Chance) -> Crossing:
    straight = (2 * here[0] - origin[0], 2 * here[1] - origin[1])
    ways = [way for way in neighbours(streets, here) if way != origin]
    if not ways:
        return origin
    weighted = [way for way in ways for _ in range(_STRAIGHT_ON if way == straight else 1)]
    return weighted[_pick(len(weighted), chance)]


def _length_m(streets: Streets, origin: Crossing, towards: Crossing) -> float:
    return streets.block_m[0] if origin[1] == towards[1] else streets.block_m[1]


def _pick(count: int, chance: Chance) -> int:
    return min(int(chance() * count), count - 1)
