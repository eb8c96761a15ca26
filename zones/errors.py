"""The root of every error, and the errors of zones.

    FencepostError            a stable code, one sentence with the values in it, a hint
    ├── CallerError           the caller's fault: bad input, refused without any change
    │   └── ZoneError
    │       ├── ZoneNameInvalid     zone_name_invalid
    │       └── ShapeInvalid        shape_invalid and its kinds
    ├── PeerError             the other end of a connection broke the protocol
    └── FaultError            ours: something that should not happen did

The code is a promise; the wording is free to improve.
"""

from typing import Any, ClassVar

__all__ = [
    "CallerError",
    "FaultError",
    "FencepostError",
    "PeerError",
    "ShapeInvalid",
    "ZoneError",
    "ZoneNameInvalid",
]


class FencepostError(Exception):
    """What went wrong, in one sentence; `hint` says what to do about it."""

    code: ClassVar[str] = "internal"

    def __init__(self, sentence: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.details = details


class CallerError(FencepostError):
    """The caller sent something that can't be used; nothing has changed."""

    code = "bad_request"


class PeerError(FencepostError):
    """The other end of a connection did not keep to the protocol."""

    code = "protocol_violation"


class FaultError(FencepostError):
    """A fault of ours."""

    code = "internal"


class ZoneError(CallerError):
    code = "zone_invalid"


class ZoneNameInvalid(ZoneError):
    code = "zone_name_invalid"


class ShapeInvalid(ZoneError):
    code = "shape_invalid"
