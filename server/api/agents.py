"""/v1/agents: inviting, enrolling, listing and revoking agents, and their WebSocket."""

from typing import Any

import msgspec
from fastapi import APIRouter, Request, WebSocket
from sqlalchemy import select
from starlette.responses import Response

from agent_sdk.protocol.codec import by_subprotocol
from matcher.instants import format_instant
from server.api.access import Caller, TheNode, agent_of
from server.api.bodies import RowId, answer, described, read_body
from server.api.problems import problem
from server.controller.enrolment import enrol, invite, revoke_agent
from server.controller.live import Controller
from server.errors import AgentUnauthenticated, OptionInvalid
from server.store import models

__all__ = ["EnrolBody", "InviteBody", "router"]

router = APIRouter(prefix="/v1", tags=["agents"])


class InviteBody(msgspec.Struct, forbid_unknown_fields=True):
    oid: str


class EnrolBody(msgspec.Struct, forbid_unknown_fields=True):
    token: str
    secret_sha256: str


@router.post(
    "/agents", status_code=201, summary="Get a one-use token for a device", openapi_extra=described(InviteBody)
)
async def invite_agent(request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, InviteBody)
    invitation = await node.run(invite, caller, body.oid)
    shown = {**msgspec.structs.asdict(invitation), "expires": format_instant(invitation.expires)}
    return answer(shown, 201)


@router.post(
    "/agents/enrol", status_code=201, summary="Redeem the token, on the device", openapi_extra=described(EnrolBody)
)
async def enrol_agent(request: Request, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, EnrolBody)
    return answer(await node.run(enrol, body.token, body.secret_sha256), 201)


@router.get("/agents", summary="List your agents")
def list_agents(caller: Caller, node: TheNode, limit: int = 100, after: RowId = 0) -> Response:
    limit = max(1, min(limit, node.settings.max_page))
    query = (
        select(models.Agent.__table__, models.Object.oid)
        .join(models.Object, models.Object.id == models.Agent.object_id)
        .where(models.Object.owner_id == caller.user_id, models.Agent.status != "ended", models.Agent.id > after)
        .order_by(models.Agent.id)
        .limit(limit + 1)
    )
    with node.engine.connect() as conn:
        rows = conn.execute(query).all()
    page = rows[:limit]
    more = len(rows) > limit
    return answer({"items": [_shown(row) for row in page], "next": page[-1].id if more else None})


@router.delete("/agents/{agent_id}", status_code=204, summary="Revoke an agent")
async def remove_agent(agent_id: RowId, caller: Caller, node: TheNode) -> Response:
    await node.run(revoke_agent, caller, agent_id)
    return Response(status_code=204)


@router.websocket("/agent")
async def agent_socket(socket: WebSocket) -> None:
    """An agent's connection; docs/protocol.md says what travels on it."""
    controller: Controller = socket.app.state.controller
    offered = socket.scope.get("subprotocols", [])
    chosen = next((name for name in offered if by_subprotocol(name) is not None), None)
    codec = by_subprotocol(chosen)
    if chosen is None or codec is None:
        error = OptionInvalid(
            "The handshake offers no subprotocol that is spoken here.",
            hint="Offer fencepost.v1.json or fencepost.v1.msgpack.",
        )
        await socket.send_denial_response(problem(error))
        return
    try:
        agent = await agent_of(socket)
    except AgentUnauthenticated as refused:
        await socket.send_denial_response(problem(refused))
        return
    await socket.accept(subprotocol=chosen)
    await controller.serve(socket, agent, codec)


def _shown(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "oid": row.oid,
        "status": row.status,
        "last_seen": None if row.last_seen is None else format_instant(row.last_seen),
        "lease_until": None if not row.lease_until else format_instant(row.lease_until),
    }
