"""/v1/events: fixes of objects that have no agent, one or a batch."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from matcher.event_format import parse_event
from server.api.access import Caller, TheNode
from server.api.bodies import answer, described, read_json
from server.errors import BatchTooLarge, BodyInvalid
from server.pubsub.publishing import publish
from zones.errors import FencepostError

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["events"])

_EXAMPLE = {"oid": "acme/van7", "ts": "2026-11-18T07:00:00Z", "loc": [116.3688, 39.9087], "speed": 12.5}


@router.post(
    "/events",
    status_code=202,
    summary="Publish an event, or a list of them; all or nothing",
    openapi_extra=described(example=_EXAMPLE),
)
async def publish_events(request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_json(request, node.settings.max_body_bytes)
    items = body if isinstance(body, list) else [body]
    if not items:
        raise BodyInvalid("The batch is empty.", hint="Send at least one event.")
    if len(items) > node.settings.max_events_per_batch:
        raise BatchTooLarge(
            f"The batch has {len(items)} events; at most {node.settings.max_events_per_batch} are taken.",
            hint="Send it in smaller parts.",
        )
    events = []
    for index, item in enumerate(items):
        try:
            events.append(parse_event(item, default_oid=caller.name))
        except FencepostError as error:
            if len(items) > 1:
                error.sentence = f"Event {index} of the batch: {error.sentence}"
            raise
    published = await node.run(publish, caller, events)
    node.metrics.published(published.accepted, published.late)
    return answer(published, 202)
