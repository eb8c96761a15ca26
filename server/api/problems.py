"""Errors on the wire: RFC 9457 problem details with a stable `code` and a hint.

The statuses of all codes are this one table; a code that is not in it is bad input (400) or, if the fault is ours,
500. A refused request is not an incident: it is logged at info, without a traceback and without its values.
"""

import logging
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.store.errors import DatabaseUnreachable
from zones.errors import FaultError, FencepostError

__all__ = ["DESCRIBED", "install", "problem", "status_of"]

_log = logging.getLogger("fencepost.api")

_STATUS = {
    "key_invalid": 401,
    "credential_refused": 401,
    "token_invalid": 401,
    "forbidden": 403,
    "not_found": 404,
    "zone_not_found": 404,
    "object_not_found": 404,
    "subscription_not_found": 404,
    "user_not_found": 404,
    "grant_not_found": 404,
    "agent_not_found": 404,
    "delegation_not_found": 404,
    "object_has_agent": 409,
    "zone_exists": 409,
    "version_mismatch": 412,
    "body_too_large": 413,
    "batch_too_large": 413,
    "not_recorded": 503,
    "database_unreachable": 503,
}


DESCRIBED: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "Refused: RFC 9457 problem details.",
        "content": {
            "application/problem+json": {
                "schema": {
                    "type": "object",
                    "required": ["type", "title", "status", "detail", "code", "hint"],
                    "properties": {
                        "type": {"type": "string"},
                        "title": {"type": "string"},
                        "status": {"type": "integer"},
                        "detail": {"type": "string", "description": "One sentence that says what is wrong."},
                        "code": {"type": "string", "description": "Stable; docs/reference/errors.md lists them."},
                        "hint": {"type": "string", "description": "What to do."},
                    },
                }
            }
        },
    }
}


def status_of(error: FencepostError) -> int:
    return _STATUS.get(error.code, 500 if isinstance(error, FaultError) else 400)


def problem(error: FencepostError) -> Response:
    status = status_of(error)
    if isinstance(error, DatabaseUnreachable):  # its own sentence says where the store is: nothing for strangers
        _log.error("database_unreachable: %s", error.sentence)
        return _response(status, error.code, "The server's store does not answer.", "Try again later.")
    return _response(status, error.code, error.sentence, error.hint or "The API is described under /docs.")


def install(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    @app.exception_handler(FencepostError)
    async def refused(_request: Request, error: FencepostError) -> Response:
        _log.info("refused", extra={"code": error.code})
        return problem(error)

    @app.exception_handler(HTTPException)
    async def http_error(_request: Request, error: HTTPException) -> Response:
        phrase = HTTPStatus(error.status_code).phrase
        code = phrase.lower().replace(" ", "_")
        hint = "The API is described under /docs."
        return _response(error.status_code, code, f"{phrase}.", hint, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def does_not_fit(_request: Request, error: RequestValidationError) -> Response:
        name = error.errors()[0]["loc"][-1]
        sentence = f"The value of '{name}' in the address can't be used."
        return _response(400, "option_invalid", sentence, "The API is described under /docs.")

    @app.exception_handler(Exception)
    async def fault(_request: Request, error: Exception) -> Response:
        _log.exception("fault", exc_info=error)
        return _response(500, "internal", "Something went wrong here; nothing was changed.", "Try again later.")


def _response(status: int, code: str, sentence: str, hint: str, headers: dict[str, str] | None = None) -> Response:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": sentence,
        "code": code,
        "hint": hint,
    }
    headers = dict(headers or {})
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(body), status, headers, "application/problem+json")
