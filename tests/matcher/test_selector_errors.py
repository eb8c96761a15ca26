"""What a person is told who gets a selector wrong: where, what was expected there, and what to write instead."""

import pytest

from matcher.errors import SelectorError
from matcher.selector.parser import MAX_BYTES, parse_selector
from tests.matcher.mistakes import MISTAKES


@pytest.mark.parametrize(("text", "column", "sentence", "hint"), MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_pointed_at_and_explained(text: str, column: int, sentence: str, hint: str) -> None:
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)
    error = refused.value
    assert (error.code, error.details["column"]) == ("selector_invalid", column)
    assert error.sentence == sentence
    assert error.hint == hint


def test_the_table_has_forty_different_mistakes() -> None:
    assert len({text for text, *_ in MISTAKES}) >= 40


def refusal(text: str) -> SelectorError:
    with pytest.raises(SelectorError) as refused:
        parse_selector(text)
    return refused.value


def test_a_selector_has_8192_bytes_at_most() -> None:
    longest = "name = '" + "é" * ((MAX_BYTES - 9) // 2) + "'"
    longest += " " * (MAX_BYTES - len(longest.encode()))
    assert len(longest.encode()) == 8192
    parse_selector(longest)
    error = refusal(longest + " ")
    assert (error.code, error.details["column"]) == ("selector_too_long", len(longest) + 1)
    assert error.sentence == "The selector has 8193 bytes; 8192 are allowed."


@pytest.mark.parametrize(
    ("opening", "core", "closing", "column"),
    [("(", "a = 1", ")", 32), ("NOT ", "a = 1", "", 1), ("-", "a", " = 1", 1), ("(", "a", ") = 1", 32)],
    ids=["conditions", "negations", "signs", "values"],
)
def test_a_selector_is_nested_32_deep_at_most(opening: str, core: str, closing: str, column: int) -> None:
    def nested(levels: int) -> str:
        behind = closing.removesuffix(" = 1") * levels + (" = 1" if closing.endswith(" = 1") else "")
        return opening * levels + core + behind

    parse_selector(nested(30))
    error = refusal(nested(31))
    assert error.code == "selector_too_deep"
    assert error.details["column"] == column
    assert error.sentence == f"The selector is nested more than 32 levels deep, from column {column} on."


def test_a_selector_has_256_terms_at_most() -> None:
    terms = [f"a = {n}" for n in range(257)]
    parse_selector(" OR ".join(terms[:256]))
    text = " OR ".join(terms)
    error = refusal(text)
    assert (error.code, error.details["column"]) == ("selector_too_complex", text.rindex("a = 256") + 1)
    assert error.sentence == f"The selector has more than 256 terms, from column {text.rindex('a = 256') + 1} on."


def test_terms_are_counted_in_all_brackets_together() -> None:
    group = "(" + " OR ".join(f"a = {n}" for n in range(200)) + ")"
    assert refusal(f"NOT {group} AND {group}").code == "selector_too_complex"


def test_a_selector_comes_to_256_filters_at_most() -> None:
    either = "(a = 1 OR b = 2)"
    parse_selector(" AND ".join([either] * 8))
    error = refusal(" AND ".join([either] * 8 + ["(c = 1 OR d = 1)"]))
    assert error.code == "selector_too_complex"
    assert error.details["filters"] == 512
    assert error.sentence.startswith("The selector comes to 512 filters when every OR is written out; 256 filters")


def test_filters_of_a_negation_are_counted_the_other_way_round() -> None:
    both = "(a = 1 AND b = 2)"
    parse_selector(" AND ".join([both] * 9))
    assert refusal("NOT (" + " OR ".join([both] * 9) + ")").code == "selector_too_complex"


def test_many_long_filters_are_too_complex_too() -> None:
    """17 terms in each of 256 filters: the number of terms written out is bounded as well."""
    eight = " AND ".join(["(a = 1 OR b = 2)"] * 8)
    nine = " AND ".join(f"c{n} = 1" for n in range(9))
    error = refusal(f"{eight} AND {nine}")
    assert error.code == "selector_too_complex"
    assert "256 filters of 4352 terms in all" in error.sentence


def test_what_is_quoted_from_a_selector_can_be_printed() -> None:
    error = refusal("(mike) within (POLYGON(\n(0 0,\n1 0, 1 1, 0 0))) \u202e\x1b[31m")
    assert error.sentence.isprintable()
    error = refusal("a = 1 '\x1b[31m'")
    assert error.sentence == "Expected AND, OR or the end after '1' at column 7, but found '\\u{1b}[31m'."


@pytest.mark.parametrize("number", ["9" * 4000, "1e999", "9" * 4000 + "e9"], ids=["long", "infinite", "both"])
def test_a_third_number_in_a_shape_is_not_repeated_at_length(number: str) -> None:
    for shape in (f"POLYGON((0 0 {number}, 1 0, 1 1, 0 0))", f"POLYGON((0 {number}, 1 0, 1 1, 0 0))"):
        assert len(refusal(f"(mike) within ({shape})").sentence) < 300
