"""What was expected where a selector stops being one, in words.

The parser knows which tokens it would have taken; a person wants to hear about zones and conditions.
"""

from collections.abc import Sequence, Set

from lark import Token

from matcher.errors import SelectorInvalid
from matcher.selector.words import KEYWORDS
from zones.names import shown

__all__ = ["unexpected"]

_MAX_SHOWN = 40
_WORDS = {
    "NOT": "NOT", "_NULL": "NULL", "_BETWEEN": "BETWEEN", "_IN": "IN", "_LIKE": "LIKE", "_ESCAPE": "ESCAPE",
    "_AND": "AND", "_OR": "OR", "_LPAR": "'('", "_COMMA": "','", "_RPAR": "')'", "$END": "the end",
}  # fmt: skip
_EXAMPLE = "A selector is a condition, for example (mike) within (SYSTEM.Xidan) AND speed > 5."
_TESTS = "Tests are = <> < <= > >= BETWEEN, IN, LIKE, IS NULL and relations like overlaps; AND and OR join them."
_DISTANCE = "Write (mike) distance (500, foo, bar)."
_ATTRIBUTE = "An attribute's name has the letters A to Z, digits and _ only."


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
        hint = _hint_for(token, tokens[:index], accepts) or hint
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
        return "a distance in metres", _DISTANCE
    if "_WITHIN" in accepts:
        return "within, distance or a relation", "Write (mike) within (SYSTEM.Xidan)."
    if accepts == {"STRING"}:
        return "text in single quotes", _string_hint(before)
    words = [word for kind, word in _WORDS.items() if kind in accepts]
    if "COMPARE" in accepts:
        return _joined(["a comparison", *(word for word in words if word in ("AND", "OR", "')'", "the end"))]), _TESTS
    return _joined(words), _word_hint(accepts, before)


def _word_hint(accepts: Set[str], before: Sequence[Token]) -> str:
    """Where only a few words or signs can go on."""
    kinds = [token.type for token in before]
    if accepts == {"_LPAR"}:
        return f"The list after {before[-1].upper()} stands in parentheses."
    if accepts == {"_COMMA"}:
        return _DISTANCE
    if "_NULL" in accepts:
        return "Write load IS NULL or load IS NOT NULL."
    if "_LIKE" in accepts:
        return "NOT stands before a condition, or before BETWEEN, IN or LIKE."
    if accepts <= {"_AND", "PLUS", "MINUS", "STAR", "SLASH"} and "_BETWEEN" in kinds:
        return "Write battery BETWEEN 10 AND 20."
    if "_RPAR" in accepts:
        return "Every ( needs its )." if "_AND" in accepts else "A list has commas between its names and ends with )."
    return "Conditions are joined with AND and OR."


def _string_hint(before: Sequence[Token]) -> str:
    last = before[-1].type if before else ""
    if last == "_TIMESTAMP":
        return "Write TIMESTAMP '2026-11-18T07:00:00Z'."
    if last == "_LIKE":
        return "Write LIKE 'van%'; % is any text and _ any one character."
    if last == "_ESCAPE":
        return "Write ESCAPE and one character, for example ESCAPE '\\'."
    return "IN has a list of strings: IN ('high', 'low'). Numbers are compared one by one: lane = 1 OR lane = 2."


def _hint_for(token: Token, before: Sequence[Token], accepts: Set[str]) -> str:
    """What people mean who write this token in such a place; empty if nothing comes to mind."""
    kind, last = token.type, before[-1].type if before else ""
    if before and before[0].upper() in ("SELECT", "WHERE"):
        return "A selector is the condition alone, without SELECT and WHERE."
    if kind == "_RPAR":
        return _closing_hint(last, accepts)
    if kind in ("_WITHIN", "RELATION", "_DISTANCE") and "COMPARE" in accepts:
        return f"Objects stand in parentheses, and in quotes if need be: ('acme/van7') {token.lower()} (...)."
    if kind == "COMPARE":
        if last == "COMPARE":
            return "One sign compares: = <> < <= > or >=."
        if "COMPARE" not in accepts and "_AND" in accepts:
            return "Only two values are compared at a time: write a < b AND b < c, or b BETWEEN a AND c."
    if kind == "ZONE" and last == "_LPAR" and accepts == {"STRING"}:
        return "IN is about text; for zones write (mike) within (SYSTEM.Xidan)."
    return _name_hint(token, last, accepts)


def _closing_hint(last: str, accepts: Set[str]) -> str:
    if last in ("_LPAR", "_OIDS") and "NAME" in accepts:
        return "Something has to stand in the parentheses: objects, (*), or a condition."
    return "There is a ) too many, or its ( is missing." if "$END" in accepts else ""


def _name_hint(token: Token, last: str, accepts: Set[str]) -> str:
    if "NAME" not in accepts:
        return ""
    in_list = last in ("_LPAR", "_OIDS", "_COMMA")
    if token.type == "ZONE":
        return "The name of an object with a dot in it stands in single quotes." if in_list else _ATTRIBUTE
    if token.type == "_NULL" and last == "COMPARE":
        return "Nothing equals NULL: write IS NULL or IS NOT NULL."
    if token.upper() in KEYWORDS and token.type not in ("_AND", "_OR", "_NULL"):
        rest = "an object of that name stands in single quotes" if in_list else "it can't be an attribute's name"
        return f"{token.upper()} is a word of the language; {rest}."
    return ""


def _before(text: str, tokens: Sequence[Token], index: int) -> str:
    """The token before, and the one before that if it only opens or separates."""
    start = index - 2 if index > 1 and tokens[index - 1].type in ("_LPAR", "_OIDS", "_COMMA") else index - 1
    return " ".join(str(token) for token in tokens[start:index])


def _shown(text: str) -> str:
    """In quotes, which a string has already; cut, and without what can't be seen."""
    inner = text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else " ".join(text.split())
    return shown(inner if len(inner) <= _MAX_SHOWN else inner[: _MAX_SHOWN - 3] + "...")


def _joined(words: Sequence[str]) -> str:
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
