"""Many agents on one server: it stays up, and the subscriber hears exactly what happened. Times are reported only."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.connected_agents import NAME, Options, measure, measure_once


@pytest.mark.slow
def test_sixty_agents_stay_connected_and_the_subscriber_hears_exactly_the_edges() -> None:
    options = Options(agents=60, fixes_per_second=60, seconds=5, processes=2, idle_seconds=0.2)
    run = measure_once(options)  # raises if an edge, a connection or a fix is lost, or too many
    _check(run, options)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_thousand_agents_stay_connected_at_two_hundred_fixes_a_second(
    record_result: Callable[[str, dict[str, Any]], None],
) -> None:
    options = Options(agents=1000, fixes_per_second=200, seconds=60)
    figures = measure(options, runs=3)
    _check(_medians(figures["large"]), options)
    record_result(NAME, figures)


def _check(run: dict[str, Any], options: Options) -> None:
    offloaded, published = run["with_agents"], run["without_agents"]
    fixes = options.timetable.total
    assert offloaded["fixes"] == published["fixes"] == published["messages"]["requests"] == fixes
    assert offloaded["edges"] == published["edges"] > 0  # the same edges, whoever decided
    assert offloaded["messages"]["plans"] == options.agents  # one each, and none again
    assert offloaded["messages"]["hellos_and_welcomes"] == 2 * options.agents
    assert 0 < offloaded["messages"]["reports"] <= offloaded["edges"]
    assert offloaded["messages"]["reports"] < fixes
    assert offloaded["bytes"]["while_driving"] < published["bytes"]["bodies"]
    assert offloaded["memory"]["server_connected_mib"] > 0


def _medians(node: Any) -> Any:
    if isinstance(node, dict) and "median" in node:
        return node["median"]
    return {name: _medians(value) for name, value in node.items()} if isinstance(node, dict) else node
