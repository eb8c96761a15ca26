"""The benchmark of fixes in zones measures right answers only."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import points_in_zones
from benchmarks.points_in_zones import BenchmarkFailed, Options, measure_once

SMALL = Options((300,), 1_000, 100)


@pytest.mark.slow
def test_overlapping_zones_are_measured() -> None:
    figures = measure_once(Path(), "overlapping", 300, SMALL)
    assert figures["zones_per_point"] > 1.5
    assert figures["points_in_some_zone"] > 0.5
    assert min(figures[name] for name in figures if name.endswith("_us")) > 0


@pytest.mark.slow
def test_areas_are_measured(shared_data: Path) -> None:
    figures = measure_once(shared_data, "areas", 300, SMALL)
    assert figures["points_in_some_zone"] > 0.5


@pytest.mark.parametrize("change", ["one too few", "one too many"])
def test_a_wrong_answer_gives_no_figures(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = points_in_zones.ZoneIndex.covering_many

    def wrong(self, lons, lats):
        rows, slots = right(self, lons, lats)
        if change == "one too few":
            return rows[:-1], slots[:-1]
        everything = set(range(len(self)))
        other = min(everything - set(slots[rows == rows[-1]].tolist()))
        return np.append(rows, rows[-1]), np.append(slots, other)

    monkeypatch.setattr(points_in_zones.ZoneIndex, "covering_many", wrong)
    with pytest.raises(BenchmarkFailed):
        measure_once(Path(), "overlapping", 300, SMALL)
