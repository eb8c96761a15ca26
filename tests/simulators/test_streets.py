"""Driving along streets: always on one, as far as was asked, and by nothing but the numbers that come in."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators.mobility.streets import Streets, Traveller, drive, neighbours, position, set_out

_SIZES = st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda size: size[0] * size[1] > 1)
_METRES = st.floats(0, 3000, allow_nan=False)


def _city(size: tuple[int, int], block_m: tuple[float, float] = (250.0, 200.0)) -> Streets:
    return Streets(south_west=(116.0, 39.0), step=(0.003, 0.002), block_m=block_m, columns=size[0], rows=size[1])


def _chance(seed: int) -> Callable[[], float]:
    return random.Random(seed).random


@given(_SIZES, st.integers(), st.lists(_METRES, max_size=8))
def test_a_traveller_is_always_on_a_street_of_the_city(size: tuple[int, int], seed: int, ways: list[float]) -> None:
    city, chance = _city(size), _chance(seed)
    traveller = set_out(city, chance)
    for metres in [0.0, *ways]:
        traveller = drive(city, traveller, metres, chance)
        assert traveller.towards in neighbours(city, traveller.origin)
        assert 0 <= traveller.along_m < _block_m(city, traveller)
        column, row = _in_blocks(city, position(city, traveller))
        assert -1e-6 <= column <= size[0] - 1 + 1e-6
        assert -1e-6 <= row <= size[1] - 1 + 1e-6
        assert min(abs(column - round(column)), abs(row - round(row))) < 1e-6


@given(_SIZES, st.integers(), _METRES, _METRES)
def test_two_legs_are_one_drive(size: tuple[int, int], seed: int, first: float, second: float) -> None:
    city = _city(size)
    start = set_out(city, _chance(seed))
    one, other = _chance(seed + 1), _chance(seed + 1)
    whole = drive(city, start, first + second, one)
    parts = drive(city, drive(city, start, first, other), second, other)
    assert _metres_apart(city, whole, parts) < 1e-3


@given(_SIZES, st.integers(), _METRES)
def test_nobody_comes_farther_than_they_drive(size: tuple[int, int], seed: int, metres: float) -> None:
    city, chance = _city(size), _chance(seed)
    start = set_out(city, chance)
    assert _metres_apart(city, start, drive(city, start, metres, chance)) <= metres + 1e-3


@given(_SIZES, st.integers(), st.floats(0, 1, exclude_max=True))
def test_turning_back_is_for_dead_ends(size: tuple[int, int], seed: int, number: float) -> None:
    city = _city(size)
    somewhere = set_out(city, _chance(seed))
    start = Traveller(somewhere.origin, somewhere.towards)
    behind = drive(city, start, _block_m(city, start), lambda: number)
    assert behind.origin == start.towards
    is_dead_end = len(neighbours(city, start.towards)) == 1
    assert (behind.towards == start.origin) == is_dead_end


def test_straight_on_is_three_times_as_likely_as_a_turn() -> None:
    city = _city((3, 3))
    start = Traveller(origin=(0, 1), towards=(1, 1), along_m=0.0)
    numbers = iter([0.1, 0.3, 0.5, 0.7, 0.9])
    turned = [drive(city, start, 250.0, lambda: next(numbers)).towards for _ in range(5)]
    assert sorted(turned) == [(1, 0), (1, 2), (2, 1), (2, 1), (2, 1)]


@given(_SIZES, st.integers(), _METRES)
def test_the_same_numbers_give_the_same_way(size: tuple[int, int], seed: int, metres: float) -> None:
    city = _city(size)

    def go() -> Traveller:
        chance = _chance(seed)
        return drive(city, set_out(city, chance), metres, chance)

    assert go() == go()


def test_the_largest_number_below_one_picks_the_last_way() -> None:
    almost_one = math.nextafter(1.0, 0.0)
    traveller = set_out(_city((4, 4)), lambda: almost_one)
    assert traveller.origin == (3, 3)


@pytest.mark.parametrize("metres", [-1.0, math.nan, math.inf])
def test_a_distance_that_is_none_is_refused(metres: float) -> None:
    city = _city((2, 2))
    with pytest.raises(ValueError, match="can't drive"):
        drive(city, set_out(city, _chance(1)), metres, _chance(1))


@pytest.mark.parametrize("size", [(1, 1), (0, 5), (3, -1)])
def test_a_city_without_a_street_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no street"):
        _city(size)


@pytest.mark.parametrize("block_m", [(0.0, 200.0), (250.0, -1.0), (math.inf, 200.0), (math.nan, 200.0)])
def test_blocks_without_length_are_refused_instead_of_driving_round_for_ever(block_m: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="blocks"):
        _city((2, 2), block_m)


def _block_m(city: Streets, traveller: Traveller) -> float:
    return city.block_m[0] if traveller.origin[1] == traveller.towards[1] else city.block_m[1]


def _in_blocks(city: Streets, point: tuple[float, float]) -> tuple[float, float]:
    return (point[0] - city.south_west[0]) / city.step[0], (point[1] - city.south_west[1]) / city.step[1]


def _metres_apart(city: Streets, one: Traveller, other: Traveller) -> float:
    a, b = _in_blocks(city, position(city, one)), _in_blocks(city, position(city, other))
    return abs(a[0] - b[0]) * city.block_m[0] + abs(a[1] - b[1]) * city.block_m[1]
