"""Allow or refuse, with the reason.

Default deny. The decision is the union of the grants that match, so their order never matters. An owner always
knows about their own objects.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from privacy.policies import Grant, Request
from zones.coarsen import Precision

__all__ = ["Decision", "Reason", "decide"]


class Reason(StrEnum):
    OWNER = "owner"
    GRANT = "grant"
    NO_GRANT = "no_grant"


class Decision(msgspec.Struct, frozen=True):
    """`reason` is for the owner's eyes and for `explain`; a stranger only learns that nothing is there."""

    allowed: bool
    reason: Reason
    precision: Precision | None = None


_OWNER = Decision(True, Reason.OWNER, Precision.EXACT)
_DENIED = Decision(False, Reason.NO_GRANT)


def decide(request: Request, grants: Iterable[Grant]) -> Decision:
    """Whether the request is allowed, and how exactly."""
    if request.owner_id == request.asker_id:
        return _OWNER
    for grant in grants:
        if (
            grant.owner_id == request.owner_id
            and grant.who_id == request.asker_id
            and request.operation in grant.operations
        ):
            return Decision(True, Reason.GRANT, grant.precision)
    return _DENIED
