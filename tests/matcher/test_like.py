"""LIKE: what it matches, and that no pattern and no text make it slow."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matcher.selector.like import has_dangling_escape, like


def positions_like(text: str, pattern: str, escape: str | None) -> bool:
    """By the set of places in the text that a beginning of the pattern can reach."""
    reached, signs = {0}, iter(pattern)
    for sign in signs:
        if sign == "%" and sign != escape:
            reached = {at for at in range(len(text) + 1) if any(begun <= at for begun in reached)}
        else:
            any_one = sign == "_" and sign != escape
            wanted = next(signs) if sign == escape else sign
            reached = {at + 1 for at in reached if at < len(text) and (any_one or text[at] == wanted)}
    return len(text) in reached


@pytest.mark.parametrize(
    ("text", "pattern", "escape", "matches"),
    [
        ("", "", None, True),
        ("", "%", None, True),
        ("", "_", None, False),
        ("12993", "12%3", None, True),
        ("1234", "12%3", None, False),
        ("lose", "l_se", None, True),
        ("loose", "l_se", None, False),
        ("_foo", "\\_%", "\\", True),
        ("bar", "\\_%", "\\", False),
        ("100%", "100!%", "!", True),
        ("100 percent", "100!%", "!", False),
        ("a", "A", None, False),
        ("日本", "__", None, True),
        ("a\nb", "a_b", None, True),
        (".*", ".*", None, True),
        ("ab", ".*", None, False),
        ("aba", "%ab%ba%", None, False),
        ("a?\x01a", "%%%??_%", None, False),
    ],
)
def test_like(text: str, pattern: str, escape: str | None, matches: bool) -> None:
    assert like(text, pattern, escape) is matches


@given(st.randoms(use_true_random=False), st.sampled_from(["ab", "ab\x01 ", "a日b", "é\x01?a"]), st.booleans())
@settings(max_examples=1500)
def test_like_is_what_trying_all_places_gives(rng: Random, letters: str, is_long: bool) -> None:
    text = "".join(rng.choice(letters) for _ in range(rng.randrange(12))) * (50 if is_long else 1)
    pattern = "".join(rng.choice(letters + "__%%") for _ in range(rng.randrange(10)))
    escape = rng.choice((None, "!", "a", "%", "_"))
    if not has_dangling_escape(pattern, escape):
        assert like(text, pattern, escape) is positions_like(text, pattern, escape)
