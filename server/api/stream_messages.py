"""What a subscriber may say on /v1/stream: the same as over HTTP, with the same bodies and the same errors.

So a subscriber needs one connection. Every message has a `ref` of the subscriber's choice, which its reply repeats.
A reply has no `offset`, and every notification has one: that tells them apart, whatever pairs an event has.
"""

from typing import Any

import msgspec

from server.api.bodies import decode_json
from server.api.problems import problem
from server.api.subscriptions import (
    SubscriptionBody,
    page_of_subscriptions,
    show_subscription,
    write_subscription,
)
from server.errors import BodyInvalid, BodyTooLarge, OptionInvalid
from server.node import Node
from server.pubsub.subscriptions import delete_subscription, find_subscription
from server.store.accounts import Account
from zones.errors import FencepostError

__all__ = ["FromSubscriber", "ListSubscriptions", "ReadSubscription", "Reply", "Subscribe", "Unsubscribe", "reply_to"]

_Ref = str | int
_MAX_REF = 100
_MAX_AFTER = 2**63 - 1


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="t"):
    ref: _Ref


class Subscribe(_Said, frozen=True, tag="subscribe"):
    """Create a subscription under an id of your choice, change it, pause it; as PUT /v1/subscriptions/{id}."""

    id: str
    subscription: SubscriptionBody


class Unsubscribe(_Said, frozen=True, tag="unsubscribe"):
    """Delete a subscription; as DELETE /v1/subscriptions/{id}."""

    id: str


class ReadSubscription(_Said, frozen=True, tag="read"):
    """Read a subscription; as GET /v1/subscriptions/{id}."""

    id: str


class ListSubscriptions(_Said, frozen=True, tag="list"):
    """List your subscriptions; as GET /v1/subscriptions."""

    limit: int = 100
    after: int = 0


FromSubscriber = Subscribe | Unsubscribe | ReadSubscription | ListSubscriptions


class Reply(msgspec.Struct, frozen=True):
    """The answer to one message: the status and the body that HTTP would have had, problem details if refused."""

    ref: _Ref | None  # None if the message could not be read so far
    status: int
    body: Any = None


async def reply_to(node: Node, caller: Account, text: str | None) -> Reply:
    """Do what a frame says."""
    said: FromSubscriber | None = None
    try:
        said = _read(text, node.settings.max_body_bytes)
        body, status = await _done(node, caller, said)
        return Reply(said.ref, status, body)
    except FencepostError as error:
        refused = problem(error)
        return Reply(None if said is None else said.ref, refused.status_code, msgspec.Raw(bytes(refused.body)))


def _read(text: str | None, max_bytes: int) -> FromSubscriber:
    if text is None:
        raise BodyInvalid("The frame is not text.", hint="Send JSON in text frames.")
    if len(raw := text.encode()) > max_bytes:
        raise BodyTooLarge(f"The message has more than {max_bytes} bytes.", hint="Send it in smaller parts.")
    said: FromSubscriber = decode_json(raw, FromSubscriber)  # type: ignore[arg-type] # a union is no type to mypy
    if isinstance(said.ref, str) and len(said.ref) > _MAX_REF:
        raise BodyInvalid(f"The ref has more than {_MAX_REF} characters.", hint="Choose a shorter one.")
    return said


async def _done(node: Node, caller: Account, said: FromSubscriber) -> tuple[Any, int]:
    if isinstance(said, Subscribe):
        if said.subscription.id not in (None, said.id):
            raise OptionInvalid("The subscription has another id.", hint="Leave it out of there.", option="id")
        return await write_subscription(node, caller, said.id, said.subscription)
    if isinstance(said, Unsubscribe):
        await node.run(delete_subscription, caller, said.id)
        return None, 204
    if isinstance(said, ReadSubscription):
        return show_subscription(await node.run(find_subscription, caller, said.id)), 200
    if not 0 <= said.after <= _MAX_AFTER:
        raise OptionInvalid("The value of 'after' can't be used.", hint="Give the next of the page before.")
    return await page_of_subscriptions(node, caller, said.limit, said.after), 200
