"""Reading and writing JSON bodies, strictly.

msgspec is strict where it matters (NaN, booleans and strings are not numbers, unknown fields are refused) and fast.
Bodies are described in OpenAPI from the same structs that decode them.
"""

from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from server.errors import BodyInvalid, BodyTooLarge

__all__ = ["RowId", "answer", "decode_json", "described", "read_body", "read_json"]

T = TypeVar("T")
RowId = Annotated[int, Field(ge=0, le=2**63 - 1)]  # in an address; the stores know no larger ones


async def read_json(request: Request, max_bytes: int) -> Any:
    """The body as plain values."""
    return await read_body(request, max_bytes, Any)


async def read_body(request: Request, max_bytes: int, kind: type[T]) -> T:
    raw = bytearray()
    try:
        async for chunk in request.stream():
            raw += chunk
            if len(raw) > max_bytes:
                raise BodyTooLarge(f"The body has more than {max_bytes} bytes.", hint="Send it in smaller parts.")
    except ClientDisconnect:  # nobody reads the answer, but it is no fault of ours
        raise BodyInvalid("The body broke off.", hint="Send it again.") from None
    return decode_json(bytes(raw), kind)


def decode_json(raw: bytes, kind: type[T]) -> T:
    """A value of this kind from its JSON, or what is wrong with it."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise BodyInvalid(f"The body does not fit: {error}.", hint="See /docs for what is expected.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BodyInvalid(f"The body is not JSON: {error}.", hint="Send UTF-8 JSON.") from None
    except RecursionError:
        raise BodyInvalid("The body is nested too deeply.", hint="Send flatter JSON.") from None


def answer(value: object, status: int = 200, **headers: str) -> Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(msgspec.json.encode(value), status, named, "application/json")


def described(kind: Any = None, *, example: Any = None) -> dict[str, Any]:
    """OpenAPI's description of a body of this kind."""
    if kind is None:
        schema: dict[str, Any] = {"type": "object"}
    else:
        (schema,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        schema = _inline(schema, components)
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _inline(schema: Any, components: dict[str, Any]) -> Any:
    """OpenAPI keeps components elsewhere; the bodies are small enough to be written out."""
    if isinstance(schema, dict):
        ref = schema.get("$ref")
        if isinstance(ref, str):
            return _inline(components[ref.rsplit("/", 1)[1]], components)
        return {key: _inline(value, components) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_inline(value, components) for value in schema]
    return schema
