"""Pages of long answers, and the cursors between them.

A cursor says behind what to go on, in words of the answer itself: an internal id would tell how many there are of
what nobody may count.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec

from server.errors import CursorInvalid

__all__ = ["Page", "after_of", "cursor_of"]


class Page(msgspec.Struct, frozen=True):
    """What is asked for: how many at most, behind which cursor, and only about what."""

    limit: int
    after: str | None = None
    oid: str | None = None  # folded
    target: str | None = None


def cursor_of(oid: str, place: int) -> str:
    """Behind this object's item of that number."""
    return urlsafe_b64encode(msgspec.json.encode((oid, place))).decode()


def after_of(cursor: str | None) -> tuple[str, int]:
    """What a cursor says; without one, before everything."""
    if cursor is None:
        return "", -1
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode("ascii")), type=tuple[str, int])
    except ValueError:  # as all of these say: no ASCII, no base64, no JSON, not such a pair
        raise CursorInvalid("The cursor is none of this server's.", hint="Give the next of the page before.") from None
