"""What goes wrong with a selector on its way: typing, cutting, encoding, and people who try how far they get."""

import re
from collections.abc import Callable
from random import Random

__all__ = ["KINDS", "mutate"]

_PIECES = (
    "(", ")", "'", "''", ",", " AND ", " OR ", " NOT ", "-", "*", "within", " distance (1, ", "1e", "0x", "..",
    "POLYGON((", "CIRCLE(1 2, 3)", " IS NULL", " BETWEEN ", " LIKE '%", " ESCAPE '", "SYSTEM.*", ".#", "covered-by",
    "TIMESTAMP '", "--", "<>", "=", "\0", "\ud800", "\u00e9", '"', ";", "%", "$", "@", "\\", "9", " ",
)  # fmt: skip
_ODD = (0x00, 0x7F, 0x85, 0xA0, 0xAD, 0x130, 0x131, 0x1C5, 0x200B, 0x202E, 0x2028, 0x2212, 0x3000, 0x661, 0xFF08,
        0xFF11, 0xFEFF, 0xFFFE, 0x1D7D8, 0x1F600, 0x10FFFF, 0xDC80)  # fmt: skip
_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|[\w.#@]+|<>|<=|>=|.", re.DOTALL)
_LONG = 8200  # a little more than a selector may have


def mutate(rng: Random, text: str, other: str) -> tuple[str, str]:
    """What was done, and the text after it; `other` is another selector."""
    kind = rng.choice(tuple(KINDS))
    for _ in range(rng.randrange(1, 3)):
        text = KINDS[kind](rng, text, other)
    return kind, text


def _bytes(rng: Random, text: str, other: str) -> str:
    raw = bytearray(text.encode(errors="surrogateescape"))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(raw) + 1)
        raw[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    return raw.decode(errors="surrogateescape")


def _tokens(rng: Random, text: str, other: str) -> str:
    tokens = _TOKEN.findall(text) or [""]
    at, to = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    what = rng.randrange(4)
    if what == 0:
        del tokens[at]
    elif what == 1:
        tokens.insert(to, tokens[at])
    elif what == 2:
        tokens[at], tokens[to] = tokens[to], tokens[at]
    else:
        tokens[at] = rng.choice(_TOKEN.findall(other) or [""])
    return "".join(tokens)


def _pieces(rng: Random, text: str, other: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(_PIECES) + text[at + rng.randrange(2) :]


def _truncation(rng: Random, text: str, other: str) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] if rng.randrange(2) else text[at:]


def _splicing(rng: Random, text: str, other: str) -> str:
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def _nesting(rng: Random, text: str, other: str) -> str:
    opening, closing = rng.choice(
        (("(", ")"), ("NOT ", ""), ("NOT (", ")"), ("-(", ")"), ("-", ""), ("+(", ")"), ("((", ")"))
    )
    levels = rng.choice((5, 20, 31, 33, 100, 1000, 4000))
    levels = min(levels, (_LONG - len(text)) // max(1, len(opening) + len(closing)))
    return opening * levels + text + closing * rng.choice((levels, levels, levels + 1, 0))


def _repetition(rng: Random, text: str, other: str) -> str:
    piece = rng.choice(
        (*_PIECES, "a = 1 OR ", "(a = 1 OR b = 2) AND ", "NOT (a = 1 AND b = 2) AND ", "a + ", "a - (", "(a, ")
    )
    at = rng.choice((0, 0, rng.randrange(len(text) + 1)))
    times = rng.choice((2, 7, 30, 255, 256, 257, 1000, 4000))
    return text[:at] + (piece * min(times, _LONG // len(piece))) + text[at:]


def _huge_literals(rng: Random, text: str, other: str) -> str:
    size = rng.choice((19, 20, 40, 309, 400, 4000, 8000))
    digit = rng.choice("0197")
    literal = rng.choice(
        (
            digit * size,
            f"0x{digit * size}",
            f"1.{digit * size}",
            f"1e{digit * size}",
            f".{digit * size}e-{size}",
            f"'{rng.choice(('x', chr(0x65E5), ' ', chr(39) * 2)) * (size // 3)}'",
            f"TIMESTAMP '{digit * size}'",
        )
    )
    join = rng.choice((" AND a = ", " OR a <> ", " AND a > 1 + "))
    return f"{text}{join}{literal}"


def _long_like(rng: Random, text: str, other: str) -> str:
    size = rng.choice((10, 100, 1000, 7000))
    unit = rng.choice(("%", "_", "%a", "%_", "a%", "_a", "a_", "%a_", "%aa_b", "!%", "!_%", "%!%_a", "%" + "_" * 60))
    pattern = (unit * size)[:size] + rng.choice(("", "b", "%", "b%", "_", "!"))
    escape = rng.choice(("", " ESCAPE '!'"))
    return f"a LIKE '{pattern}'{escape}{rng.choice((' AND ', ' OR '))}{text}"


def _long_in(rng: Random, text: str, other: str) -> str:
    values = ", ".join(
        f"'{rng.choice(('a', '', 'v' * rng.randrange(9), str(rng.random())))}'" for _ in range(rng.randrange(1, 700))
    )
    return f"a {rng.choice(('', 'NOT '))}IN ({values}) {rng.choice(('AND', 'OR'))} {text}"


def _long_lists(rng: Random, text: str, other: str) -> str:
    size = rng.randrange(1, 500)
    oids = ", ".join(rng.choice(("mike", "'acme/van7'", f"u{rng.randrange(999)}")) for _ in range(size))
    zones = ", ".join(rng.choice(("SYSTEM.*", f"mike.Z{rng.randrange(99)}", "'a@b.c.Z'")) for _ in range(500 - size))
    word = rng.choice(("within", "overlaps", "disjoint", "covered-by"))
    return f"({oids}) {word} ({zones}) {rng.choice(('AND', 'OR', 'AND NOT'))} {text}"


def _shapes(rng: Random, text: str, other: str) -> str:
    size = rng.choice((3, 10, 100, 700))
    points = [f"{rng.randrange(-190, 190)} {rng.randrange(-90, 91)}" for _ in range(size)]
    if rng.randrange(2):  # a ring that does not cross itself
        points = [f"{0.01 * i:.2f} {i % 2}" for i in range(size)] + [f"{0.01 * size:.2f} 9", "0 9"]
    ring = ", ".join([*points, points[0]][: rng.choice((-1, 2 * size))])
    shape = rng.choice(
        (f"POLYGON (({ring}))", f"MULTIPOLYGON ((({ring})))", f"CIRCLE({points[0]}, {size})", f"polygon({ring})")
    )
    return f"(*) {rng.choice(('within', 'overlaps'))} ({shape}) AND {text}"


def _unicode(rng: Random, text: str, other: str) -> str:
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        sign = chr(rng.choice((*_ODD, rng.randrange(0x250), rng.randrange(0x110000))))
        text = text[:at] + sign * rng.choice((1, 1, 1, 2, 300)) + text[at + rng.randrange(2) :]
    return text


def _quotes(rng: Random, text: str, other: str) -> str:
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(("'", "''", "'''", '"', "\u2019", "`", "'" * 999)) + text[at:]
    return text


KINDS: dict[str, Callable[[Random, str, str], str]] = {
    "bytes": _bytes,
    "tokens": _tokens,
    "pieces": _pieces,
    "truncation": _truncation,
    "splicing": _splicing,
    "nesting": _nesting,
    "repetition": _repetition,
    "huge literals": _huge_literals,
    "long LIKE": _long_like,
    "long IN": _long_in,
    "long lists": _long_lists,
    "shapes": _shapes,
    "unicode": _unicode,
    "quotes": _quotes,
}
