"""The demo's city: zones that an import takes as they are, and that streets lead through."""

import random

import pytest

from simulators.demo.city import CITY, city_collection, city_zones
from simulators.mobility.streets import drive, position, set_out
from zones.covers import prepare
from zones.geodesy import distance_m
from zones.geojson import features_from_geojson
from zones.names import parse_zone_name
from zones.validation import check_shape


@pytest.mark.parametrize("name", city_zones())
def test_a_place_is_a_valid_zone_under_its_name(name: str) -> None:
    shape = city_zones()[name]
    assert check_shape(shape) == shape
    assert str(parse_zone_name(f"SYSTEM.{name}")) == f"SYSTEM.{name}"


def test_the_collection_says_the_same_as_the_zones() -> None:
    features = features_from_geojson(city_collection())
    assert {each.name: check_shape(each.shape) for each in features} == city_zones()


def test_the_city_has_every_kind_of_shape_and_a_hole() -> None:
    kinds = {type(shape).__name__ for shape in city_zones().values()}
    assert kinds == {"Polygon", "Rectangle", "Circle"}
    assert len(city_zones()["Lake_Park"].coordinates) == 2


def test_vans_come_into_every_place_and_out_of_it() -> None:
    rng = random.Random(1)
    traveller = set_out(CITY, rng.random)
    areas = {name: prepare(shape) for name, shape in city_zones().items()}
    seen: dict[str, set[bool]] = {name: set() for name in areas}
    for _ in range(20_000):
        traveller = drive(CITY, traveller, 30.0, rng.random)
        point = position(CITY, traveller)
        for name, area in areas.items():
            seen[name].add(area.covers(point))
    assert {name for name, answers in seen.items() if answers != {True, False}} == set()


def test_blocks_are_as_long_as_they_say() -> None:
    west, south = CITY.south_west
    assert distance_m((west, south), (west + CITY.step[0], south)) == pytest.approx(CITY.block_m[0], rel=0.005)
    assert distance_m((west, south), (west, south + CITY.step[1])) == pytest.approx(CITY.block_m[1], rel=0.005)
