"""Error codes are promises: each means one thing and is on the reference page."""

import re
from itertools import combinations

from tests.support.error_reference import REFERENCE, error_classes, reference_text
from zones.errors import CallerError, FaultError, PeerError


def test_a_code_belongs_to_one_class() -> None:
    """A class may keep the code of the class above it: it is then the same error, told more exactly."""
    doubled = [
        f"{one.__module__}.{one.__name__} and {other.__module__}.{other.__name__}: {one.code}"
        for one, other in combinations(error_classes(), 2)
        if one.code == other.code and not issubclass(one, other) and not issubclass(other, one)
    ]
    assert doubled == []


def test_codes_are_short_words_with_underscores() -> None:
    assert [
        error.code for error in error_classes() if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", error.code)
    ] == []


def test_an_error_says_whose_fault_it_is() -> None:
    assert [error for error in error_classes() if not issubclass(error, CallerError | PeerError | FaultError)] == []


def test_every_code_is_on_the_reference_page() -> None:
    assert REFERENCE.is_file(), "run: python -m tests.support.error_reference"
    assert REFERENCE.read_text(encoding="utf-8") == reference_text(), "run: python -m tests.support.error_reference"
