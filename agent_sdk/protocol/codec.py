"""Messages to frames and back, in JSON (text frames) and in MessagePack (binary frames).

Both carry the same names and the same structure; the subprotocol of the WebSocket decides. What comes in is not
trusted: every way in which a frame can be wrong ends in a `ProtocolViolation`, so that a caller has one thing to
catch. MessagePack can carry NaN and both can carry integers that no store takes, which the types don't see:
`_scan` looks at every number once.
"""

from collections.abc import Callable
from math import isfinite
from typing import Generic, TypeVar

import msgspec

from agent_sdk.errors import FrameMalformed
from agent_sdk.protocol.messages import FromAgent, FromServer

__all__ = ["JSON", "MSGPACK", "SUBPROTOCOLS", "Codec", "Frame", "by_subprotocol", "kind_of"]

Frame = str | bytes
_Message = TypeVar("_Message")

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


class _Decoder(Generic[_Message]):
    """Decodes and checks one family of messages."""

    def __init__(self, decode: Callable[[Frame], _Message]) -> None:
        self._decode = decode

    def __call__(self, frame: Frame) -> _Message:
        try:
            message = self._decode(frame)
            wrong = _scan(message)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError, ValueError) as error:
            what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise FrameMalformed(
                f"The frame is not a message of this protocol: {what}.",
                hint="docs/protocol.md describes every message and field.",
            ) from None
        if wrong:
            raise FrameMalformed(
                f"The frame carries {wrong}.",
                hint="Numbers are finite, and integers fit into 64 bits.",
            )
        return message


class Codec:
    """One encoding, named by its WebSocket subprotocol."""

    def __init__(
        self,
        subprotocol: str,
        encode: Callable[[object], Frame],
        from_agent: Callable[[Frame], FromAgent],
        from_server: Callable[[Frame], FromServer],
        *,
        is_text: bool,
    ) -> None:
        self.subprotocol = subprotocol
        self.is_text = is_text
        self._encode = encode
        self._from_agent = _Decoder(from_agent)
        self._from_server = _Decoder(from_server)

    def encode(self, message: FromAgent | FromServer) -> Frame:
        """The message as one frame: str for JSON, bytes for MessagePack."""
        return self._encode(message)

    def decode_from_agent(self, frame: Frame) -> FromAgent:
        self._check_kind(frame)
        return self._from_agent(frame)

    def decode_from_server(self, frame: Frame) -> FromServer:
        self._check_kind(frame)
        return self._from_server(frame)

    @staticmethod
    def size(frame: Frame) -> int:
        """The payload's length in bytes, as it travels."""
        if isinstance(frame, bytes):
            return len(frame)
        return len(frame) if frame.isascii() else len(frame.encode("utf-8", "surrogatepass"))

    def _check_kind(self, frame: Frame) -> None:
        if isinstance(frame, str) is not self.is_text:
            sent, wanted = ("text", "binary") if isinstance(frame, str) else ("binary", "text")
            raise FrameMalformed(
                f"A {sent} frame came where {self.subprotocol} has {wanted} ones.",
                hint="JSON travels in text frames, MessagePack in binary ones.",
            )


def _scan(value: object) -> str:
    """What is wrong with the numbers in a decoded message; empty if nothing is."""
    kind = type(value)
    if kind is int:
        return "" if _INT_MIN <= value <= _INT_MAX else "an integer beyond 64 bits"  # type: ignore[operator]
    if kind is float:
        return "" if isfinite(value) else "a number that is not finite"  # type: ignore[arg-type]
    if kind is str:
        return ""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if wrong := _scan(getattr(value, name)):
                return wrong
    elif isinstance(value, (tuple, list)):
        for item in value:
            if wrong := _scan(item):
                return wrong
    elif isinstance(value, dict):
        for item in value.values():
            if wrong := _scan(item):
                return wrong
    return ""


def kind_of(message: FromAgent | FromServer) -> str:
    """The message's type as the wire names it."""
    tag = message.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def _json() -> Codec:
    encoder = msgspec.json.Encoder()
    return Codec(
        "fencepost.v1.json",
        lambda message: encoder.encode(message).decode(),
        msgspec.json.Decoder(FromAgent).decode,
        msgspec.json.Decoder(FromServer).decode,
        is_text=True,
    )


def _msgpack() -> Codec:
    return Codec(
        "fencepost.v1.msgpack",
        msgspec.msgpack.Encoder().encode,
        msgspec.msgpack.Decoder(FromAgent).decode,  # type: ignore[arg-type]  # only bytes come this far
        msgspec.msgpack.Decoder(FromServer).decode,  # type: ignore[arg-type]
        is_text=False,
    )


JSON = _json()
MSGPACK = _msgpack()
SUBPROTOCOLS = (MSGPACK.subprotocol, JSON.subprotocol)  # the smaller one first
_CODECS = {codec.subprotocol: codec for codec in (JSON, MSGPACK)}


def by_subprotocol(name: str | None) -> Codec | None:
    """The codec of a negotiated subprotocol; None if there is none of that name."""
    return _CODECS.get(name or "")
