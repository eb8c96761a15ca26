"""What one transaction writes about edges: states, notifications with their offsets, the newest event.

Collected while events are folded and written with a few statements at the end, in the same transaction. An edge
whose subscriber is not allowed to know of it advances the state and leaves no notification and no offset.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection, select

from matcher.event_format import format_event, format_instant
from matcher.events import Event
from matcher.once import Edge, Instant, Mode, OnceState
from matcher.selector.format import format_zone_ref
from server.pubsub.entries import OPERATION_OF, BindingKey, ObjectEntry, SubscriptionEntry
from server.pubsub.identifiers import message_id, notification_id
from server.pubsub.nearby import Need
from server.pubsub.world import World
from server.store.models import Binding, Notification, Object, User
from server.store.repeated import Repeated, run_many
from zones.shapes import Point

__all__ = ["Recorder"]


class Recorder:
    """Collects the results of one unit of work; `flush` writes them."""

    def __init__(self, world: World, now: Instant) -> None:
        self._world = world
        self._now = now
        self._states: dict[BindingKey, OnceState] = {}
        self._notifications: list[tuple[object, ...]] = []
        self._message_ids: set[str] = set()
        self._objects: dict[int, ObjectEntry] = {}
        self.dwells_changed = False
        self.subscribers: set[int] = set()  # whose notifications there are more of now

    @property
    def recorded(self) -> int:
        """How many notifications there are."""
        return len(self._notifications)

    def state(self, key: BindingKey, state: OnceState) -> None:
        self.dwells_changed = self.dwells_changed or state.pending is not None
        self._world.put_state(key, state)
        self._states[key] = state

    def object_changed(self, entry: ObjectEntry) -> None:
        self._objects[entry.id] = entry

    def edge(
        self,
        key: BindingKey,
        edge: Edge,
        event: Event,
        *,
        needs: tuple[Need, ...] | None = None,
        target_loc: Point | None = None,
    ) -> None:
        """Record the edge as a notification, if it is one that the subscriber asked for and may have.

        What has to be allowed is the edge itself, to the object's owner, unless `needs` says otherwise.
        """
        world = self._world
        subscription = world.subscriptions[key.subscription_id]
        owner = world.objects[key.object_id]
        if not subscription.service.tells(edge.mode):
            return
        needs = ((owner.owner_id, OPERATION_OF[edge.mode]),) if needs is None else needs
        if not all(world.allows(owner_id, subscription.subscriber_id, operation) for owner_id, operation in needs):
            return
        identifier = notification_id(world.secret, key, edge.n)
        body = format_event(event)
        body["oid"] = owner.oid
        body["ts"] = format_instant(edge.ts)
        if edge.visit is not None and edge.since is not None:
            body["visit"] = notification_id(world.secret, key, edge.visit)
            body["duration_s"] = (edge.ts - edge.since) / 1000
        if target_loc is not None:
            body["target_loc"] = target_loc
        self._notify(subscription, key.target, identifier, needs, edge.mode, edge.ts, body)

    def message(
        self, subscription: SubscriptionEntry, target: str, owner_id: int, mode: Mode, event: Event, conn: Connection
    ) -> None:
        """The same for a message without an object. Its id is made of what it says: sent again, it is not news."""
        world = self._world
        if not subscription.service.tells(mode):
            return
        if not world.allows(owner_id, subscription.subscriber_id, OPERATION_OF[mode]):
            return
        content = msgspec.json.encode((owner_id, event), order="deterministic")
        identifier = message_id(world.secret, subscription.id, target, content)
        known = conn.execute(select(Notification.id).where(Notification.id == identifier)).first()
        if known is None and identifier not in self._message_ids:
            self._message_ids.add(identifier)
            needs = ((owner_id, OPERATION_OF[mode]),)
            self._notify(subscription, target, identifier, needs, mode, event.ts, format_event(event))

    def _notify(
        self,
        subscription: SubscriptionEntry,
        target: str,
        identifier: str,
        needs: tuple[Need, ...],
        mode: Mode,
        ts: Instant,
        body: dict[str, Any],
    ) -> None:
        subscriber_id = subscription.subscriber_id
        offsets = self._world.offsets
        offset = offsets[subscriber_id] = offsets[subscriber_id] + 1
        self.subscribers.add(subscriber_id)
        body["id"] = identifier
        body["subscription"] = subscription.name
        body["mode"] = str(mode)
        body["target"] = self._target_name(subscription, target)
        (owner_id, operation), *more = needs
        self._notifications.append(
            (
                subscriber_id,
                offset,
                identifier,
                owner_id,
                str(operation),
                _encode(more).decode() if more else None,
                ts,
                _encode(body).decode(),
                self._now,
            )
        )

    def flush(self, conn: Connection) -> None:
        if self._states:
            run_many(conn, _UPSERT_STATE, [_state_row(key, state) for key, state in self._states.items()])
        if self._notifications:
            run_many(conn, _INSERT_NOTIFICATION, self._notifications)
            offsets = self._world.offsets
            run_many(conn, _UPDATE_OFFSET, [(offsets[user_id], user_id) for user_id in self.subscribers])
        if self._objects:
            run_many(conn, _UPDATE_OBJECT, [_object_row(entry) for entry in self._objects.values()])

    def _target_name(self, subscription: SubscriptionEntry, target: str) -> str | None:
        if not target:
            return None
        if target.startswith("o:"):
            return self._world.objects[int(target[2:])].oid
        entry = self._world.zones.get(target)
        return format_zone_ref(subscription.inline[target]) if entry is None else str(entry.zone.name)


def _state_row(key: BindingKey, state: OnceState) -> tuple[object, ...]:
    return key.subscription_id, key.object_id, key.target, _encode(state).decode()


def _object_row(entry: ObjectEntry) -> tuple[object, ...]:
    last = None if entry.last is None else _encode(entry.last).decode()
    return entry.newest, last, entry.generation, entry.id


_encode = msgspec.json.Encoder().encode
_UPSERT_STATE = Repeated.upsert(Binding, "subscription_id", "object_id", "target", values=("state",))
_INSERT_NOTIFICATION = Repeated.insert(
    Notification, "subscriber_id", "offset", "id", "owner_id", "operation", "needs", "ts", "body", "recorded"
)
_UPDATE_OFFSET = Repeated.update(User, "last_offset")
_UPDATE_OBJECT = Repeated.update(Object, "newest", "last_event", "generation")
