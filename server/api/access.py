"""Who is calling: API keys of users on HTTP and /v1/stream, credentials of agents on /v1/agent."""

import asyncio
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from server.controller.enrolment import AgentIdentity, authenticate_agent
from server.errors import AgentUnauthenticated, Unauthenticated
from server.node import Node
from server.store.accounts import Account, authenticate

__all__ = ["Caller", "TheNode", "agent_of", "caller_of", "node_of"]


def node_of(connection: HTTPConnection) -> Node:
    node: Node = connection.app.state.node
    return node


async def caller_of(connection: HTTPConnection) -> Account:
    """The user whose API key the request shows."""
    node = node_of(connection)
    token = _bearer(connection)
    account = await asyncio.to_thread(_authenticate, node, token)
    if account is None:
        raise Unauthenticated(
            "The request shows no valid API key.", hint="Send 'Authorization: Bearer fpk_...' with a key of yours."
        )
    return account


async def agent_of(connection: HTTPConnection) -> AgentIdentity:
    node = node_of(connection)
    token = _bearer(connection)
    agent = await asyncio.to_thread(_authenticate_agent, node, token)
    if agent is None:
        raise AgentUnauthenticated(
            "The credential is not (or no longer) that of an agent.", hint="Enrol the device again: POST /v1/agents."
        )
    return agent


_SHOWN_IN_DOCS = HTTPBearer(scheme_name="API key", description="A key that begins with fpk_.", auto_error=False)


async def _caller(connection: HTTPConnection, _: Annotated[object, Security(_SHOWN_IN_DOCS)]) -> Account:
    return await caller_of(connection)


Caller = Annotated[Account, Depends(_caller)]
TheNode = Annotated[Node, Depends(node_of)]


def _bearer(connection: HTTPConnection) -> str:
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _authenticate(node: Node, token: str) -> Account | None:
    with node.engine.connect() as conn:
        return authenticate(conn, token, node.clock())


def _authenticate_agent(node: Node, token: str) -> AgentIdentity | None:
    with node.engine.connect() as conn:
        return authenticate_agent(conn, token)
