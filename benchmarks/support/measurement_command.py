"""The command line that benchmarks have in common: runs, seeds, and where results go.

A benchmark adds its own options, and gives a function that measures. If that finds a wrong answer there are no figures,
one sentence says so, and the command has failed.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.results_file import document, save_result
from benchmarks.support.spread import lines

__all__ = ["BenchmarkFailed", "Say", "command", "measured", "positive_int"]

Say = Callable[[str], None]


class BenchmarkFailed(Exception):
    """An answer was wrong, or something did not stay up; there are no figures then."""


def command(name: str, about: str | None, *, runs: int = 3) -> argparse.ArgumentParser:
    """A parser with the options that all of them have."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=positive_int, default=runs, metavar="K", help=f"at full size (default: {runs})")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next has the next one (default: 1)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"also write FOLDER/{name}.json")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object and nothing else")
    return parser


def measured(
    name: str,
    args: argparse.Namespace,
    measure: Callable[[Say], dict[str, Any]],
    *,
    draw: Callable[[dict[str, Any], Path], None] | None = None,
) -> int:
    """Measure, save and print; the command's exit code. `draw` makes a picture beside the file."""
    try:
        figures = measure(lambda sentence: print(sentence, file=sys.stderr, flush=True))
    except BenchmarkFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    if args.out is not None:
        saved = save_result(args.out, name, figures)
        if draw is not None:
            draw(figures, saved.with_suffix(".png"))
    print(json.dumps(document(name, figures)) if args.json else "\n".join(lines(figures)))
    return 0


def positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number
