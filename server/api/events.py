"""/v1/events: fixes of objects that have no agent, and messages about regions; one or a batch."""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from matcher.event_format import REGION_TYPES, parse_event
from matcher.events import Event
from server.api.access import Caller, TheNode
from server.api.bodies import answer, described, read_json
from server.api.places import locate_texts
from server.errors import BatchTooLarge, BodyInvalid
from server.node import Node
from server.pubsub.publishing import publish
from server.store.accounts import Account
from zones.errors import FencepostError

__all__ = ["EVENT_EXAMPLE", "read_events", "router"]

router = APIRouter(prefix="/v1", tags=["events"])

EVENT_EXAMPLE = {"oid": "acme/van7", "ts": "2026-11-18T07:00:00Z", "loc": [116.3688, 39.9087], "speed": 12.5}


@router.post(
    "/events",
    status_code=202,
    summary="Publish an event, or a list of them; all or nothing",
    openapi_extra=described(example=EVENT_EXAMPLE),
)
async def publish_events(request: Request, caller: Caller, node: TheNode) -> Response:
    events = await read_events(request, caller, node, most=node.settings.max_events_per_batch)
    published = await node.run(publish, caller, events)
    node.metrics.published(published.accepted, published.late)
    return answer(published, 202)


async def read_events(request: Request, caller: Account, node: Node, *, most: int) -> list[Event]:
    """The body as events: one, or a list of at most so many."""
    body = await read_json(request, node.settings.max_body_bytes)
    items = body if isinstance(body, list) else [body]
    if not items:
        raise BodyInvalid("The batch is empty.", hint="Send at least one event.")
    if len(items) > most:
        raise BatchTooLarge(
            f"The batch has {len(items)} events; at most {most} are taken.", hint="Send it in smaller parts."
        )
    locate = await locate_texts(node, caller, request.app.state.geocoder, items)
    events = []
    for index, item in enumerate(items):
        try:
            events.append(parse_event(item, default_oid=_default_oid(item, caller.name), locate=locate))
        except FencepostError as error:
            if len(items) > 1:
                error.sentence = f"Event {index} of the batch: {error.sentence}"
            raise
    return events


def _default_oid(item: object, name: str) -> str:
    """An event that does not say whose it is is the sender's own, unless it is about a region and no place."""
    if not isinstance(item, Mapping) or item.get("loc") is not None:
        return name
    values = (value for value in item.values() if isinstance(value, Mapping))
    return "" if any(value.get("type") in REGION_TYPES for value in values) else name
