"""The index of zones without compiled code, for as long as that is not warm, and where there is none.

The same questions and the same answers as `matcher.zone_index`: a tree of boxes finds who may cover a point, and the
zone itself says whether it does. The tree does not change: zones that came later are tried one by one, until there
are so many that making it anew pays.
"""

from collections.abc import Hashable, Iterable

import numpy as np
import shapely
from numpy.typing import NDArray

from zones.covers import Area, prepare
from zones.shapes import Point, Shape

__all__ = ["PlainZoneIndex"]

_FEW = 64


class PlainZoneIndex:
    """Zones by key, each with a slot: a small number that stays the zone's own until it is removed."""

    def __init__(self, zones: Iterable[tuple[Hashable, Shape]] = ()) -> None:
        self.keys: list[Hashable] = []  # by slot; None where there is no zone
        self._slots: dict[Hashable, int] = {}
        self._free: list[int] = []
        self._areas: dict[int, Area] = {}
        self._recent: dict[int, Area] = {}  # not in the tree yet
        self._tree = shapely.STRtree([])
        self._packed: list[tuple[int, Area]] = []  # by place in the tree; who has left or changed is there still
        for key, shape in zones:
            self.put(key, shape)

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._slots

    def key_of(self, slot: int) -> Hashable:
        return self.keys[slot]

    def slot_of(self, key: Hashable) -> int:
        return self._slots[key]

    def put(self, key: Hashable, shape: Shape) -> None:
        """A new zone, or a new shape for one, which keeps its slot."""
        area = prepare(shape)
        slot = self._slots.get(key)
        if slot is None:
            if self._free:
                slot = self._free.pop()
                self.keys[slot] = key
            else:
                slot = len(self.keys)
                self.keys.append(key)
            self._slots[key] = slot
        self._areas[slot] = self._recent[slot] = area

    def remove(self, key: Hashable) -> None:
        """Forget a zone; its slot may be another's from now on."""
        slot = self._slots.pop(key)
        del self._areas[slot]
        self._recent.pop(slot, None)
        self.keys[slot] = None
        self._free.append(slot)

    def covering(self, point: Point) -> list[Hashable]:
        """The keys of the zones that cover a point, in no order."""
        return [self.keys[slot] for slot in self._covering(float(point[0]), float(point[1]))]

    def covering_many(
        self, lons: NDArray[np.float64], lats: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of the row of a point and the slot of a zone that covers it, in the order of the rows."""
        if len(lons) != len(lats):
            raise ValueError(f"there are {len(lons)} longitudes and {len(lats)} latitudes")
        rows, slots = [], []
        points = zip(np.asarray(lons, np.float64).tolist(), np.asarray(lats, np.float64).tolist(), strict=True)
        for row, (lon, lat) in enumerate(points):
            found = self._covering(lon, lat)
            rows += [row] * len(found)
            slots += found
        return np.array(rows, np.int64), np.array(slots, np.int64)

    def _covering(self, lon: float, lat: float) -> list[int]:
        if not (-180 <= lon <= 180 and -90 <= lat <= 90):
            return []
        if len(self._recent) > max(_FEW, len(self._packed) // 8):
            self._pack()
        point = (lon, lat)
        found = [slot for slot, recent in self._recent.items() if recent.covers(point)]
        for slot, area in {self._packed[place] for place in self._tree.query(shapely.Point(lon, lat)).tolist()}:
            is_current = self._areas.get(slot) is area
            if is_current and area.covers(point):
                found.append(slot)
        return found

    def _pack(self) -> None:
        boxes = [(box, slot, area) for slot, area in self._areas.items() for box in area.boxes]
        self._tree = shapely.STRtree(shapely.box(*np.array([box for box, _, _ in boxes]).reshape(-1, 4).T))
        self._packed = [(slot, area) for _, slot, area in boxes]
        self._recent.clear()
