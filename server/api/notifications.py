"""/v1/notifications: cursor poll and server-sent events; /v1/stream: the same over a WebSocket, and subscribing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec
from fastapi import APIRouter, Request, WebSocket
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

from server.api.access import Caller, TheNode, caller_of, node_of
from server.api.bodies import answer
from server.api.problems import problem
from server.api.stream_messages import reply_to
from server.delivery.following import follow_notifications, poll_notifications
from server.errors import CursorInvalid, Unauthenticated
from server.node import Node
from server.store.accounts import Account
from zones.errors import FencepostError

__all__ = ["router"]

router = APIRouter(prefix="/v1", tags=["notifications"])

_CLOSE_KEY_INVALID = 4401
_CLOSE_TRY_AGAIN = 1013


@router.get("/notifications", summary="Notifications behind a cursor; with Accept: text/event-stream as they come")
async def read_notifications(
    request: Request, caller: Caller, node: TheNode, after: str = "0", limit: int = 100, wait_s: float = 0.0
) -> Response:
    if "text/event-stream" in request.headers.get("accept", ""):
        start = _cursor(request.headers.get("last-event-id", after))
        return StreamingResponse(
            _server_sent(node, caller, start),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    cursor = _cursor(after)
    limit = max(1, min(limit, node.settings.max_page))
    wait_s = max(0.0, min(wait_s, node.settings.max_wait_s))
    page = await poll_notifications(node, caller, cursor, limit, wait_s)
    return answer({"notifications": page, "next": page[-1]["offset"] if page else cursor})


@router.websocket("/stream")
async def stream(socket: WebSocket) -> None:
    """Each frame is one notification, or a reply to what the subscriber said; `?after=OFFSET` says where to begin."""
    try:
        caller = await caller_of(socket)
        after = _cursor(socket.query_params.get("after", "0"))
    except (Unauthenticated, CursorInvalid) as refused:
        await socket.send_denial_response(problem(refused))
        return
    await socket.accept()
    sender = asyncio.create_task(_send_all(socket, node_of(socket), caller, after))
    try:
        with suppress(WebSocketDisconnect, RuntimeError):
            await _answer_all(socket, node_of(socket))
    finally:
        sender.cancel()


async def _answer_all(socket: WebSocket, node: Node) -> None:
    """One after the other, so that what is said first is done first. The key is looked at each time, as with HTTP."""
    while (frame := await socket.receive())["type"] != "websocket.disconnect":
        try:
            caller = await caller_of(socket)
        except Unauthenticated as error:
            await socket.close(_CLOSE_KEY_INVALID, error.code)
            return
        await socket.send_text(_json(await reply_to(node, caller, frame.get("text"))))


async def _send_all(socket: WebSocket, node: Node, caller: Account, after: int) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        try:
            async for page in follow_notifications(node, caller.user_id, after, key_id=caller.key_id):
                for notification in page:
                    await socket.send_text(_json(notification))
        except FencepostError as error:  # an open socket on which nothing ever came again would be worse
            code = _CLOSE_KEY_INVALID if isinstance(error, Unauthenticated) else _CLOSE_TRY_AGAIN
            await socket.close(code, error.code)


async def _server_sent(node: Node, caller: Account, after: int) -> AsyncIterator[str]:
    with suppress(FencepostError):  # it ends; whoever connects again is told why, and goes on where this stopped
        async for page in follow_notifications(node, caller.user_id, after, key_id=caller.key_id):
            if not page:
                yield ": still here\n\n"
            for notification in page:
                yield f"id: {notification['offset']}\nevent: notification\ndata: {_json(notification)}\n\n"


def _cursor(text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise CursorInvalid(
            "The cursor is not an offset.", hint="Use the offset of the last notification you have, or 0."
        )
    return int(text)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
