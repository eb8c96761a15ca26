"""/v1/privacy/grants: whom you let know where your objects are."""

from typing import Any

import msgspec
from fastapi import APIRouter, Request
from sqlalchemy import select
from starlette.responses import Response

from privacy.policies import Grant, Operation
from server.api.access import Caller, TheNode
from server.api.bodies import RowId, answer, described, read_body
from server.pubsub.grants import add_grant, remove_grant
from server.pubsub.loading import grant_from_row
from server.store import models

__all__ = ["GrantBody", "router"]

router = APIRouter(prefix="/v1/privacy", tags=["privacy"])


class GrantBody(msgspec.Struct, forbid_unknown_fields=True):
    who: str
    operations: list[Operation]


@router.post(
    "/grants",
    status_code=201,
    summary="Let somebody know about your objects",
    openapi_extra=described(GrantBody, example={"who": "shop", "operations": ["enter", "leave"]}),
)
async def write_grant(request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, GrantBody)
    grant = await node.run(add_grant, caller, body.who, body.operations)
    return answer(_shown(grant, body.who), 201)


@router.get("/grants", summary="List the grants you gave")
def list_grants(caller: Caller, node: TheNode) -> Response:
    query = (
        select(models.Grant.__table__, models.User.name.label("who"))
        .join(models.User, models.User.id == models.Grant.who_id)
        .where(models.Grant.owner_id == caller.user_id)
        .order_by(models.Grant.id)
    )
    with node.engine.connect() as conn:
        items = [_shown(grant_from_row(row), row.who) for row in conn.execute(query)]
    return answer({"items": items, "next": None})


@router.delete("/grants/{grant_id}", status_code=204, summary="Revoke a grant")
async def revoke_grant(grant_id: RowId, caller: Caller, node: TheNode) -> Response:
    await node.run(remove_grant, caller, grant_id)
    return Response(status_code=204)


def _shown(grant: Grant, who: str) -> dict[str, Any]:
    return {"id": grant.id, "who": who, "operations": sorted(grant.operations), "precision": grant.precision}
