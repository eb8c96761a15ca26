"""/v1/subscriptions: what a subscriber wants to know, under an id of the subscriber's choice."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from matcher.instants import format_instant, parse_instant
from matcher.once import Mode, Tos
from server.api.access import Caller, TheNode
from server.api.bodies import RowId, answer, described, read_body
from server.api.events import EVENT_EXAMPLE, read_events
from server.errors import OptionInvalid
from server.node import Node
from server.pubsub.entries import SubscriptionEntry
from server.pubsub.explaining import explain_subscription
from server.pubsub.pages import Page
from server.pubsub.standing import read_standing
from server.pubsub.subscriptions import (
    NewSubscription,
    delete_subscription,
    find_subscription,
    list_subscriptions,
    put_subscription,
)
from server.pubsub.verdicts import explain_event
from server.store.accounts import Account
from zones.names import fold

__all__ = ["SubscriptionBody", "page_of_subscriptions", "router", "show_subscription", "write_subscription"]

router = APIRouter(prefix="/v1", tags=["subscriptions"])


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    selector: str
    tos: Tos = Tos.ONCE
    modes: list[Mode] | None = None
    dwell_s: float = 0.0
    expires: str | int | None = None
    stale_s: float = 300.0
    hysteresis_m: float = 0.0
    unc_factor: float = 0.0
    crossing: bool = False
    purpose: str = ""
    paused: bool = False
    id: str | None = None  # may repeat the one in the address


_EXAMPLE = {"selector": "('acme/van7') within (SYSTEM.Xidan)", "tos": "once"}


@router.put(
    "/subscriptions/{name}",
    summary="Create or change a subscription",
    openapi_extra=described(SubscriptionBody, example=_EXAMPLE),
)
async def put_by_name(name: str, request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, SubscriptionBody)
    if body.id not in (None, name):
        raise OptionInvalid("The body has another id than the address.", hint="Leave it out of the body.", option="id")
    return answer(*await write_subscription(node, caller, name, body))


async def write_subscription(
    node: Node, caller: Account, name: str, body: SubscriptionBody
) -> tuple[dict[str, Any], int]:
    """Create or change it; the subscription as it is shown, and the status."""
    new = NewSubscription(
        name=name,
        selector=body.selector,
        tos=body.tos,
        modes=None if body.modes is None else tuple(body.modes),
        dwell_s=body.dwell_s,
        expires=None if body.expires is None else parse_instant(body.expires),
        stale_s=body.stale_s,
        hysteresis_m=body.hysteresis_m,
        unc_factor=body.unc_factor,
        crossing=body.crossing,
        purpose=body.purpose,
        paused=body.paused,
    )
    entry, is_new = await node.run(put_subscription, caller, new)
    return show_subscription(entry), 201 if is_new else 200


@router.get("/subscriptions", summary="List your subscriptions")
async def list_mine(caller: Caller, node: TheNode, limit: int = 100, after: RowId = 0) -> Response:
    return answer(await page_of_subscriptions(node, caller, limit, after))


async def page_of_subscriptions(node: Node, caller: Account, limit: int, after: int) -> dict[str, Any]:
    limit = max(1, min(limit, node.settings.max_page))
    entries = await node.run(list_subscriptions, caller, after, limit + 1)
    page = entries[:limit]
    more = len(entries) > limit
    return {"items": [show_subscription(entry) for entry in page], "next": page[-1].id if more else None}


@router.get("/subscriptions/{name}", summary="Read a subscription")
async def read_by_name(name: str, caller: Caller, node: TheNode) -> Response:
    return answer(show_subscription(await node.run(find_subscription, caller, name)))


@router.delete("/subscriptions/{name}", status_code=204, summary="Delete a subscription; its bindings end")
async def delete_by_name(name: str, caller: Caller, node: TheNode) -> Response:
    await node.run(delete_subscription, caller, name)
    return Response(status_code=204)


def _page(
    node: TheNode, limit: int = 100, after: str | None = None, oid: str | None = None, target: str | None = None
) -> Page:
    return Page(max(1, min(limit, node.settings.max_page)), after, None if oid is None else fold(oid), target)


_APage = Annotated[Page, Depends(_page)]


@router.get("/subscriptions/{name}/explain", summary="Who evaluates what, and what is over, as far as you may know")
async def explain_bindings(name: str, caller: Caller, node: TheNode, page: _APage) -> Response:
    return answer(await node.run(explain_subscription, caller, name, page))


@router.post(
    "/subscriptions/{name}/explain",
    summary="What an event would do to each binding, and why; nothing is changed",
    openapi_extra=described(example=EVENT_EXAMPLE),
)
async def explain_why(
    name: str,
    request: Request,
    caller: Caller,
    node: TheNode,
    limit: int = 100,
    after: str | None = None,
    target: str | None = None,
) -> Response:
    (event,) = await read_events(request, caller, node, most=1)
    page = _page(node, limit, after, None, target)
    return answer(await node.run(explain_event, caller, name, event, page))


@router.get("/subscriptions/{name}/state", summary="Who is inside now, and since when, as far as you may know")
async def read_state(name: str, caller: Caller, node: TheNode, page: _APage) -> Response:
    return answer(await node.run(read_standing, caller, name, page))


def show_subscription(entry: SubscriptionEntry) -> dict[str, Any]:
    service = entry.service
    return {
        "id": entry.name,
        "selector": entry.text,
        "tos": service.tos,
        "modes": service.modes,
        "dwell_s": service.dwell_s,
        "expires": None if service.expires is None else format_instant(service.expires),
        "stale_s": service.stale_s,
        "hysteresis_m": service.hysteresis_m,
        "unc_factor": service.unc_factor,
        "crossing": service.crossing,
        "purpose": entry.purpose,
        "paused": entry.paused,
    }
