"""What was expected where a selector stops being one, in words.

The parser knows which tokens it would have taken; a person wants to hear about zones and conditions.
"""

from collections.abc import Sequence, Set

from lark import Token

from matcher.errors import SelectorInvalid
from matcher.selector.words import KEYWORDS

__all__ = ["unexpected"]

_MAX_SHOWN = 40
_WORDS = {
    "NOT": "NOT", "_NULL": "NULL", "_BETWEEN": "BETWEEN", "_IN": "IN", "_LIKE": "LIKE", "_ESCAPE": "ESCAPE",
    "_AND": "AND", "_OR": "OR", "_LPAR": "'('", "_COMMA": "','", "_RPAR": "')'", "$END": "the end",
}  # fmt: skip
_EXAMPLE = "A selector is a condition, for example (mike) within (SYSTEM.Xidan) AND speed > 5."


def unexpected(text: str, tokens: Sequence[Token], index: int, accepts: Set[str]) -> SelectorInvalid:
    """The error for the token at `index`, or for the end of the text if there is none."""
    if not tokens:
        return SelectorInvalid("Expected a condition at column 1, but the selector is empty.", hint=_EXAMPLE, column=1)
    wanted, hint = _wanted(accepts, tokens[:index])
    if index == len(tokens):
        column = len(text.rstrip()) + 1
        found = "the selector ends"
    else:
        token = tokens[index]
        column = token.start_pos + 1 if token.start_pos is not None else 1
        found = f"found {_shown(str(token))}"
        hint = _hint_for(token, accepts) or hint
    after = f" after {_shown(_before(text, tokens, index))}" if index else ""
    return SelectorInvalid(f"Expected {wanted}{after} at column {column}, but {found}.", hint=hint, column=column)


def _wanted(accepts: Set[str], before: Sequence[Token]) -> tuple[str, str]:
    """What could have stood there, and a hint."""
    if "ZONE" in accepts:
        return "a zone name", "Write OWNER.Name, 'foo@acme.com.Office', OWNER.*, OWNER.#tag or CIRCLE(lon lat, metres)."
    if "NAME" in accepts and "NOT" in accepts:
        return "a condition", _EXAMPLE
    if "NAME" in accepts and "INT" in accepts:
        return "an attribute or a value", "For example speed, 5, 'high' or TIMESTAMP '2026-11-18T07:00:00Z'."
    if "NAME" in accepts:
        return "an object's name", "Write mike, 'foo@acme.com', 'acme/van7', or (*) for every object you may see."
    if "INT" in accepts:
        return "a distance in metres", "Write (mike) distance (500, foo, bar)."
    if "_WITHIN" in accepts:
        return "within, distance or a relation", "Write (mike) within (SYSTEM.Xidan)."
    if accepts == {"STRING"}:
        return "text in single quotes", _string_hint(before)
    words = [word for kind, word in _WORDS.items() if kind in accepts]
    if "COMPARE" in accepts:
        words = ["a comparison", *(word for word in words if word in ("AND", "OR", "')'", "the end"))]
    return _joined(words), "Conditions are joined with AND and OR." if "_AND" in accepts else ""


def _string_hint(before: Sequence[Token]) -> str:
    last = before[-1].type if before else ""
    if last == "_TIMESTAMP":
        return "Write TIMESTAMP '2026-11-18T07:00:00Z'."
    if last == "_LIKE":
        return "Write LIKE 'van%'; % is any text and _ any one character."
    if last == "_ESCAPE":
        return "Write ESCAPE and one character, for example ESCAPE '\\'."
    return "IN has a list of strings: IN ('high', 'low')."


def _hint_for(token: Token, accepts: Set[str]) -> str:
    if token.type == "ZONE" and "NAME" in accepts:
        return "A name with a dot in it stands in single quotes."
    if token.upper() in KEYWORDS and "NAME" in accepts:
        return f"{token.upper()} is a word of the language; a name like it stands in single quotes."
    if token.type == "COMPARE" and "COMPARE" not in accepts and "_AND" in accepts:
        return "Only two values are compared at a time: write a < b AND b < c, or b BETWEEN a AND c."
    return ""


def _before(text: str, tokens: Sequence[Token], index: int) -> str:
    """The token before, and the one before that if it only opens or separates."""
    start = index - 2 if index > 1 and tokens[index - 1].type in ("_LPAR", "_OIDS", "_COMMA") else index - 1
    return " ".join(str(token) for token in tokens[start:index])


def _shown(text: str) -> str:
    cut = text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
    return cut if cut.startswith("'") and cut.endswith("'") and len(cut) > 1 else f"'{cut}'"


def _joined(words: Sequence[str]) -> str:
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
