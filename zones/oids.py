"""Object ids, written `owner` or `owner/name`.

An object's owner can be read off its oid, so the owner part follows the rules of owner names and is compared in
the same folded form. The name behind the slash is free of zones' dots rule: `acme/van.7` is fine.
"""

import unicodedata
from functools import lru_cache

import msgspec

from zones.errors import OidInvalid, ZoneNameInvalid
from zones.names import check_owner_name, check_text, shown

__all__ = ["MAX_OBJECT_NAME", "Oid", "parse_oid"]

MAX_OBJECT_NAME = 100


class Oid(msgspec.Struct, frozen=True):
    owner: str
    name: str | None = None

    def __str__(self) -> str:
        return self.owner if self.name is None else f"{self.owner}/{self.name}"


@lru_cache(maxsize=1 << 16)
def parse_oid(text: str) -> Oid:
    """Split at the slash, if there is one, and check both sides."""
    owner, slash, name = text.partition("/")
    try:
        check_owner_name(owner)
    except ZoneNameInvalid as fault:
        raise OidInvalid(f"The oid is not usable: {fault.sentence}", hint=_HINT, oid=text, **fault.details) from fault
    if not slash:
        return Oid(owner)
    check_text(name, "object name", MAX_OBJECT_NAME, OidInvalid)
    if "/" in unicodedata.normalize("NFKC", name):
        raise OidInvalid(f"The oid {shown(text)} has more than one slash.", hint=_HINT, oid=text)
    return Oid(owner, name)


_HINT = "Write the owner's user name, or owner/name, for example mike or acme/van7."
