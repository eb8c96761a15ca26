"""Constraints on regions, and messages that carry regions, from GeoJSON: the features of a FeatureCollection.

A feature is known by its `id`, else by its place in the file, counted from 0. A constraint says in its property
`relation` which of the eight it is about. Coordinates are those of a plane, as they are given.

A file that is right is read in one typed pass. Only one that is not is read again, loosely, to say which feature it is
and what is wrong with it.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import msgspec

from matcher.many_rings import RegionFault, planar_regions
from matcher.planar import PlanarRegion
from matcher.selector.tree import Relation
from zones.errors import CallerError, FencepostError, GeoJsonInvalid
from zones.geojson import geometry_from_geojson
from zones.names import shown
from zones.shapes import MultiPolygon, Polygon

__all__ = [
    "FeatureId", "IdDuplicate", "RegionConstraint", "RegionMessage", "RelationInvalid", "constraints_from_geojson",
    "messages_from_geojson", "named", "title_of",
]  # fmt: skip

FeatureId = str | int | float

_BOM = b"\xef\xbb\xbf"
_HINT = "Give a GeoJSON FeatureCollection in UTF-8."
_RELATIONS = {str(relation): relation for relation in Relation}
E = TypeVar("E", bound=FencepostError)


class RelationInvalid(CallerError):
    """A constraint has no property `relation`, or it is none of the eight."""

    code = "relation_invalid"


class IdDuplicate(CallerError):
    """Two constraints or zones of a file have the same id, so that nobody could tell which of them is meant."""

    code = "id_duplicate"


class RegionMessage(msgspec.Struct, frozen=True):
    id: FeatureId
    region: PlanarRegion


class RegionConstraint(msgspec.Struct, frozen=True):
    """Holds for a message if "the message's region RELATION this region" does."""

    id: FeatureId
    relation: Relation
    region: PlanarRegion


class _Properties(msgspec.Struct):
    relation: Any = None


class _Feature(msgspec.Struct):
    type: Literal["Feature"]
    geometry: Polygon | MultiPolygon
    id: FeatureId | None = None
    properties: _Properties | None = None


class _Collection(msgspec.Struct):
    type: Literal["FeatureCollection"]
    features: list[_Feature]


_DECODER = msgspec.json.Decoder(_Collection)


def messages_from_geojson(data: bytes) -> list[RegionMessage]:
    """All of them, in the order of the file; raises a `CallerError` that names the feature that is wrong."""
    features = _decoded(data)
    ids = _ids(features)
    return [RegionMessage(id, region) for id, region in zip(ids, _regions(features, ids), strict=True)]


def constraints_from_geojson(data: bytes) -> list[RegionConstraint]:
    """The same for constraints, whose ids are unique."""
    features = _decoded(data)
    ids = _ids(features)
    if len(set(ids)) < len(ids):
        _refuse_duplicate(ids)
    relations = [_relation(feature, index) for index, feature in enumerate(features)]
    regions = _regions(features, ids)
    return [RegionConstraint(*fields) for fields in zip(ids, relations, regions, strict=True)]


def named(error: E, where: str) -> E:
    """The same error, its sentence beginning with what it is about."""
    return type(error)(f"{where}: {error.sentence}", hint=error.hint, **error.details)


def _regions(features: Sequence[_Feature], ids: Sequence[FeatureId]) -> list[PlanarRegion]:
    try:
        return planar_regions(
            [
                (shape.coordinates,) if isinstance(shape, Polygon) else shape.coordinates
                for shape in (feature.geometry for feature in features)
            ]
        )
    except RegionFault as found:
        raise named(found.fault, title_of(found.index, features[found.index].id)) from None


def _ids(features: Sequence[_Feature]) -> list[FeatureId]:
    return [index if feature.id is None else feature.id for index, feature in enumerate(features)]


def _refuse_duplicate(ids: Sequence[FeatureId]) -> None:
    counts = Counter(ids)
    doubled = next(id for id in ids if counts[id] > 1)
    first = ids.index(doubled)
    second = ids.index(doubled, first + 1)
    raise IdDuplicate(
        f"Features {first} and {second} have the same id, {_shown_id(doubled)}.",
        hint="Give every constraint an id of its own; without one it is its place in the file, counted from 0.",
        id=doubled,
    )


def _relation(feature: _Feature, index: int) -> Relation:
    name = None if feature.properties is None else feature.properties.relation
    relation = _RELATIONS.get(name) if isinstance(name, str) else None
    if relation is None:
        what = "It has no property relation." if name is None else f"Its relation is {_shown(name)}, none of the eight."
        raise named(
            RelationInvalid(what, hint=f"Give it one of {', '.join(_RELATIONS)}.", feature=index),
            title_of(index, feature.id),
        )
    return relation


# --- what is wrong with a file ---------------------------------------------------------------------


def _decoded(data: bytes) -> list[_Feature]:
    data = data.removeprefix(_BOM)
    try:
        return _DECODER.decode(data).features
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _fault(data, error) from None


def _fault(data: bytes, error: Exception) -> CallerError:
    """What to say of a file that has not the form of a FeatureCollection of regions."""
    if not data.strip():
        return GeoJsonInvalid("It is empty.", hint=_HINT)
    try:
        loose = json.loads(data)  # this one lets NaN through, so that the feature can be told
    except (ValueError, RecursionError):
        return GeoJsonInvalid("It is not JSON.", hint=_HINT)
    if not isinstance(loose, Mapping) or loose.get("type") != "FeatureCollection":
        found = _shown(loose.get("type") if isinstance(loose, Mapping) else loose)
        return GeoJsonInvalid(
            f"It is not a FeatureCollection; its type is {found}.", hint="Put the regions into one as features."
        )
    features = loose.get("features")
    if not isinstance(features, list):
        return GeoJsonInvalid("The FeatureCollection has no list of features.", hint="It may be empty: [].")
    for index, feature in enumerate(features):
        id = feature.get("id") if isinstance(feature, Mapping) else None
        try:
            _check_feature(feature)
        except CallerError as fault:
            return named(fault, title_of(index, id))
    return GeoJsonInvalid(f"It can't be read as a FeatureCollection: {error}.", hint=_HINT)


def _check_feature(feature: object) -> None:
    if not isinstance(feature, Mapping) or feature.get("type") != "Feature":
        raise GeoJsonInvalid("It is not an object of type Feature.", hint=_HINT)
    id, properties = feature.get("id"), feature.get("properties")
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int | float)):
        raise GeoJsonInvalid("Its id is neither a string nor a number.", hint="Give it a string.")
    if properties is not None and not isinstance(properties, Mapping):
        raise GeoJsonInvalid("Its properties are not an object.", hint="Write {} if there are none.")
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        what = "It has no geometry." if geometry is None else f"Its geometry is of type {_shown(kind)}."
        raise GeoJsonInvalid(what, hint="Give it a Polygon or a MultiPolygon.")
    geometry_from_geojson(geometry)


def title_of(index: int, id: object) -> str:
    if isinstance(id, str | int | float) and not isinstance(id, bool):
        return f"Feature {index} (id {_shown_id(id)})"
    return f"Feature {index}"


def _shown_id(id: FeatureId) -> str:
    return shown(id) if isinstance(id, str) else str(id)[:60]


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    if isinstance(value, str):
        return shown(value)
    return "an object" if isinstance(value, Mapping) else "an array" if isinstance(value, list) else str(value)[:60]
