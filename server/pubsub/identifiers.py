"""Ids and handles that nobody can guess, count or link.

A notification's id is a keyed hash of (binding, n), so the same edge reported twice is the same notification. A
handle names a binding to one device in one generation, a zone handle its geometry; neither says anything about
names, owners or subscribers.
"""

import hashlib
from base64 import urlsafe_b64encode

from server.pubsub.entries import BindingKey

__all__ = ["binding_handle", "message_id", "notification_id", "zone_handle"]


def notification_id(secret: bytes, key: BindingKey, n: int) -> str:
    return _hash(secret, 15, "notification", key.subscription_id, key.object_id, key.target, n)


def message_id(secret: bytes, subscription_id: int, target: str, content: bytes) -> str:
    """Of the notification about a message that has no object, and so no n."""
    return _hash(secret, 15, "message", subscription_id, target, hashlib.blake2b(content).hexdigest())


def binding_handle(secret: bytes, generation: int, key: BindingKey) -> str:
    return _hash(secret, 9, "handle", generation, key.subscription_id, key.object_id, key.target)


def zone_handle(secret: bytes, object_id: int, generation: int, zone_id: str, version: int) -> str:
    return _hash(secret, 9, "zone", object_id, generation, zone_id, version)


def _hash(secret: bytes, size: int, *parts: object) -> str:
    text = "\0".join(map(str, parts)).encode()
    return urlsafe_b64encode(hashlib.blake2b(text, digest_size=size, key=secret).digest()).decode()
