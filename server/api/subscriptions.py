"""/v1/subscriptions: what a subscriber wants to know, under an id of the subscriber's choice."""

from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from matcher.compilation import compile_condition
from matcher.instants import format_instant, parse_instant
from matcher.once import Mode, Tos
from server.api.access import Caller, TheNode
from server.api.bodies import RowId, answer, described, read_body
from server.controller.plans import obstacle
from server.errors import OptionInvalid, SubscriptionNotFound
from server.pubsub.entries import SubscriptionEntry
from server.pubsub.subscriptions import NewSubscription, delete_subscription, put_subscription
from server.pubsub.work import Work
from server.store.accounts import Account

__all__ = ["SubscriptionBody", "router"]

router = APIRouter(prefix="/v1", tags=["subscriptions"])


class SubscriptionBody(msgspec.Struct, forbid_unknown_fields=True):
    selector: str
    tos: Tos = Tos.ONCE
    modes: list[Mode] | None = None
    dwell_s: float = 0.0
    expires: str | int | None = None
    stale_s: float = 300.0
    purpose: str = ""
    paused: bool = False
    id: str | None = None  # may repeat the one in the address


_EXAMPLE = {"selector": "('acme/van7') within (SYSTEM.Xidan)", "tos": "once"}


@router.put(
    "/subscriptions/{name}",
    summary="Create or change a subscription",
    openapi_extra=described(SubscriptionBody, example=_EXAMPLE),
)
async def write_subscription(name: str, request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, SubscriptionBody)
    if body.id not in (None, name):
        raise OptionInvalid("The body has another id than the address.", hint="Leave it out of the body.", option="id")
    new = NewSubscription(
        name=name,
        selector=body.selector,
        tos=body.tos,
        modes=None if body.modes is None else tuple(body.modes),
        dwell_s=body.dwell_s,
        expires=None if body.expires is None else parse_instant(body.expires),
        stale_s=body.stale_s,
        purpose=body.purpose,
        paused=body.paused,
    )
    entry, is_new = await node.run(put_subscription, caller, new)
    return answer(_shown(entry), 201 if is_new else 200)


@router.get("/subscriptions", summary="List your subscriptions")
async def list_subscriptions(caller: Caller, node: TheNode, limit: int = 100, after: RowId = 0) -> Response:
    limit = max(1, min(limit, node.settings.max_page))
    entries = await node.run(_mine, caller, after, limit + 1)
    page = entries[:limit]
    more = len(entries) > limit
    return answer({"items": [_shown(entry) for entry in page], "next": page[-1].id if more else None})


@router.get("/subscriptions/{name}", summary="Read a subscription")
async def read_subscription(name: str, caller: Caller, node: TheNode) -> Response:
    return answer(_shown(await node.run(_find, caller, name)))


@router.delete("/subscriptions/{name}", status_code=204, summary="Delete a subscription; its bindings end")
async def remove_subscription(name: str, caller: Caller, node: TheNode) -> Response:
    await node.run(delete_subscription, caller, name)
    return Response(status_code=204)


@router.get("/subscriptions/{name}/explain", summary="Who evaluates what, as far as you may know")
async def explain_subscription(name: str, caller: Caller, node: TheNode) -> Response:
    return answer(await node.run(_explain, caller, name))


def _shown(entry: SubscriptionEntry) -> dict[str, Any]:
    service = entry.service
    return {
        "id": entry.name,
        "selector": entry.text,
        "tos": service.tos,
        "modes": service.modes,
        "dwell_s": service.dwell_s,
        "expires": None if service.expires is None else format_instant(service.expires),
        "stale_s": service.stale_s,
        "purpose": entry.purpose,
        "paused": entry.paused,
    }


def _mine(work: Work, account: Account, after: int, limit: int) -> list[SubscriptionEntry]:
    entries = (entry for entry in work.world.subscriptions.values() if entry.subscriber_id == account.user_id)
    return sorted((entry for entry in entries if entry.id > after), key=lambda entry: entry.id)[:limit]


def _find(work: Work, account: Account, name: str) -> SubscriptionEntry:
    entry = work.world.subscription(account.user_id, name)
    if entry is None:
        raise SubscriptionNotFound(f"You have no subscription '{name}'.", hint="List yours to see their ids.")
    return entry


def _explain(work: Work, account: Account, name: str) -> dict[str, Any]:
    """The objects the subscriber may know of, and who decides for each of their bindings."""
    entry = _find(work, account, name)
    bindings = []
    for object_id in work.world.objects_meant(entry):
        thing = work.world.objects[object_id]
        has_agent = work.world.agent_holding(object_id, work.now) is not None
        for rule in work.world.rulebook.rules(object_id):
            if rule.key.subscription_id != entry.id:
                continue
            zone = work.world.zones.get(rule.key.target)
            evaluator, reason = "server", "no_agent"
            if has_agent:
                why_not = obstacle(work.world, thing, rule)
                evaluator, reason = ("agent", "offloaded") if why_not is None else ("nobody", why_not)
            target = None if zone is None else zone.zone.name
            binding: dict[str, Any] = {"oid": thing.oid, "target": target, "evaluator": evaluator, "reason": reason}
            if evaluator == "server":
                binding["dropped"] = [each.why for each in compile_condition(rule.condition, work.world.region).dropped]
            bindings.append(binding)
    return {"id": entry.name, "paused": entry.paused, "bindings": bindings}
