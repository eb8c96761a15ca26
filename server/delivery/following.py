"""Following a subscriber's notifications as they come.

The store is read again after each hint of the bus and at least every few seconds, so a lost hint costs time and
never a notification. The key somebody came in with is looked at each time as well: one that was revoked or has
expired ends what it had opened, before anything more is told.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from server.bus.bus import notifications_of
from server.delivery.reading import read_notifications
from server.errors import Unauthenticated
from server.node import Node
from server.store.accounts import Account, is_key_valid

__all__ = ["follow_notifications", "poll_notifications"]

_PAGE = 500
_LOOK_AGAIN_S = 15.0


async def poll_notifications(
    node: Node, caller: Account, after: int, limit: int, wait_s: float
) -> list[dict[str, Any]]:
    """A page behind the cursor; if there is none yet, wait for it up to `wait_s`."""
    with node.bus.listen(notifications_of(caller.user_id)) as listener:
        page = await _read(node, caller.user_id, caller.key_id, after, limit)
        if not page and wait_s > 0 and await listener.wait(wait_s):
            page = await _read(node, caller.user_id, caller.key_id, after, limit)
    return page


async def follow_notifications(
    node: Node, user_id: int, after: int, *, key_id: str | None = None
) -> AsyncIterator[list[dict[str, Any]]]:
    """Pages behind the cursor, for ever; an empty one every 15 seconds when there is nothing to tell.

    Raises `Unauthenticated` when the key is no longer good. An agent has none: its session ends with its enrolment.
    """
    with node.bus.listen(notifications_of(user_id)) as listener:
        while True:
            page = await _read(node, user_id, key_id, after, _PAGE)
            if page:
                after = page[-1]["offset"]
            yield page
            if len(page) < _PAGE:
                await listener.wait(_LOOK_AGAIN_S)


async def _read(node: Node, user_id: int, key_id: str | None, after: int, limit: int) -> list[dict[str, Any]]:
    page = await asyncio.to_thread(_read_now, node, user_id, key_id, after, limit)
    if page:
        withdrawn = sum("withdrawn" in notification for notification in page)
        node.metrics.delivered(len(page) - withdrawn, withdrawn)
    return page


def _read_now(node: Node, user_id: int, key_id: str | None, after: int, limit: int) -> list[dict[str, Any]]:
    with node.engine.connect() as conn:
        if key_id is not None and not is_key_valid(conn, key_id, node.clock()):
            raise Unauthenticated("The API key is no longer valid.", hint="Connect again with another key of yours.")
        return read_notifications(conn, user_id, after, limit)
