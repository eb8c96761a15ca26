"""What the four benchmarks of the publication's evaluation have in common: sizes, seeds, and where results go.

A result is a JSON file for programs, and a table in Markdown and a plot for people, all of the same run.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from benchmarks.results_file import document, save_result
from benchmarks.support.measurement_command import positive_int
from benchmarks.support.spread import spread
from benchmarks.support.true_relations import AnswerWrong

__all__ = ["Question", "answer", "as_table", "main_of", "shown"]

Options = TypeVar("Options", bound=msgspec.Struct)


class Question(msgspec.Struct, Generic[Options], frozen=True):
    """One benchmark. Options have a field `seed`; each run has the next one."""

    name: str
    about: str | None
    full: Options
    small: Options
    measure: Callable[[Options], dict[str, Any]]
    table: Callable[[dict[str, Any]], str]
    plot: Callable[[dict[str, Any], Path], None]
    published: dict[str, Any]  # what the publication says, to be read beside ours


def answer(
    question: Question[Options],
    *,
    is_small: bool = False,
    runs: int = 2,
    seed: int = 1,
    say: Callable[[str], None] = lambda _: None,
    **given: Any,
) -> dict[str, Any]:
    """The figures: of the small size, and unless that is all that is wanted, of the full one."""

    def measure(options: Options, count: int) -> Any:
        figures = []
        for run in range(count):
            say(f"{question.name}, {'full' if options is question.full else 'small'} size, seed {seed + run}.")
            figures.append(question.measure(msgspec.structs.replace(options, seed=seed + run, **given)))
        return spread(figures)

    options = question.small if is_small else question.full
    head = {"runs": runs, "options": _shown_options(options), "published": question.published}
    if is_small:
        return {**head, "small": measure(options, runs)}
    small = measure(question.small, 1)  # warms up too
    return {**head, "small": small, "large": measure(options, runs)}


def main_of(question: Question[Options], argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{question.name}",
        description=question.about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="only the small size, in seconds")
    parser.add_argument("--runs", type=positive_int, default=2, metavar="K", help="seeds (default: 2)")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next has the next one (default: 1)")
    if "data" in question.full.__struct_fields__:
        parser.add_argument("--data", metavar="FOLDER", help="real regions (default: ../shared/data)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="also write a .json, a .md and a .png there")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object and nothing else")
    args = parser.parse_args(argv)
    given = {"data": args.data} if getattr(args, "data", None) else {}
    try:
        figures = answer(
            question,
            is_small=args.small,
            runs=args.runs,
            seed=args.seed,
            say=lambda sentence: print(sentence, file=sys.stderr, flush=True),
            **given,
        )
    except (AnswerWrong, FileNotFoundError) as failure:
        print(failure, file=sys.stderr)
        return 1
    table = question.table(figures.get("large") or figures["small"])
    if args.out is not None:
        save_result(args.out, question.name, figures)
        (args.out / f"{question.name}.md").write_text(table, encoding="utf-8")
        question.plot(figures.get("large") or figures["small"], args.out / f"{question.name}.png")
    print(json.dumps(document(question.name, figures)) if args.json else table)
    return 0


def as_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """In Markdown; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def shown(figure: dict[str, float] | None, unit: str = "") -> str:
    """A figure with how far its runs lie apart."""
    if figure is None:
        return "-"
    low, middle, high = (f"{figure[key]:.3g}" for key in ("min", "median", "max"))
    return f"{middle}{unit}" if low == high else f"{middle}{unit} ({low}-{high})"


def _shown_options(options: msgspec.Struct) -> dict[str, Any]:
    """Without the folder, which is of one machine."""
    return {name: value for name, value in msgspec.structs.asdict(options).items() if name != "data"}
