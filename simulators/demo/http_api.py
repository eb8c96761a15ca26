"""The demo's side of the HTTP API: one user's requests, from the standard library alone."""

import asyncio
import http.client
import json
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from simulators.errors import DemoFailed

__all__ = ["HttpUser"]

_TIMEOUT_S = 60.0
_OPENER = build_opener(ProxyHandler({}))  # no proxy can know what runs on this machine


class HttpUser:
    """One user with one key."""

    def __init__(self, url: str, key: str) -> None:
        self._url = url
        self._key = key

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One request; the answer's JSON. Raises `DemoFailed` with the server's own sentence if it says no."""
        return await asyncio.to_thread(self._ask, method, path, body, query)

    def _ask(self, method: str, path: str, body: Any, query: dict[str, Any]) -> Any:
        request = Request(
            f"{self._url}{path}" + (f"?{urlencode(query)}" if query else ""),
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json", "Accept": "application/json"},
            method=method,
        )
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                return json.loads(answer.read())
        except HTTPError as error:
            with error:
                raise DemoFailed(f"The server refused {method} {path} ({error.code}): {_sentence(error)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise DemoFailed(f"The server did not answer {method} {path}: {reason}.") from error


def _sentence(error: HTTPError) -> str:
    try:
        problem = json.loads(error.read(1_000_000))
        return str(problem.get("detail") or problem.get("title"))
    except (ValueError, AttributeError, OSError):
        return f"{error.reason}."
