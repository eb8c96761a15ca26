"""LIKE, without a regex engine.

A pattern comes from a subscriber and a text from somebody else's device; a backtracking engine would let the two
of them buy minutes of our time with a few bytes. `%` splits a pattern into pieces of fixed length. The first piece
has to match at the beginning, the last at the end, and each one between at the leftmost place where it can: taking
the leftmost never hurts, because it leaves the most room for the rest. So there is nothing to go back for.

A piece of plain characters is found by `str.find`, which is linear. For one with `_` in it, the places of a character
in the text are the bits of one integer; shifted by where the character stands in the piece and joined with AND, those
of all its characters leave the places of the piece. A text of 16 kB and a piece of 8 kB take 2 ms, and no choice of
the two takes more than 10. A condition in disjunctive normal form asks the same question many times, of the same long
text: its answer is remembered.
"""

from functools import lru_cache

import msgspec

__all__ = ["has_dangling_escape", "like"]

_LONG = 256  # characters of a text from which on it is worth remembering


class _Piece(msgspec.Struct, frozen=True):
    """What stands between two `%`."""

    signs: tuple[str | None, ...]  # None stands for `_`, any one character
    plain: str | None  # the same as a string, if there is no `_` in it

    def fits(self, text: str, at: int) -> bool:
        """Whether the piece is at that place; the text is long enough."""
        if self.plain is not None:
            return text.startswith(self.plain, at)
        return all(sign is None or sign == text[at + i] for i, sign in enumerate(self.signs))

    def find(self, text: str, start: int, stop: int) -> int:
        """Where it is first in text[start:stop], or -1."""
        if self.plain is not None:
            return text.find(self.plain, start, stop)
        if start + len(self.signs) > stop:
            return -1
        found = ((1 << (stop - len(self.signs) + 1 - start)) - 1) << start  # bit i: it may be at i
        for at, sign in enumerate(self.signs):
            if sign is not None:
                found &= _places(text, sign) >> at
                if not found:
                    return -1
        return (found & -found).bit_length() - 1


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """Whether the whole text matches: `_` is any one character, `%` any number of them, the rest is itself.

    The escape character takes the meaning from the `%`, `_` or other character behind it.
    """
    return (_remembered if len(text) > _LONG else _matches)(text, pattern, escape)


def _matches(text: str, pattern: str, escape: str | None) -> bool:
    pieces = _pieces(pattern, escape)
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(text) == len(first.signs) and first.fits(text, 0)
    at, end = len(first.signs), len(text) - len(last.signs)
    if at > end or not first.fits(text, 0) or not last.fits(text, end):
        return False
    for piece in pieces[1:-1]:
        at = piece.find(text, at, end)
        if at < 0:
            return False
        at += len(piece.signs)
    return True


_remembered = lru_cache(maxsize=512)(_matches)


def has_dangling_escape(pattern: str, escape: str | None) -> bool:
    """Whether the pattern ends in an escape character that has nothing behind it."""
    at = 0
    while at < len(pattern):
        at += 2 if pattern[at] == escape else 1
    return at > len(pattern)


@lru_cache(maxsize=1024)
def _pieces(pattern: str, escape: str | None) -> tuple[_Piece, ...]:
    pieces: list[list[str | None]] = [[]]
    signs = iter(pattern)
    for sign in signs:
        if sign == escape:
            pieces[-1].append(next(signs, sign))
        elif sign == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if sign == "_" else sign)
    inner = [piece for piece in pieces[1:-1] if piece]  # %% is %
    return tuple(map(_piece, [pieces[0], *inner, pieces[-1]] if len(pieces) > 1 else pieces))


def _piece(signs: list[str | None]) -> _Piece:
    plain = [sign for sign in signs if sign is not None]
    return _Piece(tuple(signs), "".join(plain) if len(plain) == len(signs) else None)


@lru_cache(maxsize=512)
def _places(text: str, sign: str) -> int:
    """Bit i is set if the character is at i. What is done here for each character of the text is done in C."""
    if sign not in text:
        return 0
    marked = text if sign == _MARK else text.replace(_MARK, " " if sign != " " else "-").replace(sign, _MARK)
    return int(marked.encode("ascii", "replace")[::-1].translate(_AS_BITS), 2)


_MARK = "\x01"
_AS_BITS = bytes(0x31 if code == ord(_MARK) else 0x30 for code in range(256))
