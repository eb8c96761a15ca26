"""The errors of the server.

CallerError
├── Unauthenticated, AgentUnauthenticated, TokenInvalid     who are you
├── Forbidden                                               what an administrator may and you may not
├── NotFound                                                not there, or not for you: nobody can tell which
│   └── ZoneNotFound, ObjectNotFound, SubscriptionNotFound, UserNotFound, GrantNotFound, AgentNotFound,
│       DelegationNotFound
├── ObjectHasAgent, ZoneExists, VersionMismatch             not now
└── BodyInvalid, BodyTooLarge, BatchTooLarge, OptionInvalid, CursorInvalid, TimestampAhead
"""

from zones.errors import CallerError

__all__ = [
    "AgentNotFound",
    "AgentUnauthenticated",
    "BatchTooLarge",
    "BodyInvalid",
    "BodyTooLarge",
    "CursorInvalid",
    "DelegationNotFound",
    "Forbidden",
    "GrantNotFound",
    "NotFound",
    "ObjectHasAgent",
    "ObjectNotFound",
    "OptionInvalid",
    "SubscriptionNotFound",
    "TimestampAhead",
    "TokenInvalid",
    "Unauthenticated",
    "UserNotFound",
    "VersionMismatch",
    "ZoneExists",
    "ZoneNotFound",
]


class Unauthenticated(CallerError):
    code = "key_invalid"


class AgentUnauthenticated(CallerError):
    code = "credential_refused"


class TokenInvalid(CallerError):
    code = "token_invalid"


class Forbidden(CallerError):
    code = "forbidden"


class NotFound(CallerError):
    """Not there, or not for this caller: the answer is the same."""

    code = "not_found"


class ZoneNotFound(NotFound):
    code = "zone_not_found"


class ObjectNotFound(NotFound):
    code = "object_not_found"


class SubscriptionNotFound(NotFound):
    code = "subscription_not_found"


class UserNotFound(NotFound):
    code = "user_not_found"


class GrantNotFound(NotFound):
    code = "grant_not_found"


class AgentNotFound(NotFound):
    code = "agent_not_found"


class DelegationNotFound(NotFound):
    code = "delegation_not_found"


class ObjectHasAgent(CallerError):
    code = "object_has_agent"


class ZoneExists(CallerError):
    code = "zone_exists"


class VersionMismatch(CallerError):
    code = "version_mismatch"


class BodyInvalid(CallerError):
    code = "body_invalid"


class BodyTooLarge(CallerError):
    code = "body_too_large"


class BatchTooLarge(CallerError):
    code = "batch_too_large"


class OptionInvalid(CallerError):
    code = "option_invalid"


class CursorInvalid(CallerError):
    code = "cursor_invalid"


class TimestampAhead(CallerError):
    code = "ts_ahead"
