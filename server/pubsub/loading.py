"""Filling the world from the store: at the start, and whenever a transaction was rolled back."""

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select

from matcher.events import Event
from matcher.once import OnceState, Service
from matcher.selector.parser import parse_selector
from privacy.delegations import Delegation
from privacy.policies import Grant, Operation
from server.pubsub.entries import AgentEntry, BindingKey, ObjectEntry, SubscriptionEntry
from server.pubsub.world import World
from server.store import models
from zones.names import SYSTEM, fold
from zones.shapes import Shape
from zones.zone import Zone

__all__ = ["delegation_from_row", "grant_from_row", "load_world", "zone_from_row"]


def load_world(conn: Connection) -> World:
    world = World()
    world.secret = conn.execute(select(models.Secret.value).where(models.Secret.name == "ids")).scalar_one()
    for user in conn.execute(select(models.User.id, models.User.name, models.User.last_offset)):
        world.put_user(user.id, user.name, user.last_offset)
    system_id = world.user_id(SYSTEM)
    assert system_id is not None
    world.system_id = system_id
    for row in conn.execute(select(models.Object.__table__)):
        last = None if row.last_event is None else msgspec.json.decode(row.last_event, type=Event)
        world.put_object(ObjectEntry(row.id, row.oid, row.owner_id, row.newest, last, row.generation))
    for row in conn.execute(select(models.Grant.__table__)):
        world.put_grant(grant_from_row(row))
    for row in conn.execute(select(models.Delegation.__table__)):
        world.delegations[row.owner_id, row.provider_id] = delegation_from_row(row)
    columns = [column for column in models.Zone.__table__.columns if column.name != "outline"]
    for row in conn.execute(select(*columns)):
        world.put_zone(zone_from_row(row, world.users[row.owner_id]), row.owner_id, row.changed)
    for row in conn.execute(select(models.Subscription.__table__)):
        world.put_subscription(
            SubscriptionEntry(
                id=row.id,
                subscriber_id=row.subscriber_id,
                name=row.name,
                text=row.selector,
                selector=parse_selector(row.selector),
                service=msgspec.json.decode(row.service, type=Service),
                purpose=row.purpose,
                paused=row.paused,
                changed=row.changed,
            )
        )
    for row in conn.execute(select(models.Agent.__table__).where(models.Agent.status == "active")):
        world.agents[row.object_id] = AgentEntry(row.id, row.object_id, row.lease_until)
    for row in conn.execute(select(models.Binding.__table__)):
        key = BindingKey(row.subscription_id, row.object_id, row.target)
        world.put_state(key, msgspec.json.decode(row.state, type=OnceState))
    return world


def zone_from_row(row: Row[Any], owner: str) -> Zone:
    """`row` may be any row that has the zone's columns; the outline is not needed."""
    return Zone(
        id=row.id,
        owner=owner,
        local=row.local,
        version=row.version,
        shape=msgspec.json.decode(row.shape, type=Shape),
        properties=msgspec.json.decode(row.properties, type=dict),
        tags=tuple(msgspec.json.decode(row.tags, type=list[str])),
        on_devices=row.on_devices,
    )


def delegation_from_row(row: Row[Any]) -> Delegation:
    oids = None if row.oids is None else frozenset(map(fold, msgspec.json.decode(row.oids, type=list[str])))
    return Delegation(row.owner_id, row.provider_id, oids)


def grant_from_row(row: Row[Any]) -> Grant:
    operations = frozenset(Operation(name) for name in msgspec.json.decode(row.operations, type=list[str]))
    return Grant(id=row.id, owner_id=row.owner_id, who_id=row.who_id, operations=operations, created=row.created)
