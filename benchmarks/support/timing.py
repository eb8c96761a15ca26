"""Time of the thread for each of many distinct questions, each asked once."""

from collections.abc import Callable, Iterable, Sequence
from time import thread_time
from typing import TypeVar

__all__ = ["mean_ms", "timed"]

Q = TypeVar("Q")
A = TypeVar("A")


def timed(answer: Callable[[Q], A], questions: Iterable[Q]) -> tuple[list[A], list[float]]:
    """The answers, and the seconds of CPU that each took."""
    answers, seconds = [], []
    for question in questions:
        began = thread_time()
        found = answer(question)
        seconds.append(thread_time() - began)
        answers.append(found)
    return answers, seconds


def mean_ms(seconds: Sequence[float]) -> float:
    return float(f"{sum(seconds) / len(seconds) * 1e3:.4g}")
