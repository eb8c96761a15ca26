"""Plots of results, for people. matplotlib is a developer's library: nothing else imports this module."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["Line", "draw_bars", "draw_lines", "middle"]

mpl.use("Agg")

# Colours that people with any kind of colour vision tell apart (Okabe and Ito).
_BLACK, _ORANGE, _BLUE, _GREEN, _RED, _GREY = "#000000", "#E69F00", "#0072B2", "#009E73", "#D55E00", "#888888"
COLOURS = {"ours": _BLACK, "exact": _BLUE, "exact_2": _GREEN, "approximate": _ORANGE, "index": _RED, "other": _GREY}
_DPI = 110

Spread = Mapping[str, float]  # median, min, max


class Line:
    """One line: its name, what it is at each place, and how it looks."""

    def __init__(
        self, label: str, points: Mapping[str, Spread], colour: str, style: str = "-", *, shows_spread: bool = True
    ) -> None:
        self.label, self.points, self.colour, self.style = label, points, colour, style
        self._shows_spread = shows_spread

    def draw(self, axes: Any) -> None:
        xs = [float(x) for x in self.points]
        axes.plot(
            xs,
            [point["median"] for point in self.points.values()],
            self.style,
            color=COLOURS[self.colour],
            label=self.label,
            marker="o",
            markersize=3.5,
            linewidth=2 if self.colour == "ours" else 1.4,
        )
        if not self._shows_spread:
            return
        axes.fill_between(
            xs,
            [point["min"] for point in self.points.values()],
            [point["max"] for point in self.points.values()],
            color=COLOURS[self.colour],
            alpha=0.15,
            linewidth=0,
        )


def draw_lines(
    panels: Mapping[str, Sequence[Line]], path: Path, *, x: str, y: str, is_log: bool = True, columns: int | None = None
) -> None:
    """A panel beside the other, on one scale; with `columns` in several rows, each panel on a scale of its own."""
    wide = columns or len(panels)
    rows = -(-len(panels) // wide)
    figure = Figure(figsize=(0.8 + 4.4 * max(wide, 1.4), 1 + 3.6 * rows), layout="constrained")
    every: Any = figure.subplots(rows, wide, sharey=columns is None, squeeze=False)
    for axes, (name, lines) in zip(every.flat, panels.items(), strict=True):
        for line in lines:
            line.draw(axes)
        axes.set_xlim(left=0)
        if is_log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(name, fontsize=10)
        axes.grid(True, which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in every[-1]:
        axes.set_xlabel(x)
    for axes in every[:, 0]:
        axes.set_ylabel(y)
    handles, labels = every[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, wide + 1), fontsize=8, frameon=False)
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})


def draw_bars(
    panels: Mapping[str, Mapping[str, Sequence[float | None]]],
    groups: Sequence[str],
    colours: Mapping[str, str],
    path: Path,
    *,
    y: str,
    title: str = "",
) -> None:
    """A panel beside the other; in each a group of bars for each of `groups`, a bar for each name. None is no bar."""
    figure = Figure(figsize=(0.8 + 3.9 * len(panels), 4.6), layout="constrained")
    every: Any = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (name, bars) in zip(every, panels.items(), strict=True):
        width = 0.8 / len(bars)
        for number, (label, heights) in enumerate(bars.items()):
            places = [group + (number - (len(bars) - 1) / 2) * width for group in range(len(groups))]
            known = [(place, height) for place, height in zip(places, heights, strict=True) if height is not None]
            axes.bar(
                [place for place, _ in known],
                [height for _, height in known],
                width * 0.92,
                color=COLOURS[colours[label]],
                label=label,
                hatch="//" if "published" in label else None,
                edgecolor="white",
                linewidth=0,
            )
        axes.set_yscale("log")
        axes.set_xticks(range(len(groups)), groups)
        axes.set_title(name, fontsize=10)
        axes.grid(True, axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    every[0].set_ylabel(y)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=_DPI, metadata={"Software": None})


def middle(figure: Spread | None) -> float | None:
    return None if figure is None else figure["median"]
