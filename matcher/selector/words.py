"""The words of the selector language that can't be names, and what a name looks like that needs no quotes.

Parser and formatter share this; the formatter runs without lark.
"""

import re

__all__ = ["KEYWORDS", "PLAIN_NAME", "is_plain_name", "is_plain_part", "quoted"]

# Reserved, however they are written (`and`, `And`). An attribute of such a name can be carried by events, but not be
# used in a condition; an object of such a name stands in quotes. `covered-by` is one word too, and can't be a name
# in any case.
KEYWORDS = frozenset(
    {
        "AND", "BETWEEN", "CONTAINS", "COVERS", "DISJOINT", "DISTANCE", "EQUALS", "ESCAPE", "FALSE", "IN", "INSIDE",
        "IS", "LIKE", "MEETS", "NOT", "NULL", "OR", "OVERLAPS", "TIMESTAMP", "TRUE", "WITHIN",
    }
)  # fmt: skip

PLAIN_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_is_plain = re.compile(PLAIN_NAME).fullmatch


def is_plain_name(text: str) -> bool:
    """Whether an object's name can stand without quotes."""
    return is_plain_part(text) and text.upper() not in KEYWORDS


def is_plain_part(text: str) -> bool:
    """Whether it can stand without quotes on either side of a zone's dot, where there are no keywords."""
    return _is_plain(text) is not None


def quoted(text: str) -> str:
    """The text in single quotes, those inside doubled."""
    return "'" + text.replace("'", "''") + "'"
