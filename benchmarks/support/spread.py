"""Several measurements of one thing as one: never a mean alone, always how far they lie apart."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

__all__ = ["lines", "percentile", "spread"]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of them does not exceed; None if there are none."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def spread(runs: Sequence[Any]) -> Any:
    """Runs of the same form as one of that form, with `{median, min, max}` in place of each number."""
    first = runs[0]
    if isinstance(first, dict):
        return {name: spread([run[name] for run in runs]) for name in first}
    known = [run for run in runs if run is not None]
    if not known:
        return None
    return {"median": median(known), "min": min(known), "max": max(known)}


def lines(figures: Any, name: str = "") -> Iterator[str]:
    """The figures for people: one a line, with how far the runs lie apart."""
    if isinstance(figures, dict) and set(figures) != {"median", "min", "max"}:
        for key, value in figures.items():
            yield from lines(value, f"{name}.{key}" if name else key)
    elif isinstance(figures, dict):
        apart = "" if figures["min"] == figures["max"] else f"  ({figures['min']:g} to {figures['max']:g})"
        yield f"{name:<60} {figures['median']:g}{apart}"
    else:
        yield f"{name:<60} {figures}"
