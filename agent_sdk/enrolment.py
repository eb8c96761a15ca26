"""Becoming an agent: a one-use token is turned into a credential whose secret never leaves the device.

The device makes the secret and tells the server only its hash, so nobody who reads the server's store, or the
answer on the way, can connect as the device.
"""

import asyncio
import hashlib
import json
import secrets
import urllib.error
import urllib.request
from urllib.parse import urlsplit, urlunsplit

from agent_sdk.errors import CredentialInvalid, EnrolmentFailed, ServerUnreachable, UrlInvalid

__all__ = ["agent_url", "check_credential", "enrol", "http_url"]

_PREFIX = "fpa_"
_ANSWER_MAX = 65_536


async def enrol(url: str, token: str, *, timeout_s: float = 15.0) -> str:
    """Use up an enrolment token; gives the credential, to be kept where only the device can read it."""
    return await asyncio.to_thread(_enrol, url, token, timeout_s)


def _enrol(url: str, token: str, timeout_s: float) -> str:
    secret = secrets.token_urlsafe(32)
    body = {"token": token, "secret_sha256": hashlib.sha256(secret.encode()).hexdigest()}
    request = urllib.request.Request(
        http_url(url) + "/v1/agents/enrol",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Accept": "application/json"},
        method="POST",
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(request, timeout=timeout_s) as response:
            answer = json.loads(response.read(_ANSWER_MAX))
            return f"{_PREFIX}{answer['agent']}_{secret}"
    except urllib.error.HTTPError as error:
        with error:
            raise EnrolmentFailed(*_refusal(error)) from None
    except (OSError, TimeoutError) as error:
        reason = getattr(error, "reason", error)
        raise ServerUnreachable(
            f"The server at {http_url(url)} can't be reached: {reason}.", hint="Look at the address and the network."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EnrolmentFailed(
            "The server's answer to the enrolment can't be read.", hint="Does the URL name a Fencepost server?"
        ) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would carry the token to somebody else."""

    def redirect_request(self, *_: object) -> None:
        return None


def _refusal(error: urllib.error.HTTPError) -> tuple[str]:
    try:
        problem = json.loads(error.read(_ANSWER_MAX))
        sentence = problem.get("detail") or problem.get("title")
    except (ValueError, AttributeError, OSError):
        sentence = None
    return (f"The enrolment was refused (HTTP {error.code}): {sentence or 'the server did not say why.'}",)


def http_url(url: str) -> str:
    """The server's base URL for HTTP, without a trailing slash; ws and wss are understood too."""
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        is_usable = bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:  # brackets without an end, a port that is none, a label that is too long
        is_usable = False
    scheme = {"http": "http", "https": "https", "ws": "http", "wss": "https"}.get(parts.scheme) if is_usable else None
    if scheme is None:
        raise UrlInvalid(f"The server's URL '{url}' is not one.", hint="Write it like https://fencepost.example.com.")
    path = parts.path.rstrip("/").removesuffix("/v1/agent")
    return urlunsplit((scheme, parts.netloc, path, "", ""))


def agent_url(url: str) -> str:
    """The WebSocket's URL for any form of the server's."""
    return "ws" + http_url(url).removeprefix("http") + "/v1/agent"


def check_credential(credential: str) -> str:
    """The credential without white space around it; raises `CredentialInvalid` if it can't be one."""
    credential = credential.strip()
    agent, _, secret = credential.removeprefix(_PREFIX).partition("_")
    if not credential.startswith(_PREFIX) or not agent or not secret or not credential.isascii():
        raise CredentialInvalid(
            "That is not an agent's credential.", hint="It begins with fpa_ and is what enrolling gave."
        )
    return credential
