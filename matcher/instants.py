"""Instants as text: RFC 3339 in, RFC 3339 with milliseconds in UTC out.

Read by hand and strictly, because what `datetime` takes differs between Python versions, and a fix that is
misdated by an hour is worse than one that is refused. Digits beyond the millisecond are dropped. Leap seconds are
refused: there is no such instant in epoch milliseconds.
"""

import re
from datetime import UTC, date, datetime, timedelta

from matcher.errors import TimestampInvalid
from matcher.once import Instant
from zones.names import shown

__all__ = ["LAST_INSTANT", "format_instant", "parse_instant"]

LAST_INSTANT: Instant = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_HINT = "Write it as 2026-11-18T07:00:00.000Z, with an offset if it is not UTC, or as integer epoch milliseconds."
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def parse_instant(value: object) -> Instant:
    """Milliseconds since 1970 from RFC 3339 text or from an integer that is that already; up to the year 9999."""
    if isinstance(value, str):
        instant = _parse_text(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        instant = value
    else:
        raise TimestampInvalid("The time is neither text nor a whole number.", hint=_HINT)
    if not 0 <= instant <= LAST_INSTANT:
        raise TimestampInvalid("The time is not in the years 1970 to 9999.", hint=_HINT)
    return instant


def format_instant(instant: Instant) -> str:
    """`2026-11-18T07:00:00.000Z`."""
    return f"{(_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec='milliseconds').removesuffix('+00:00')}Z"


def _parse_text(text: str) -> Instant:
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise TimestampInvalid(f"{shown(text)} is not a time as RFC 3339 writes it.", hint=_HINT)
    year, month, day, hour, minute, second = (int(digits) for digits in found.groups()[:6])
    fraction, sign, offset_hour, offset_minute = found.groups()[6:]
    offset = int(offset_hour or 0), int(offset_minute or 0)
    if second == 60:
        raise TimestampInvalid(f"'{text}' is a leap second.", hint="Send the second before or after it.")
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise TimestampInvalid(f"There is no such day as in '{text}'.", hint=_HINT) from None
    if hour > 23 or minute > 59 or second > 59 or offset[0] > 23 or offset[1] > 59:
        raise TimestampInvalid(f"There is no such time of day as in '{text}'.", hint=_HINT)
    away = (offset[0] * 60 + offset[1]) * (-1 if sign == "-" else 1)
    seconds = ((days * 24 + hour) * 60 + minute - away) * 60 + second
    return seconds * 1000 + int((fraction or "").ljust(3, "0")[:3])
