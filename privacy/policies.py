"""Who may see what: grants as values.

A grant speaks for all objects of its owner. What it does not name it does not allow.
"""

from enum import StrEnum

import msgspec

from zones.coarsen import Precision

__all__ = ["Grant", "Operation", "Request"]


class Operation(StrEnum):
    """What a grant can allow."""

    ENTER = "enter"
    LEAVE = "leave"
    POSITION = "position"
    DISTANCE = "distance"
    HISTORY = "history"


class Grant(msgspec.Struct, frozen=True):
    """`owner_id` lets `who_id` know about the owner's objects, as far as `operations` go, since `created`."""

    id: int
    owner_id: int
    who_id: int
    operations: frozenset[Operation]
    precision: Precision = Precision.EXACT
    created: int = 0  # milliseconds since 1970


class Request(msgspec.Struct, frozen=True):
    """Somebody wants to know something about an object of `owner_id`."""

    owner_id: int
    asker_id: int
    operation: Operation
