"""Creating, changing and deleting zones.

SYSTEM's zones belong to administrators, a user's zones to that user. Editing a zone notifies nobody; deleting it
ends its bindings, and a new zone of the same name has a new id and starts new.
"""

from typing import Any

import msgspec
from sqlalchemy import delete, insert, update

from server.errors import Forbidden, VersionMismatch, ZoneExists, ZoneNotFound
from server.pubsub.entries import ZoneEntry
from server.pubsub.work import Work
from server.store import models
from server.store.accounts import Account
from zones.covers import outline
from zones.names import SYSTEM, ZoneName, check_local_name, fold
from zones.shapes import Shape
from zones.zone import Zone

__all__ = ["NewZone", "delete_zone", "import_zones", "put_zone", "zone_not_found"]


class NewZone(msgspec.Struct, frozen=True):
    """What a caller says a zone should be. The shape is one that `check_shape` has passed: that takes its time, and
    the writer has none to spare."""

    name: ZoneName
    shape: Shape
    properties: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    on_devices: bool = False


def put_zone(work: Work, account: Account, new: NewZone, *, expected_version: int | None = None) -> tuple[Zone, bool]:
    """Create the zone, or change it; answers the zone and whether it is new."""
    owner_id = _owner_for_writing(work, account, new.name)
    check_local_name(new.name.local)
    old = work.world.zone(new.name.owner, new.name.local)
    _check_version(new.name, old, expected_version)
    with work.editing():
        zone = _create(work, [(owner_id, new)])[0] if old is None else _change(work, old, new)
    work.plans.update(work.world.agents)
    return zone, old is None


def import_zones(work: Work, account: Account, zones: list[NewZone]) -> list[Zone]:
    """All of them or none; a name that exists already, or twice in the import, is refused."""
    seen: set[str] = set()
    checked: list[tuple[int, NewZone]] = []
    for new in zones:
        owner_id = _owner_for_writing(work, account, new.name)
        check_local_name(new.name.local)
        if work.world.zone(new.name.owner, new.name.local) is not None or fold(new.name.local) in seen:
            raise ZoneExists(
                f"There is a zone {new.name} already.",
                hint="Delete it first, or give the feature another name.",
                zone=str(new.name),
            )
        seen.add(fold(new.name.local))
        checked.append((owner_id, new))
    with work.editing():
        saved = _create(work, checked)
    work.plans.update(work.world.agents)
    return saved


def delete_zone(work: Work, account: Account, name: ZoneName, *, expected_version: int | None = None) -> None:
    _owner_for_writing(work, account, name)
    entry = work.world.zone(name.owner, name.local)
    if entry is None:
        raise zone_not_found(name)
    _check_version(name, entry, expected_version)
    zone = entry.zone
    work.tx.touch()
    work.conn.execute(delete(models.Zone).where(models.Zone.id == zone.id))
    work.conn.execute(delete(models.Binding).where(models.Binding.target == str(zone.id)))
    with work.editing():
        work.world.remove_zone(zone.id)
    work.plans.update(work.world.agents)


def zone_not_found(name: ZoneName) -> ZoneNotFound:
    return ZoneNotFound(
        f"There is no zone {name} that you may use.",
        hint="Check the name; zones of others are private.",
        zone=str(name),
    )


def _create(work: Work, owned: list[tuple[int, NewZone]]) -> list[Zone]:
    """New zones with their owners' ids, in one statement: an import has tens of thousands."""
    if not owned:
        return []
    work.tx.touch()
    rows = [
        {"owner_id": owner_id, "local": new.name.local, "folded": fold(new.name.local), "version": 1}
        | _columns(work, new)
        for owner_id, new in owned
    ]
    statement = insert(models.Zone).returning(models.Zone.id, sort_by_parameter_order=True)
    ids = work.conn.execute(statement, rows).scalars()
    return [
        _remember(work, owner_id, new, zone_id, new.name.local, 1)
        for zone_id, (owner_id, new) in zip(ids, owned, strict=True)
    ]


def _change(work: Work, old: ZoneEntry, new: NewZone) -> Zone:
    work.tx.touch()
    zone_id, version = old.zone.id, old.zone.version + 1
    values = {"version": version} | _columns(work, new)
    work.conn.execute(update(models.Zone).where(models.Zone.id == zone_id).values(**values))
    return _remember(work, old.owner_id, new, zone_id, old.zone.local, version)


def _columns(work: Work, new: NewZone) -> dict[str, Any]:
    return {
        "shape": msgspec.json.encode(new.shape).decode(),
        "outline": outline(new.shape),
        "properties": msgspec.json.encode(new.properties).decode(),
        "tags": msgspec.json.encode(new.tags).decode(),
        "on_devices": new.on_devices,
        "changed": work.now,
    }


def _remember(work: Work, owner_id: int, new: NewZone, zone_id: int, local: str, version: int) -> Zone:
    zone = Zone(
        id=zone_id,
        owner=work.world.users[owner_id],
        local=local,
        version=version,
        shape=new.shape,
        properties=new.properties,
        tags=new.tags,
        on_devices=new.on_devices,
    )
    work.world.put_zone(zone, owner_id, work.now)
    return zone


def _owner_for_writing(work: Work, account: Account, name: ZoneName) -> int:
    """The owner's id, if this account may write zones in that name."""
    owner_id = work.user_id(name.owner)
    if owner_id == work.world.system_id:
        if not account.is_admin:
            raise Forbidden(
                f"The zone {name} belongs to {SYSTEM}, and you are not an administrator.",
                hint=f"Use a zone of your own, {account.name}.{name.local}.",
            )
        return owner_id
    if owner_id != account.user_id:
        raise zone_not_found(name)
    return owner_id


def _check_version(name: ZoneName, old: ZoneEntry | None, expected: int | None) -> None:
    if expected is None:
        return
    found = 0 if old is None else old.zone.version
    if found != expected:
        raise VersionMismatch(
            f"The zone {name} has version {found}, not {expected}.",
            hint="Read it again and repeat your change.",
            version=found,
        )
