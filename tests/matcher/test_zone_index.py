"""The index of zones says what each zone says, of every point, through all changes."""

import gzip
import json
import math
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matcher.engines.cells import TOP, reference_point
from matcher.engines.points import _distance_m
from matcher.places import Place
from matcher.plain_zone_index import PlainZoneIndex
from matcher.zone_index import ZoneIndex
from tests.zones.reference import corners
from tests.zones.strategies import circles, points, quantised, shapes
from zones.errors import ShapeInvalid
from zones.geodesy import destination, distance_m
from zones.geojson import geometry_from_geojson, without_repeats
from zones.shapes import Circle, MultiPolygon, Polygon, Rectangle
from zones.validation import check_shape

INDEXES = [ZoneIndex, PlainZoneIndex]
thorough = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


def check(index, zones, places):
    """One by one and all at once, the index says what `zones`, places by key, say."""
    wanted = [{key for key, zone in zones.items() if zone.covers(place)} for place in places]
    found = [index.covering(place) for place in places]
    assert [len(each) for each in found] == [len(set(each)) for each in found]
    assert [set(each) for each in found] == wanted
    rows, slots = index.covering_many(*np.array(places, np.float64).reshape(-1, 2).T)
    assert (np.diff(rows) >= 0).all()
    by_row = [set() for _ in places]
    for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
        by_row[row].add(index.key_of(slot))
    assert by_row == wanted
    assert len(rows) == sum(map(len, wanted))
    assert len(index) == len(zones)
    assert all(key in index for key in zones)


def places_near(shape, rng):
    """Corners, points on and next to edges and rims, and the ends of the map."""
    if isinstance(shape, Circle):
        for _ in range(6):
            bearing, apart = rng.uniform(0, 360), rng.choice([0, 1e-9, -1e-9, 1e-8, -1e-8, 0.004, -0.02, 1])
            yield destination(shape.center, bearing, max(shape.radius_m + apart, 0))
            yield destination(shape.center, bearing, shape.radius_m * rng.uniform(0.99, 1.01))
        yield shape.center
        return
    spots = corners(shape)
    yield from rng.sample(spots, min(len(spots), 8))
    for _ in range(6):
        (lon_a, lat_a), (lon_b, lat_b) = rng.choice(spots), rng.choice(spots)
        share = rng.choice([0.5, rng.random()])
        lon, lat = lon_a + (lon_b - lon_a) * share, lat_a + (lat_b - lat_a) * share
        yield lon, lat
        yield quantised(lon), quantised(lat)
        yield max(-180.0, min(180.0, lon + rng.choice([-(2**-40), 2**-40, 2**-7]))), lat
        yield float(round(lon)), float(round(lat))
        yield rng.choice([180.0, -180.0, math.nextafter(180, 0)]), lat
        yield lon, rng.choice([90.0, -90.0, math.nextafter(-90, 0)])


def crowd(rng, count, lon, lat, size):
    """Zones of all kinds on top of each other, half of them with corners on a lattice."""
    found = []
    while len(found) < count:
        is_drawn_on_lattice = rng.random() < 0.5
        at = [rng.uniform(-size, size) for _ in range(2)]
        kind = rng.randrange(4)
        if kind == 0:
            shape = Circle((lon + at[0], lat + at[1]), rng.uniform(0.02, 0.5) * size * 111_000)
        elif kind == 1:
            x, y = sorted(rng.sample(range(-8, 9), 2)), sorted(rng.sample(range(-8, 9), 2))
            step = size / 8
            shape = Rectangle((lon + x[0] * step, lat + y[0] * step, lon + x[1] * step, lat + y[1] * step))
        else:
            rings = [star(rng, lon + at[0], lat + at[1], size / 2, rng.choice([3, 5, 12, 60]), is_drawn_on_lattice)]
            if kind == 3:
                rings.append(star(rng, lon - at[0], lat - at[1], size / 3, 8, is_drawn_on_lattice))
            shape = MultiPolygon(tuple((ring,) for ring in rings))
            if kind == 3 and rng.random() < 0.5:
                shape = Polygon((rings[0], star(rng, lon + at[0], lat + at[1], size / 20, 5, False)))
        try:
            found.append(check_shape(shape))
        except ShapeInvalid:
            continue
    return found


def star(rng, lon, lat, size, count, is_on_lattice):
    ring = []
    for k in range(count):
        reach, angle = size * rng.uniform(0.5, 1), math.tau * k / count
        x, y = lon + reach * math.cos(angle), lat + reach * math.sin(angle)
        step = size / 32
        ring.append((round(x / step) * step, round(y / step) * step) if is_on_lattice else (x, y))
    return (*ring, ring[0])


@pytest.mark.parametrize("make", INDEXES)
@thorough
@given(st.lists(shapes(), min_size=1, max_size=8), st.lists(points(), max_size=5), st.integers(0, 2**32))
def test_any_zones_anywhere(make, drawn, anywhere, seed):
    rng = Random(seed)
    places = anywhere + [place for shape in drawn for place in places_near(shape, rng)]
    check(make(enumerate(drawn)), {key: Place(shape) for key, shape in enumerate(drawn)}, places)


@pytest.mark.parametrize("make", INDEXES)
@pytest.mark.parametrize(
    ("lon", "lat", "size"),
    [
        (0, 0, 1),
        (13.4, 52.5, 0.05),
        (-0.1, 51.5, 3),
        (179.5, -17, 1),
        (-178, 65, 4),
        (10, 89, 1),
        (100, -85, 6),
        (0, 0, 1e-4),
    ],
)
def test_a_crowd_divides_the_cells_and_nothing_changes(make, lon, lat, size):
    rng = Random(f"{lon} {lat} {size}")
    drawn = crowd(rng, 150, lon, lat, size)
    places = [place for shape in drawn[::3] for place in places_near(shape, rng)]
    step = size / 16
    places += [(lon + rng.randint(-20, 20) * step, lat + rng.randint(-20, 20) * step) for _ in range(200)]
    places += [(lon + rng.uniform(-1, 1) * size, lat + rng.uniform(-1, 1) * size) for _ in range(200)]
    places = [place for place in places if abs(place[0]) <= 180 and abs(place[1]) <= 90]
    check(make(enumerate(drawn)), {key: Place(shape) for key, shape in enumerate(drawn)}, places)


@pytest.mark.parametrize("make", INDEXES)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_zones_come_change_and_go(make, seed):
    rng = Random(seed)
    lon, lat = rng.choice([(0, 0), (179.9, 10), (-60, -89)])
    drawn = crowd(rng, 60, lon, lat, 1)
    index, zones = make(), {}
    for step in range(120):
        key = f"zone {rng.randrange(40)}"
        if rng.random() < 0.35 and key in zones:
            index.remove(key)
            del zones[key]
            assert key not in index
        else:
            shape = rng.choice(drawn)
            index.put(key, shape)
            zones[key] = Place(shape)
        if step % 20 == 19:
            places = [place for shape in rng.sample(drawn, 4) for place in places_near(shape, rng)]
            check(index, zones, [place for place in places if abs(place[0]) <= 180])
    for key in list(zones):
        index.remove(key)
    check(index, {}, [(float(lon), float(lat)), (180.0, 10.0), (0.0, -90.0)])


def test_what_left_gives_its_memory_back():
    rng = Random(1)
    drawn = crowd(rng, 400, 5, 5, 2)
    index = ZoneIndex()
    full, empty = [], []
    for turn in range(8):
        for key, shape in enumerate(drawn):
            index.put((turn, key), shape)
        full.append(index.nbytes)
        for key in range(len(drawn)):
            index.remove((turn, key))
        empty.append(index.nbytes)
    assert len(index) == 0
    assert max(full) <= 2 * full[0]
    assert max(empty) <= 2 * empty[0] < full[0]


@pytest.mark.parametrize("make", INDEXES)
def test_a_zone_keeps_its_slot_when_its_shape_changes(make):
    index = make([("a", Rectangle((0.0, 0.0, 1.0, 1.0))), ("b", Rectangle((0.0, 0.0, 2.0, 2.0)))])
    slot = index.slot_of("b")
    index.put("b", Circle((10.0, 10.0), 100.0))
    assert index.slot_of("b") == slot
    assert index.key_of(slot) == index.keys[slot] == "b"
    assert index.covering((0.5, 0.5)) == ["a"]
    assert index.covering((10, 10)) == ["b"]


@pytest.mark.parametrize("make", INDEXES)
def test_thousands_of_equal_zones_take_memory_by_their_number(make):
    ring = star(Random(1), 5, 5, 1, 60, False)
    index = make((key, Polygon((ring,))) for key in range(2000))
    assert len(index.covering((5.0, 5.0))) == 2000
    assert len(index.covering(ring[7])) == 2000
    rows, slots = index.covering_many(np.array([5.0, 50.0, 5.0]), np.array([5.0, 5.0, 5.0]))
    assert rows.tolist() == [0] * 2000 + [2] * 2000
    assert sorted(slots[:2000].tolist()) == list(range(2000))
    if make is ZoneIndex:
        assert index.nbytes / 2000 < 40_000


@pytest.mark.parametrize("shift", [TOP, TOP - 2, TOP - 8, TOP - 16])
def test_a_boundary_through_a_reference_point_is_left_to_the_plain_code(shift):
    size = 1 << shift
    x, y = reference_point(((180 << 21) // size) * size, ((90 << 21) // size) * size, shift)
    x, y = min(max(x, -179.0), 179.0), min(max(y, -89.0), 89.0)
    away = 2.0**-12 * (1 << (shift // 3))
    away = min(away, 180 - abs(x), 90 - abs(y)) / 2
    zones = [
        Polygon((((x, y), (x + away, y), (x, y + away), (x, y)),)),
        Polygon((((x - away, y), (x + away, y), (x, y + away), (x - away, y)),)),
        Polygon((((x, y - away), (x + away, y), (x, y + away), (x, y - away)),)),
        *(Circle((x, y), away * 1000 * k) for k in range(1, 20)),
    ]
    places = [(x + dx * away / 4, y + dy * away / 4) for dx in range(-5, 6) for dy in range(-5, 6)]
    check(ZoneIndex(enumerate(zones)), {key: Place(shape) for key, shape in enumerate(zones)}, places)


@pytest.mark.parametrize("make", INDEXES)
def test_what_is_not_on_the_globe_is_in_no_zone(make):
    everywhere = Rectangle((-180.0, -90.0, 180.0, 90.0))
    index = make([("all", everywhere), ("over the line", Rectangle((170.0, -90.0, -170.0, 90.0)))])
    outside = [(math.nan, 90.0), (0.0, math.nan), (math.inf, 0.0), (190.0, 0.0), (-180.5, 0.0), (0.0, 90.5)]
    assert [index.covering(place) for place in outside] == [[]] * len(outside)
    rows, slots = index.covering_many(*np.array([*outside, (180.0, 5.0)]).T)
    assert rows.tolist() == [len(outside)] * 2
    assert {index.keys[slot] for slot in slots} == {"all", "over the line"}


@pytest.mark.parametrize("make", INDEXES)
def test_arrays_of_any_kind_are_taken(make):
    index = make([("a", Rectangle((0.0, 0.0, 2.0, 2.0)))])
    table = np.array([[1, 1], [3, 3], [2, 0]])
    frozen = np.array([1.0, 3.0, 2.0])
    frozen.setflags(write=False)
    for lons in (table[:, 0], frozen, frozen.astype(np.float32), [1, 3, 2]):
        rows, slots = index.covering_many(lons, table[:, 1])
        assert rows.tolist() == [0, 2]
        assert slots.tolist() == [0, 0]
    rows, slots = index.covering_many(np.empty(0), np.empty(0))
    assert len(rows) == len(slots) == 0
    with pytest.raises(ValueError, match="long"):
        index.covering_many(np.zeros(2), np.zeros(3))


@thorough
@given(circles(), st.floats(0, 360), st.floats(0, 1.02))
def test_the_compiled_distance_is_right_to_a_tenth_of_its_margin(circle, bearing, share):
    lon, lat = destination(circle.center, bearing, circle.radius_m * share)
    assert abs(_distance_m(*circle.center, lon, lat) - distance_m(circle.center, (lon, lat))) < 5e-4


def test_the_plain_index_needs_no_numba():
    program = "import sys, matcher.plain_zone_index; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["zones_oa_london_se", "zones_communes_rhone", "zones_buildings_bayreuth", "zones_austin_neighbourhoods"]
)
def test_real_zones(shared_data, name):
    """Points in zones, on shared borders, on corners, and next to them; the plain tree of boxes finds who to ask."""
    collection, _ = without_repeats(json.loads(gzip.decompress((shared_data / f"{name}.geojson.gz").read_bytes())))
    drawn = [geometry_from_geojson(feature["geometry"]) for feature in collection["features"][:20_000]]
    index, plain = ZoneIndex(enumerate(drawn)), PlainZoneIndex(enumerate(drawn))
    rng = Random(name)
    places = []
    for shape in rng.sample(drawn, min(len(drawn), 1500)):
        spots = corners(shape)
        (lon_a, lat_a), (lon_b, lat_b) = at = rng.sample(spots, 2)
        places += [*at, (lon_a / 2 + lon_b / 2, lat_a / 2 + lat_b / 2), (lon_a, math.nextafter(lat_a, 90))]
        places += [(lon_a + rng.gauss(0, 1e-3), lat_a + rng.gauss(0, 1e-3)) for _ in range(4)]
        place = rng.randrange(len(spots) - 1)
        (lon_a, lat_a), (lon_b, lat_b) = spots[place : place + 2]
        share = rng.random()
        places += [(lon_a + share * (lon_b - lon_a), lat_a + share * (lat_b - lat_a))]
    for removed in rng.sample(range(len(drawn)), len(drawn) // 10):
        index.remove(removed)
        plain.remove(removed)
    rows, slots = index.covering_many(*np.array(places).T)
    plain_rows, plain_slots = plain.covering_many(*np.array(places).T)
    assert set(zip(rows.tolist(), slots.tolist(), strict=True)) == set(
        zip(plain_rows.tolist(), plain_slots.tolist(), strict=True)
    )
    assert len(rows) == len(plain_rows) > len(places) / 3
