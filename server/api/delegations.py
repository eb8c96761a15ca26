"""/v1/privacy/delegations: whom you let say where your objects are."""

from typing import Any

import msgspec
from fastapi import APIRouter, Request
from sqlalchemy import Row, Select, select
from starlette.responses import Response

from matcher.instants import format_instant
from server.api.access import Caller, TheNode
from server.api.bodies import answer, described, read_body
from server.errors import DelegationNotFound
from server.node import Node
from server.pubsub.delegations import put_delegation, remove_delegation
from server.store import models
from server.store.accounts import Account
from zones.names import fold, shown

__all__ = ["DelegationBody", "router"]

router = APIRouter(prefix="/v1/privacy", tags=["privacy"])


class DelegationBody(msgspec.Struct, forbid_unknown_fields=True):
    """Without oids, all of your objects are meant, those to come included."""

    oids: list[str] | None = None


@router.put(
    "/delegations/{provider}",
    summary="Let a location provider publish for your objects",
    openapi_extra=described(DelegationBody, example={"oids": ["acme/van7"]}),
)
async def write_delegation(provider: str, request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, DelegationBody)
    is_new = await node.run(put_delegation, caller, provider, body.oids)
    return answer(_find(node, caller, provider), 201 if is_new else 200)


@router.get("/delegations", summary="List your delegations")
def list_delegations(caller: Caller, node: TheNode) -> Response:
    with node.engine.connect() as conn:
        items = [_shown(row) for row in conn.execute(_of(caller).order_by(models.User.folded))]
    return answer({"items": items, "next": None})


@router.get("/delegations/{provider}", summary="Read a delegation")
def read_delegation(provider: str, caller: Caller, node: TheNode) -> Response:
    return answer(_find(node, caller, provider))


@router.delete("/delegations/{provider}", status_code=204, summary="Take a delegation back")
async def revoke_delegation(provider: str, caller: Caller, node: TheNode) -> Response:
    await node.run(remove_delegation, caller, provider)
    return Response(status_code=204)


def _of(caller: Account) -> Select[Any]:
    return (
        select(models.Delegation.__table__, models.User.name.label("provider"))
        .join(models.User, models.User.id == models.Delegation.provider_id)
        .where(models.Delegation.owner_id == caller.user_id)
    )


def _find(node: Node, caller: Account, provider: str) -> dict[str, Any]:
    row = None
    if "\0" not in provider:  # which no name has, and PostgreSQL takes in no text
        with node.engine.connect() as conn:
            row = conn.execute(_of(caller).where(models.User.folded == fold(provider))).first()
    if row is None:
        raise DelegationNotFound(f"You have delegated nothing to {shown(provider)}.", hint="List your delegations.")
    return _shown(row)


def _shown(row: Row[Any]) -> dict[str, Any]:
    oids = None if row.oids is None else msgspec.json.decode(row.oids, type=list[str])
    return {"provider": row.provider, "oids": oids, "created": format_instant(row.created)}
