"""Reading a subscriber's notifications, with privacy decided anew for each.

Offsets have no gaps: what was withdrawn since it was recorded still takes its place, as `{offset, withdrawn}`. The
grants are read in the same transaction as the notifications, so a revoked one stops the very next delivery. How long
a visit was says when it began: that is only for those who may know of the enter as well.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection, select

from privacy.decisions import decide
from privacy.policies import Operation, Request
from server.pubsub.loading import grant_from_row
from server.store import models

__all__ = ["read_notifications"]

_OF_THE_ENTER = ("visit", "duration_s")


def read_notifications(conn: Connection, user_id: int, after: int, limit: int) -> list[dict[str, Any]]:
    """What is addressed to this user behind the offset `after`, oldest first."""
    table = models.Notification.__table__.c
    rows = conn.execute(
        select(table.offset, table.owner_id, table.operation, table.needs, table.body)
        .where(table.subscriber_id == user_id, table.offset > after)
        .order_by(table.offset)
        .limit(limit)
    ).all()
    needs = [_needs(row.owner_id, row.operation, row.needs) for row in rows]
    owners = {owner_id for each in needs for owner_id, _ in each} - {user_id}
    granted = select(models.Grant.__table__).where(
        models.Grant.who_id == user_id, models.Grant.owner_id.in_(sorted(owners))
    )
    grants = [grant_from_row(row) for row in conn.execute(granted)] if owners else []
    notifications: list[dict[str, Any]] = []
    for row, needed in zip(rows, needs, strict=True):
        if all(decide(Request(owner_id, user_id, operation), grants).allowed for owner_id, operation in needed):
            body = msgspec.json.decode(row.body)
            enter = Request(row.owner_id, user_id, Operation.ENTER)
            if row.operation != Operation.DISTANCE and not decide(enter, grants).allowed:
                body = {name: value for name, value in body.items() if name not in _OF_THE_ENTER}
            notifications.append({"offset": row.offset, **body})
        else:
            notifications.append({"offset": row.offset, "withdrawn": True})
    return notifications


def _needs(owner_id: int, operation: str, more: str | None) -> list[tuple[int, Operation]]:
    rest = [] if more is None else msgspec.json.decode(more, type=list[tuple[int, Operation]])
    return [(owner_id, Operation(operation)), *rest]
