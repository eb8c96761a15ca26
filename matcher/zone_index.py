"""The server's index of zones: which of them cover a point, for one fix and for batches of them.

It says exactly what `matcher.places.Place.covers` says of each zone, on edges, corners, rims, the antimeridian and the
poles too. Compiled code (`matcher.engines.points`) answers where there is no doubt, and that is nearly everywhere; the
rest is asked of the zone itself. What is not on the globe (`zones.validation.check_point`) is in no zone.

Zones come and go at the cost of what they touch: the grid they are shared out in divides itself where they crowd, and
is never built anew. One thread uses it. Where numba is not there, or not warm yet, `matcher.plain_zone_index` does.
"""

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from matcher.engines.cells import (
    CIRCLE,
    EDGES,
    FAILED,
    FIRST_RECORDS,
    GARBAGE,
    POOL_USED,
    RECORDS_USED,
    RECTANGLE,
    STATE_SIZE,
    compacted,
    place,
    remove,
)
from matcher.engines.points import MANY_NAMES, find, find_many
from zones.circles import bounds_of_circle
from zones.covers import Area, prepare
from zones.geodesy import SEMI_MAJOR_M, SEMI_MINOR_M, reduced_lat
from zones.shapes import Circle, Point, Polygon, Rectangle, Ring, Shape

__all__ = ["ZoneIndex"]

_UNITS = 2.0**21  # cells to a degree
_FIRST_SLOTS = 64
_FIRST_FOUND = 256
_FEW_WORDS = 1 << 14

# What a zone may cause to be written, in words of eight bytes.
_BUDGET, _BUDGET_OF_POINT, _BUDGET_OF_FIGURE = 64, 16, 64

# More than what the sines of two libraries differ by; 0.1 µm.
_CHORD_ERROR = 1.6e-14

_NO_POINTS = np.empty((0, 2))
_BREAK = (math.nan, math.nan)


class ZoneIndex:
    """Zones by key, each with a slot: a small number that stays the zone's own until it is removed."""

    def __init__(self, zones: Iterable[tuple[Hashable, Shape]] = ()) -> None:
        self.keys: list[Hashable] = []  # by slot; None where there is no zone
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._shapes: list[Shape | None] = []
        self._areas: dict[int, Area] = {}  # of zones that the plain code was asked about
        self._ends: dict[int, Area] = {}  # of zones that reach the antimeridian or a pole
        self._end_boxes: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        self._records = np.zeros((FIRST_RECORDS * 16, 4), np.int32)
        self._pool = np.empty(_FEW_WORDS, np.int64)
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._state[RECORDS_USED] = FIRST_RECORDS
        self._figures = np.zeros((_FIRST_SLOTS, 8))
        self._reaches = np.zeros((_FIRST_SLOTS, 4), np.int64)
        self._spent = np.zeros(_FIRST_SLOTS, np.int64)
        self._budget = np.zeros(_FIRST_SLOTS, np.int64)
        self._found = _pairs(_FIRST_FOUND)
        for key, shape in zones:
            self.put(key, shape)
        self._compact()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._slots

    @property
    def nbytes(self) -> int:
        """The memory of its arrays."""
        arrays = (self._records, self._pool, self._figures, self._reaches, self._spent, self._budget)
        return sum(array.nbytes for array in arrays)

    def key_of(self, slot: int) -> Hashable:
        return self.keys[slot]

    def slot_of(self, key: Hashable) -> int:
        return self._slots[key]

    def put(self, key: Hashable, shape: Shape) -> None:
        """A new zone, or a new shape for one, which keeps its slot."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._new_slot(key)
        else:
            self._take_out(slot)
        self._shapes[slot] = shape
        kind, points = self._describe(slot, shape)
        while True:
            place(
                self._records, self._pool, self._state, self._spent, self._budget, self._figures, self._reaches,
                slot, kind, points,
            )  # fmt: skip
            if not self._state[FAILED]:
                return
            remove(self._records, self._pool, self._state, slot, self._reaches[slot])
            self._make_room()

    def remove(self, key: Hashable) -> None:
        """Forget a zone; its slot may be another's from now on."""
        slot = self._slots.pop(key)
        self._take_out(slot)
        self.keys[slot] = self._shapes[slot] = None
        self._free.append(slot)
        if self._state[GARBAGE] > max(_FEW_WORDS, self._state[POOL_USED] // 2):
            self._compact()

    def covering(self, point: Point) -> list[Hashable]:
        """The keys of the zones that cover a point, in no order."""
        lon, lat = float(point[0]), float(point[1])
        rows, found = self._found
        count = find(self._records, self._pool, self._figures, lon, lat, 0, rows, found, 0)
        while count < 0:
            rows, found = self._found = _pairs(2 * len(found))
            count = find(self._records, self._pool, self._figures, lon, lat, 0, rows, found, 0)
        keys = self.keys
        slots = found[:count].tolist()
        if not slots or min(slots) >= 0:
            return [keys[slot] for slot in slots]
        return [keys[slot] for slot in self._settled(lon, lat, slots)]

    def covering_many(
        self, lons: NDArray[np.float64], lats: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of the row of a point and the slot of a zone that covers it, in the order of the rows."""
        lons, lats = _as_compiled(lons), _as_compiled(lats)
        if len(lons) != len(lats):
            raise ValueError(f"there are {len(lons)} longitudes and {len(lats)} latitudes")
        row, total = 0, len(lons)
        found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        while True:
            rows, slots = _pairs(max(_FIRST_FOUND, 2 * total) << len(found))
            count, row, doubts, _ = find_many(self._records, self._pool, self._figures, lons, lats, row, rows, slots)
            rows, slots = rows[:count], slots[:count]
            if doubts:
                rows, slots = self._settled_many(lons, lats, rows, slots)
            found.append((rows, slots))
            if row == total:
                break
        if len(found) == 1:
            return found[0]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([slots for _, slots in found])

    # --- doubts ---------------------------------------------------------------------------------------------

    def _settled(self, lon: float, lat: float, found: Sequence[int]) -> list[int]:
        if found[0] == MANY_NAMES:
            return self._at_an_end(lon, lat)
        point = (lon, lat)
        return [slot if slot >= 0 else ~slot for slot in found if slot >= 0 or self._area(~slot).covers(point)]

    def _settled_many(
        self,
        lons: NDArray[np.float64],
        lats: NDArray[np.float64],
        rows: NDArray[np.int64],
        slots: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        more_rows, more_slots = [], []
        certain = slots >= 0
        for row, slot in zip(rows[~certain].tolist(), slots[~certain].tolist(), strict=True):
            settled = self._settled(float(lons[row]), float(lats[row]), (slot,))
            more_rows += [row] * len(settled)
            more_slots += settled
        rows = np.concatenate([rows[certain], np.asarray(more_rows, np.int64)])
        slots = np.concatenate([slots[certain], np.asarray(more_slots, np.int64)])
        order = np.argsort(rows, kind="stable")
        return rows[order], slots[order]

    def _at_an_end(self, lon: float, lat: float) -> list[int]:
        """The zones that cover a point on the antimeridian or a pole."""
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            return []
        if self._end_boxes is None:
            south_north = [(area.bounds[1], area.bounds[3]) for area in self._ends.values()]
            self._end_boxes = np.fromiter(self._ends, np.int64), np.array(south_north).reshape(-1, 2)
        slots, lats = self._end_boxes
        near = slots[(lats[:, 0] <= lat) & (lat <= lats[:, 1])].tolist()
        return [slot for slot in near if self._ends[slot].covers((lon, lat))]

    def _area(self, slot: int) -> Area:
        area = self._areas.get(slot)
        if area is None:
            shape = self._shapes[slot]
            assert shape is not None
            area = self._areas[slot] = prepare(shape)
        return area

    # --- changes --------------------------------------------------------------------------------------------

    def _new_slot(self, key: Hashable) -> int:
        if self._free:
            slot = self._free.pop()
            self.keys[slot] = key
        else:
            slot = len(self.keys)
            self.keys.append(key)
            self._shapes.append(None)
            if slot == len(self._spent):
                self._figures = _doubled(self._figures)
                self._reaches = _doubled(self._reaches)
                self._spent = _doubled(self._spent)
                self._budget = _doubled(self._budget)
        self._slots[key] = slot
        return slot

    def _take_out(self, slot: int) -> None:
        remove(self._records, self._pool, self._state, slot, self._reaches[slot])
        self._areas.pop(slot, None)
        if self._ends.pop(slot, None) is not None:
            self._end_boxes = None

    def _describe(self, slot: int, shape: Shape) -> tuple[int, NDArray[np.float64]]:
        """Write the rows of a slot; what kind of entry the zone is, and its points."""
        figure = self._figures[slot]
        points = _NO_POINTS
        if isinstance(shape, Circle):
            kind = CIRCLE
            west, south, east, north = bounds_of_circle(shape)
            figure[:] = _figure_of_circle(shape)
        elif isinstance(shape, Rectangle):
            kind = RECTANGLE
            west, south, east, north = shape.bbox
            figure[:4] = shape.bbox
        else:
            kind = EDGES
            parts = (shape.coordinates,) if isinstance(shape, Polygon) else shape.coordinates
            points = _chains([ring for part in parts for ring in part])
            west, south = np.fmin.reduce(points).tolist()
            east, north = np.fmax.reduce(points).tolist()
        if west > east or west <= -180 or east >= 180 or south <= -90 or north >= 90:
            self._ends[slot] = self._area(slot)
            self._end_boxes = None
        if west > east:
            west, east = -180.0, 180.0
        # One more each way: a zone is also put in the cells that it only nearly meets.
        self._reaches[slot] = (
            int((west + 180) * _UNITS) - 1,
            int((south + 90) * _UNITS) - 1,
            int((east + 180) * _UNITS) + 1,
            int((north + 90) * _UNITS) + 1,
        )
        self._budget[slot] = _BUDGET + _BUDGET_OF_POINT * len(points) if kind == EDGES else _BUDGET_OF_FIGURE
        return kind, points

    def _make_room(self) -> None:
        self._state[FAILED] = 0
        if self._state[RECORDS_USED] + FIRST_RECORDS > len(self._records):
            self._records = _doubled(self._records)
            return
        room = len(self._pool)
        is_half_garbage = self._state[GARBAGE] > room // 2
        self._pool = compacted(self._records, self._pool, self._state, room if is_half_garbage else 2 * room)

    def _compact(self) -> None:
        """Give back what is not in use, but for a quarter."""
        used = int(self._records[: self._state[RECORDS_USED], 2].sum(dtype=np.int64))
        self._pool = compacted(self._records, self._pool, self._state, used + used // 4 + _FEW_WORDS)


def _figure_of_circle(circle: Circle) -> tuple[float, ...]:
    """Its centre on the sphere of `zones.geodesy`, squared chords of what is certainly in and not certainly out, and
    itself."""
    lon, lat = circle.center
    beta, lam = reduced_lat(lat), math.radians(lon)
    near = 2 * math.sin(circle.radius_m / SEMI_MAJOR_M / 2) - _CHORD_ERROR
    far = 2 * math.sin(circle.radius_m / SEMI_MINOR_M / 2) + _CHORD_ERROR
    return (
        math.cos(beta) * math.cos(lam),
        math.cos(beta) * math.sin(lam),
        math.sin(beta),
        near * near if near > 0 else -1.0,
        far * far,
        lon,
        lat,
        circle.radius_m,
    )


def _chains(rings: Sequence[Ring]) -> NDArray[np.float64]:
    """The points of all rings, with not-a-number between two of them."""
    if len(rings) == 1:
        return np.array(rings[0], np.float64)
    return np.array([point for ring in rings for point in (*ring, _BREAK)][:-1], np.float64)


def _pairs(room: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.empty(room, np.int64), np.empty(room, np.int64)


def _as_compiled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Arrays of one type: of another, such as one that can't be written to, the code would be compiled once more."""
    if type(values) is not np.ndarray or values.dtype != np.float64:
        values = np.array(values, np.float64)
    flags = values.flags
    return values if flags.carray and flags.writeable else values.copy()


def _doubled(array: np.ndarray) -> np.ndarray:
    return np.concatenate([array, np.zeros_like(array)])
