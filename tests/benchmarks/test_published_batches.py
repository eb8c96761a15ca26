"""The benchmark of published batches, at a size that only shows that its answers are held to the reference."""

import pytest

from benchmarks.published_batches import BenchmarkFailed, Options, _check, _Scene, measure_once

SMALL = Options(fences=60, vans=40, batch=50, batches=4, step_m=400.0)


def test_the_reference_tells_of_enters_and_leaves_in_turn() -> None:
    inside: set[tuple[str, str]] = set()
    edges = _Scene(SMALL).edges
    assert edges
    for oid, _, target, mode in sorted(edges, key=lambda edge: edge[1]):
        assert ((oid, target) in inside) is (mode == "leave")
        inside ^= {(oid, target)}


def test_a_lost_notification_leaves_no_figures() -> None:
    edges = _Scene(SMALL).edges
    with pytest.raises(BenchmarkFailed, match="1 are wrong"):
        _check(edges, edges[1:])


@pytest.mark.slow
def test_a_real_server_tells_what_the_reference_says() -> None:
    figures = measure_once(SMALL)
    assert figures["one_subscription"]["server_cpu_us_per_fix"] >= 0
    assert figures["in_process"]["fixes"] == SMALL.batches * SMALL.batch
