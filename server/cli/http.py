"""A small client of the HTTP API for the commands, from the standard library alone: it also runs on a device.

It never follows a redirect: that would send the key to wherever the answer points.
"""

import argparse
import http.client
import json
import os
from collections.abc import Iterator
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from agent_sdk.errors import ServerUnreachable
from zones.errors import CallerError, FencepostError

__all__ = [
    "Client",
    "KeyMissing",
    "Refused",
    "ServerUrlInvalid",
    "add_server_arguments",
    "connect",
    "default_url",
    "host_of",
    "opener_for",
    "segment",
]

_DEFAULT_URL = "http://127.0.0.1:8000"
_TIMEOUT_S = 60.0
_PAGE = 500


class Refused(CallerError):
    """The server said no; `details["code"]` has its code."""

    code = "refused"


class KeyMissing(CallerError):
    code = "key_missing"


class ServerUrlInvalid(CallerError):
    code = "server_url_invalid"


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help=f"the server (default: FENCEPOST_URL, or {_DEFAULT_URL})")
    parser.add_argument("--key", help="your API key (default: FENCEPOST_KEY, which other users can't see)")


def default_url(given: str | None) -> str:
    return given or os.environ.get("FENCEPOST_URL") or _DEFAULT_URL


def connect(args: argparse.Namespace) -> "Client":
    url = default_url(args.url)
    key = args.key or os.environ.get("FENCEPOST_KEY") or ""
    if not key:
        raise KeyMissing("There is no API key.", hint="Set FENCEPOST_KEY, or make one: `fencepost keys add USER`.")
    if not key.isascii() or not key.isprintable():
        raise KeyMissing("The API key has characters that no key has.", hint="Copy it again: it begins with fpk_.")
    return Client(url, key)


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


class Client:
    def __init__(self, url: str, key: str) -> None:
        host = host_of(url)
        if not host:
            raise ServerUrlInvalid(f"'{url}' is not the URL of a server.", hint=f"Write it as {_DEFAULT_URL}.")
        self._url = url.rstrip("/")
        self._key = key
        self._opener = opener_for(host)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        content: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float = _TIMEOUT_S,
    ) -> Any:
        """One request; the answer's JSON, or None if it has no body. `content` is a body that is sent as it is."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        data = content if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        url = f"{self._url}{path}" + (f"?{urlencode(asked)}" if asked else "")
        try:
            with self._opener.open(Request(url, data, headers, method=method), timeout=timeout_s) as answer:
                return self._decode(answer.read())
        except HTTPError as error:
            with error:
                raise _refusal(error, self._url) from None
        except (URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", None) or error
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise ServerUnreachable(
                f"The server at {self._url} does not answer: {text}.",
                hint="Start one with `fencepost serve`, or say where it is with --url.",
            ) from error

    def items(self, path: str, *, query: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
        """Everything a list has, page by page."""
        after = None
        while True:
            page = self.call("GET", path, query={**(query or {}), "limit": _PAGE, "after": after})
            yield from page["items"]
            after = page.get("next")
            if after is None:
                return

    def _decode(self, text: bytes) -> Any:
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise ServerUnreachable(
                f"What answers at {self._url} is not a Fencepost server.", hint="Check the URL."
            ) from None


def host_of(url: str) -> str | None:
    """The host that the URL names; None if it is no URL of a server."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")
        is_usable = parts.scheme in ("http", "https") and url.isprintable() and parts.port != 0
    except ValueError:  # brackets without an end, a port that is none, a label that is too long
        return None
    return host if is_usable else None


def opener_for(host: str) -> OpenerDirector:
    """Opens what is on that host, and follows no redirects."""
    # A proxy that the environment names can't know what is on this machine.
    here = host in ("localhost", "::1") or host.startswith("127.")
    return build_opener(_NoRedirects, *([ProxyHandler({})] if here else []))


def _refusal(error: HTTPError, url: str) -> FencepostError:
    problem = _problem(error)
    sentence = problem.get("detail") or problem.get("title")
    if not isinstance(sentence, str):
        return ServerUnreachable(f"The server at {url} answered {error.code} {error.reason}.", hint="Check the URL.")
    hint = problem.get("hint")
    return Refused(sentence, hint=hint if isinstance(hint, str) else "", code=problem.get("code"), status=error.code)


def _problem(body: IO[bytes]) -> dict[str, Any]:
    try:
        problem = json.loads(body.read(1_000_000))
    except (ValueError, OSError, http.client.HTTPException):
        return {}
    return problem if isinstance(problem, dict) else {}
