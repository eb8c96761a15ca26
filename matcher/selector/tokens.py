"""A selector's text as tokens.

The tokens are made here and not by lark, for three reasons. Each error can say in words what is wrong at that
character. A shape, a zone's name and `covered-by` are one token each, whatever is in them. And the one ambiguity of
the grammar is settled before parsing: `(a)` begins an expression in `(a) = 5` and a list of objects in
`(a) within (...)`. What decides is the word behind the closing parenthesis, too far ahead for LALR(1). So the
parenthesis that opens a list of objects is a token of its own, _OIDS. (Lark leaves out of its callbacks what begins
with an underscore.)
"""

import re

from lark import Token

from matcher.errors import SelectorInvalid
from matcher.selector.words import KEYWORDS, PLAIN_NAME
from zones.names import shown

__all__ = ["RELATIONS", "tokenize"]

RELATIONS = frozenset({"DISJOINT", "MEETS", "OVERLAPS", "EQUALS", "INSIDE", "CONTAINS", "COVERS", "COVERED-BY"})
_SIGNS = {
    "(": "_LPAR", ")": "_RPAR", ",": "_COMMA", "+": "PLUS", "-": "MINUS", "*": "STAR", "/": "SLASH",
    "=": "COMPARE", "<>": "COMPARE", "<=": "COMPARE", ">=": "COMPARE", "<": "COMPARE", ">": "COMPARE",
}  # fmt: skip
_TOKEN = re.compile(
    rf"""
      (?P<space>   [ \t\r\n\f]+ )
    | (?P<STRING>  '(?:[^']++|'')*+' )
    | (?P<SHAPE>   (?:CIRCLE|POLYGON|MULTIPOLYGON)(?:\s+(?:ZM|Z|M))?\s*(?=\() )
    | (?P<ZONE>    {PLAIN_NAME}\.(?:{PLAIN_NAME}|\*|\#{PLAIN_NAME})(?![\w.@/]) )
    | (?P<word>    COVERED-BY(?!\w) | {PLAIN_NAME} )
    | (?P<FLOAT>   (?:\d+\.\d*|\.\d+)(?:E[+-]?\d+)?[FD]? | \d+E[+-]?\d+[FD]? | \d+[FD] )
    | (?P<INT>     0X[0-9A-F]+L? | \d+L? )
    | (?P<sign>    <>|<=|>=|[(),+\-*/=<>] )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_LIST_BEFORE = frozenset({"_IN", "_WITHIN", "RELATION", "_DISTANCE"})  # what stands before other lists in parentheses
_SPATIAL = frozenset({"_WITHIN", "RELATION", "_DISTANCE"})
_KEPT = frozenset({"NOT", "TRUE", "FALSE"})
_INT_LIMIT = 2**63


def tokenize(text: str) -> list[Token]:
    """All tokens of the text, spaces left out."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _unreadable(text, at)
        kind, end = str(found.lastgroup), found.end()
        if kind == "SHAPE":
            end = _end_of_shape(text, end)
        if kind in ("INT", "FLOAT"):
            _check_number(text, at, end, kind, tokens)
        if kind != "space":
            tokens.append(Token(_type(kind, found[0]), text[at:end], start_pos=at, column=at + 1, end_pos=end))
        at = end
    _mark_lists_of_objects(tokens)
    return tokens


def _type(kind: str, text: str) -> str:
    if kind == "sign":
        return _SIGNS[text]
    if kind != "word":
        return kind
    word = text.upper()
    if word in RELATIONS:
        return "RELATION"
    if word not in KEYWORDS:
        return "NAME"
    return word if word in _KEPT else f"_{word}"


def _mark_lists_of_objects(tokens: list[Token]) -> None:
    """Give the parenthesis before a list of objects its own type.

    `(*`, and `(a,` where no other list can be, are such a list in any case: the error, if there is one, can then
    speak of it. `(a)` is one if a spatial word follows.
    """
    kinds = [token.type for token in tokens] + [""] * 4
    for i, token in enumerate(tokens):
        if token.type != "_LPAR" or (i > 0 and kinds[i - 1] in _LIST_BEFORE):
            continue
        first, second, third = kinds[i + 1 : i + 4]
        alone = second == "_RPAR" and third in _SPATIAL
        if first == "STAR" or (first in ("NAME", "STRING") and (second == "_COMMA" or alone)):
            tokens[i] = token.update(type="_OIDS")


def _end_of_shape(text: str, opening: int) -> int:
    """Behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 0:
                return at + 1
    raise SelectorInvalid(
        f"The shape's '(' at column {opening + 1} is never closed.",
        hint="Write POLYGON ((lon lat, ...)) or CIRCLE(lon lat, metres).",
        column=opening + 1,
    )


def _check_number(text: str, at: int, end: int, kind: str, before: list[Token]) -> None:
    digits = text[at:end].upper()
    if end < len(text) and (text[end].isalnum() or text[end] in "_."):
        rest = re.compile(r"[\w.]*").match(text, at)
        sentence = f"{shown(rest[0] if rest else digits)} at column {at + 1} is not a number."
        raise SelectorInvalid(sentence, hint=_NUMBER_HINT, column=at + 1)
    if kind == "FLOAT":
        if float(digits.rstrip("FD")) == float("inf"):
            raise _too_large(digits, at)
        return
    if len(digits.rstrip("L")) > 1 and digits.startswith("0") and not digits.startswith("0X"):
        raise SelectorInvalid(
            f"The number {digits[:40]} at column {at + 1} begins with 0.",
            hint="Write it without the 0: some languages would read it as octal.",
            column=at + 1,
        )
    if len(digits) > 40 or (value := int(digits.rstrip("L"), 0)) > _INT_LIMIT:
        raise _too_large(digits, at)
    # The lowest number of 64 bits has no positive counterpart: it is read together with its minus.
    if value == _INT_LIMIT and not _has_minus(before):
        raise _too_large(digits, at)


def _has_minus(before: list[Token]) -> bool:
    operand = ("NAME", "STRING", "INT", "FLOAT", "_RPAR", "TRUE", "FALSE")
    return bool(before) and before[-1].type == "MINUS" and (len(before) == 1 or before[-2].type not in operand)


def _too_large(digits: str, at: int) -> SelectorInvalid:
    return SelectorInvalid(
        f"The number {digits[:40]} at column {at + 1} is too large.",
        hint="Whole numbers have 64 bits, others the range of a double.",
        column=at + 1,
    )


def _unreadable(text: str, at: int) -> SelectorInvalid:
    sign = text[at]
    if sign == "'":
        return SelectorInvalid(
            f"The quote at column {at + 1} is never closed.",
            hint="Strings stand in single quotes; a quote inside is written twice: 'it''s'.",
            column=at + 1,
        )
    character = f"'{sign}'" if sign.isprintable() else f"U+{ord(sign):04X}"
    hint = _HINTS.get(sign) or (
        "A name of an object or a zone with more than letters, digits and _ stands in single quotes: 'foo@acme.com'."
        if sign in "@.$#" or sign.isalpha()
        else "Outside of quotes there are names, numbers, and = <> < <= > >= + - * / ( ) , only."
    )
    return SelectorInvalid(
        f"The character {character} at column {at + 1} can't be used here.", hint=hint, column=at + 1
    )


_NUMBER_HINT = "Write numbers as 57, 57L, 95.7, 7E3 or 0x1F; a name that begins with a digit stands in single quotes."
_HINTS = {
    '"': "Strings and names stand in single quotes.",
    "!": "Not equal is written <>.",
    ";": "A selector is one condition, without a semicolon.",
    "%": "There is no remainder; % has a meaning in the quotes of LIKE only.",
    "&": "Write AND.",
    "|": "Write OR.",
}
