"""Zone names, written `OWNER.Name`.

The owner is everything before the last dot, because owners are often e-mail addresses: `foo@acme.com.Office`
belongs to `foo@acme.com`, not to `foo@acme`.

Two names that look alike must be the same name, or somebody poses as somebody else. So names are compared
folded, and what nobody can see (zero-width and other invisible characters, text direction marks) is refused
instead of being taken out: the name that is stored is the name that was sent.
"""

import unicodedata
from functools import lru_cache

import msgspec

from zones.errors import CallerError, ZoneNameInvalid

__all__ = [
    "MAX_LOCAL",
    "MAX_OWNER",
    "SYSTEM",
    "ZoneName",
    "check_local_name",
    "check_owner_name",
    "check_text",
    "fold",
    "importable",
    "is_system",
    "parse_zone_name",
    "shown",
]

SYSTEM = "SYSTEM"  # owns the zones that administrators define for everybody
MAX_OWNER = 254  # the longest e-mail address
MAX_LOCAL = 100

# Letters, marks and symbols that show nothing, although Unicode counts them as printable.
_INVISIBLE = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0)
).union(range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


class ZoneName(msgspec.Struct, frozen=True, order=True):
    owner: str
    local: str

    def __str__(self) -> str:
        return f"{self.owner}.{self.local}"


def parse_zone_name(text: str) -> ZoneName:
    """Split at the last dot; both sides must be there and be allowed."""
    owner, _, local = text.rpartition(".")
    if not owner or not local:
        raise ZoneNameInvalid(
            f"The zone name {shown(text)} has no {'local name' if owner else 'owner'}.",
            hint="Write OWNER.Name, for example mike.HOME.",
            name=text,
        )
    return ZoneName(check_owner_name(owner), check_local_name(local))


@lru_cache(maxsize=1 << 16)
def fold(text: str) -> str:
    """The form under which names are compared and kept unique: NFKC and case folding, nothing taken out."""
    # Either step can undo what the other promises, so they are repeated until nothing changes. It takes two
    # rounds for a handful of characters and one for all others.
    while (folded := unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())) != text:
        text = folded
    return text


def is_system(owner: str) -> bool:
    """Whether this is SYSTEM, however it is written."""
    return fold(owner) == _SYSTEM_FOLDED


def check_owner_name(text: str) -> str:
    """A user's name, as it stands before the dot of a zone's name and in oids."""
    check_text(text, "owner name", MAX_OWNER, ZoneNameInvalid)
    _refuse_sign(text, "/", "owner name", "A slash separates the owner from the object in oids such as acme/van7.")
    plain = unicodedata.normalize("NFKC", text)
    if plain.startswith(".") or plain.endswith(".") or ".." in plain:
        raise ZoneNameInvalid(
            f"The owner name {shown(text)} has a dot where a part of it is missing.",
            hint="Dots stand between other characters, as in foo@acme.com.",
            name=text,
        )
    return text


def check_local_name(text: str) -> str:
    """A zone's name without its owner."""
    check_text(text, "zone name", MAX_LOCAL, ZoneNameInvalid)
    _refuse_sign(text, ".", "zone name", "The last dot separates owner and zone: write HOME_2, not HOME.2.")
    plain = unicodedata.normalize("NFKC", text)
    if plain == "*" or plain.startswith("#"):
        raise ZoneNameInvalid(
            f"The zone name {shown(text)} would be read as a set of zones.",
            hint="OWNER.* and OWNER.#tag name sets of zones in selectors; choose a name that begins otherwise.",
            name=text,
        )
    return text


def importable(text: str) -> str:
    """The local name for a name from a file: dots become underscores. Whoever imports says so if it differs."""
    if "." not in unicodedata.normalize("NFKC", text):
        return text
    return "".join("_" if "." in unicodedata.normalize("NFKC", sign) else sign for sign in text)


def check_text(text: str, what: str, limit: int, error: type[CallerError]) -> None:
    """What holds for every name: not empty, not too long, nothing invisible, spaces only single and inside."""
    if not text:
        raise error(f"The {what} is empty.", hint="Give it at least one character.", name=text)
    if len(text) > limit:
        raise error(
            f"The {what} {shown(text)} has {len(text)} characters; {limit} are allowed.",
            hint=f"Shorten it to {limit} characters.",
            name=text[:limit],
        )
    for place, sign in enumerate(text):
        if not _is_visible(sign):
            raise error(
                f"The {what} {shown(text)} has the character {_described(sign)} at position {place + 1}, "
                "which can't be seen or told from others.",
                hint="Use letters, digits, signs and plain spaces only.",
                name=text,
                position=place + 1,
            )
    if text != text.strip(" ") or "  " in text:
        raise error(
            f"The {what} {shown(text)} begins or ends with a space, or has two in a row.",
            hint="Use single spaces, and only between other characters.",
            name=text,
        )


def _refuse_sign(text: str, sign: str, what: str, hint: str) -> None:
    # Also in disguise: a full-width dot or slash folds to the plain one.
    if sign in unicodedata.normalize("NFKC", text):
        raise ZoneNameInvalid(f"The {what} {shown(text)} has a '{sign}' in it.", hint=hint, name=text)


def shown(text: str) -> str:
    """The text as it can be printed: escaped where it is not visible, cut where it is too long."""
    cut = text if len(text) <= 60 else text[:57] + "..."
    return "'" + "".join(sign if _is_visible(sign) else f"\\u{{{ord(sign):x}}}" for sign in cut) + "'"


def _is_visible(sign: str) -> bool:
    # Printable leaves out control, format (zero-width, text direction), surrogate, private use and unassigned
    # characters, separators, and of all that is blank everything but the plain space.
    return sign.isprintable() and ord(sign) not in _INVISIBLE


def _described(sign: str) -> str:
    name = unicodedata.name(sign, "")
    return f"U+{ord(sign):04X} ({name})" if name else f"U+{ord(sign):04X}"


_SYSTEM_FOLDED = fold(SYSTEM)
