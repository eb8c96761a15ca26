"""/v1/zones: create, read, change, delete and import zones."""

import asyncio
import re
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from sqlalchemy import select
from starlette.responses import Response

from server.api.access import Caller, TheNode
from server.api.bodies import RowId, answer, described, read_body, read_json
from server.errors import BodyInvalid, OptionInvalid
from server.node import Node
from server.pubsub.loading import zone_from_row
from server.pubsub.zones import NewZone, delete_zone, import_zones, put_zone, zone_not_found
from server.store import models
from server.store.accounts import Account
from zones.geojson import features_from_geojson, shape_from_geojson, shape_to_geojson
from zones.names import SYSTEM, ZoneName, fold, importable, parse_zone_name
from zones.zone import Zone

__all__ = ["ZoneBody", "router"]

router = APIRouter(prefix="/v1", tags=["zones"])


class ZoneBody(msgspec.Struct, forbid_unknown_fields=True):
    """A zone as a caller writes it: GeoJSON Polygon or MultiPolygon, or our Circle or Rectangle."""

    shape: dict[str, Any]
    properties: dict[str, Any] = {}
    tags: list[str] = []
    on_devices: bool = False


_EXAMPLE = {"shape": {"type": "Circle", "center": [116.3688, 39.9087], "radius_m": 200}, "tags": ["shopping"]}


@router.get("/zones", summary="List zones: SYSTEM's and your own")
def list_zones(caller: Caller, node: TheNode, owner: str = "", limit: int = 100, after: RowId = 0) -> Response:
    limit = max(1, min(limit, node.settings.max_page))
    zones = _readable(node, caller, owner, after, limit + 1)
    more = len(zones) > limit
    page = zones[:limit]
    return answer({"items": [_shown(zone) for zone in page], "next": page[-1].id if more else None})


@router.get("/zones/{name:path}", summary="Read a zone")
def read_zone(name: str, caller: Caller, node: TheNode) -> Response:
    wanted = parse_zone_name(name)
    zone = _find(node, caller, wanted)
    if zone is None:
        raise zone_not_found(wanted)
    return answer(_shown(zone), ETag=f'"{zone.version}"')


@router.put(
    "/zones/{name:path}", summary="Create or change a zone", openapi_extra=described(ZoneBody, example=_EXAMPLE)
)
async def write_zone(name: str, request: Request, caller: Caller, node: TheNode) -> Response:
    body = await read_body(request, node.settings.max_body_bytes, ZoneBody)
    new = NewZone(
        name=parse_zone_name(name),
        shape=await asyncio.to_thread(shape_from_geojson, body.shape),
        properties=body.properties,
        tags=tuple(body.tags),
        on_devices=body.on_devices,
    )
    zone, is_new = await node.run(put_zone, caller, new, expected_version=_expected(request))
    return answer(_shown(zone), 201 if is_new else 200, ETag=f'"{zone.version}"')


@router.delete("/zones/{name:path}", status_code=204, summary="Delete a zone")
async def remove_zone(name: str, request: Request, caller: Caller, node: TheNode) -> Response:
    await node.run(delete_zone, caller, parse_zone_name(name), expected_version=_expected(request))
    return Response(status_code=204)


@router.post(
    "/zones:import", summary="Import a GeoJSON FeatureCollection, all of it or nothing", openapi_extra=described()
)
async def import_features(
    request: Request, caller: Caller, node: TheNode, owner: str = "", name_from: str = ""
) -> Response:
    document = await read_json(request, node.settings.max_import_bytes)
    zones, renamed = await asyncio.to_thread(_parse_import, document, owner or caller.name, name_from)
    saved = await node.run(import_zones, caller, zones)
    return answer({"imported": len(saved), "renamed": renamed}, 201)


def _parse_import(document: Any, owner: str, name_from: str) -> tuple[list[NewZone], dict[str, str]]:
    """The zones of a file, and those whose names could not stay as they were."""
    zones = []
    renamed: dict[str, str] = {}
    for index, feature in enumerate(features_from_geojson(document)):
        label = str(feature.properties.get(name_from, "")) if name_from else feature.name
        if not label:
            raise BodyInvalid(
                f"Feature {index} has no {'property ' + name_from if name_from else 'id'} to be named by.",
                hint="Give each feature an id, or say name_from=FIELD.",
            )
        name = ZoneName(owner, importable(label))
        if name.local != label:
            renamed[label] = name.local
        zones.append(NewZone(name=name, shape=feature.shape, properties=feature.properties))
    return zones, renamed


_is_version = re.compile(r"[0-9]{1,18}").fullmatch


def _expected(request: Request) -> int | None:
    """If-Match: change only the version the caller has seen."""
    text = request.headers.get("if-match")
    if text is None:
        return None
    if not _is_version(text.strip('"')):
        raise OptionInvalid("If-Match is not a version as ETag gave it.", hint='Send for example If-Match: "3".')
    return int(text.strip('"'))


def _shown(zone: Zone) -> dict[str, Any]:
    return {
        "id": zone.id,
        "name": zone.name,
        "version": zone.version,
        "shape": shape_to_geojson(zone.shape),
        "properties": zone.properties,
        "tags": list(zone.tags),
        "on_devices": zone.on_devices,
    }


def _columns() -> list[Any]:
    columns = [column for column in models.Zone.__table__.columns if column.name != "outline"]
    return [*columns, models.User.name.label("owner_name")]


def _readable(node: Node, caller: Account, owner: str, after: int, limit: int) -> list[Zone]:
    query = (
        select(*_columns())
        .join(models.User, models.User.id == models.Zone.owner_id)
        .where(models.Zone.id > after, (models.Zone.owner_id == caller.user_id) | (models.User.folded == fold(SYSTEM)))
        .order_by(models.Zone.id)
        .limit(limit)
    )
    if "\0" in owner:  # which no name has, and PostgreSQL takes in no text
        return []
    if owner:
        query = query.where(models.User.folded == fold(owner))
    with node.engine.connect() as conn:
        return [zone_from_row(row, row.owner_name) for row in conn.execute(query)]


def _find(node: Node, caller: Account, name: ZoneName) -> Zone | None:
    query = (
        select(*_columns())
        .join(models.User, models.User.id == models.Zone.owner_id)
        .where(models.User.folded == fold(name.owner), models.Zone.folded == fold(name.local))
        .where((models.Zone.owner_id == caller.user_id) | (models.User.folded == fold(SYSTEM)))
    )
    with node.engine.connect() as conn:
        row = conn.execute(query).first()
    return None if row is None else zone_from_row(row, row.owner_name)
