"""GeoJSON in and out, as RFC 7946 writes it, and two shapes it does not have.

    {"type": "Circle", "center": [lon, lat], "radius_m": r}
    {"type": "Rectangle", "bbox": [west, south, east, north]}

Programs that know GeoJSON only get features they can draw: a circle is then a Point with a property `radius_m`,
and such a feature comes in as a circle again.

What comes in is checked: types strictly (a string, a boolean or NaN is no number, a third coordinate is refused and
not dropped), and then by `zones.validation`.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, NamedTuple

from zones.antimeridian import plain_boxes, ring_of_box
from zones.errors import CoordinateInvalid, CoordinateNotFlat, GeoJsonInvalid, ShapeInvalid
from zones.names import shown
from zones.shapes import Circle, MultiPolygon, Point, Polygon, Rectangle, Ring, Shape
from zones.validation import check_point, check_shape

__all__ = [
    "Feature",
    "feature_from_geojson",
    "feature_to_geojson",
    "features_from_geojson",
    "geometry_from_geojson",
    "point_from_geojson",
    "shape_from_geojson",
    "shape_to_geojson",
    "without_repeats",
]

# How old files say that they mean what RFC 7946 means anyway.
_WGS84 = frozenset({"urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:OGC::CRS84", "OGC:CRS84", "EPSG:4326"})
_SHAPES = "Polygon, MultiPolygon, Circle or Rectangle"


class Feature(NamedTuple):
    """A shape with what the file says about it; the name is the feature's id, else its property `name`."""

    name: str | None
    shape: Shape
    properties: dict[str, Any]


def shape_from_geojson(obj: object) -> Shape:
    """A checked shape from a geometry object."""
    return check_shape(geometry_from_geojson(obj))


def geometry_from_geojson(obj: object) -> Shape:
    """The shape as it is drawn, its numbers finite but nothing else checked: for coordinates in a plane."""
    geometry = _object(obj, "The shape")
    kind = geometry.get("type")
    if kind == "Polygon":
        return Polygon(_polygon(geometry.get("coordinates"), "coordinates"))
    if kind == "MultiPolygon":
        return MultiPolygon(_polygons(geometry.get("coordinates")))
    if kind == "Circle":
        center = _position(geometry.get("center"), "center")
        return Circle(center, _number(geometry.get("radius_m"), "radius_m"))
    if kind == "Rectangle":
        return Rectangle(_bbox(geometry.get("bbox")))
    raise GeoJsonInvalid(
        f"The shape's type is {_shown(kind)}, which can't be a zone.", hint=f"Send a {_SHAPES}.", type=_shown(kind)
    )


def shape_to_geojson(shape: Shape) -> dict[str, Any]:
    """The geometry object from which `shape_from_geojson` makes this shape."""
    if isinstance(shape, Circle):
        return {"type": "Circle", "center": list(shape.center), "radius_m": shape.radius_m}
    if isinstance(shape, Rectangle):
        return {"type": "Rectangle", "bbox": list(shape.bbox)}
    if isinstance(shape, Polygon):
        return _polygon_to_geojson(shape.coordinates)
    return {"type": "MultiPolygon", "coordinates": [_lists(rings) for rings in shape.coordinates]}


def point_from_geojson(obj: object) -> Point:
    """A point from `[lon, lat]` or a GeoJSON Point."""
    if type(obj) is list and len(obj) == 2:  # of every fix, so the usual case goes ahead
        lon, lat = obj
        if type(lon) is float and type(lat) is float and -180 <= lon <= 180 and -90 <= lat <= 90:
            return lon, lat
    if isinstance(obj, Mapping):
        if obj.get("type") != "Point":
            raise GeoJsonInvalid(
                f"The place is an object of type {_shown(obj.get('type'))}, not a Point.",
                hint='Write [lon, lat] or {"type": "Point", "coordinates": [lon, lat]}.',
            )
        obj = obj.get("coordinates")
    return check_point(_position(obj, "The place"))


def features_from_geojson(obj: object) -> list[Feature]:
    """All features of a FeatureCollection; a fault says in which feature it is."""
    collection = _object(obj, "The file")
    if collection.get("type") != "FeatureCollection":
        raise GeoJsonInvalid(
            f"The file's type is {_shown(collection.get('type'))}, not FeatureCollection.",
            hint="Put the shapes into the features of a FeatureCollection.",
        )
    _check_reference_system(collection.get("crs"))
    features = collection.get("features")
    if not isinstance(features, list | tuple):
        raise GeoJsonInvalid("The FeatureCollection has no list of features.", hint="It may be empty: [].")
    return [feature_from_geojson(feature, index) for index, feature in enumerate(features)]


def without_repeats(obj: object) -> tuple[object, int]:
    """A FeatureCollection without the points that repeat the one before them, and how many features had some.

    Zones are refused for them, because they are mostly a sign of something else gone wrong. Who only wants to look at a
    file may leave them out, and says so: what a ring encloses stays the same.
    """
    features = obj.get("features") if isinstance(obj, Mapping) else None
    if not isinstance(obj, Mapping) or not isinstance(features, list | tuple):
        return obj, 0
    tidied = [_tidied(feature) for feature in features]
    changed = sum(new != old for new, old in zip(tidied, features, strict=True))
    return {**obj, "features": tidied}, changed


def _tidied(feature: object) -> object:
    geometry = feature.get("geometry") if isinstance(feature, Mapping) else None
    if not isinstance(feature, Mapping) or not isinstance(geometry, Mapping):
        return feature
    if geometry.get("type") not in ("Polygon", "MultiPolygon"):
        return feature
    return {**feature, "geometry": {**geometry, "coordinates": _distinct(geometry.get("coordinates"))}}


def _distinct(obj: object) -> object:
    """A ring is a list of lists of numbers; whatever else is in a list is gone through."""
    if not isinstance(obj, list | tuple):
        return obj
    if not all(isinstance(item, list | tuple) and item and not isinstance(item[0], list | tuple) for item in obj):
        return [_distinct(item) for item in obj]
    return [item for place, item in enumerate(obj) if place == 0 or item != obj[place - 1]]


def feature_from_geojson(obj: object, index: int) -> Feature:
    """One feature; `index` is its place in the file, for the sentence if it is faulty."""
    name = None
    try:
        feature = _object(obj, "The feature")
        if feature.get("type") != "Feature":
            raise GeoJsonInvalid(f"The type is {_shown(feature.get('type'))}, not Feature.", hint="Write Feature.")
        properties = _properties(feature.get("properties"))
        name = _name(feature, properties)
        return _feature(name, feature.get("geometry"), properties)
    except ShapeInvalid as fault:
        which = f"Feature {index}" if name is None else f"Feature {index} (id {_shown(name)})"
        details = {**fault.details, "feature": index, "id": name}
        raise type(fault)(f"{which}: {fault.sentence}", hint=fault.hint, **details) from fault


def feature_to_geojson(name: str, shape: Shape, properties: Mapping[str, Any]) -> dict[str, Any]:
    """A feature that any GeoJSON program can draw."""
    geometry: dict[str, Any]
    if isinstance(shape, Circle):
        geometry = {"type": "Point", "coordinates": list(shape.center)}
        properties = {**properties, "radius_m": shape.radius_m}
    elif isinstance(shape, Rectangle):
        rings = [ring_of_box(box) for box in plain_boxes(shape.bbox)]
        parts = tuple((ring,) for ring in rings)
        geometry = shape_to_geojson(Polygon(parts[0]) if len(parts) == 1 else MultiPolygon(parts))
    else:
        geometry = shape_to_geojson(shape)
    return {"type": "Feature", "id": name, "geometry": geometry, "properties": dict(properties)}


def _feature(name: str | None, geometry: object, properties: dict[str, Any]) -> Feature:
    if isinstance(geometry, Mapping) and geometry.get("type") == "Point":
        if "radius_m" not in properties:
            raise GeoJsonInvalid(
                "A Point is no zone by itself.", hint="Give the feature a property radius_m to make it a circle."
            )
        center = point_from_geojson(geometry)
        radius_m = _number(properties.pop("radius_m"), "radius_m")
        return Feature(name, check_shape(Circle(center, radius_m)), properties)
    return Feature(name, shape_from_geojson(geometry), properties)


def _name(feature: Mapping[str, Any], properties: Mapping[str, Any]) -> str | None:
    name = feature.get("id")
    if name is None:
        name = properties.get("name")
        return name if isinstance(name, str) else None
    if isinstance(name, str):
        return name
    if isinstance(name, bool) or not isinstance(name, int | float) or not -(10**15) < name < 10**15:
        raise GeoJsonInvalid(
            f"The id is {_shown(name)}, not a string or a number that can name a zone.", hint="Give it a string."
        )
    return str(int(name)) if name == int(name) else repr(name)


def _properties(obj: object) -> dict[str, Any]:
    return {} if obj is None else dict(_object(obj, "The properties"))


def _check_reference_system(crs: object) -> None:
    if crs is None:
        return
    named = crs.get("properties") if isinstance(crs, Mapping) else None
    name = named.get("name") if isinstance(named, Mapping) else None
    if name not in _WGS84:
        raise GeoJsonInvalid(
            f"The file's reference system is {_shown(name)}, not WGS 84.",
            hint="Reproject it to lon, lat in WGS 84 and leave `crs` out, as RFC 7946 says.",
        )


def _polygons(obj: object) -> tuple[tuple[Ring, ...], ...]:
    parts = _array(obj, "coordinates")
    return tuple(_polygon(part, f"coordinates[{index}]") for index, part in enumerate(parts))


def _polygon(obj: object, path: str) -> tuple[Ring, ...]:
    return tuple(_ring(ring, f"{path}[{index}]") for index, ring in enumerate(_array(obj, path)))


def _ring(obj: object, path: str) -> Ring:
    # The path of a single position is only put together for a fault: this runs for millions of them.
    points: list[Point] = []
    for position in _array(obj, path):
        if (
            type(position) is list
            and len(position) == 2
            and type(position[0]) is float
            and type(position[1]) is float
            and isfinite(position[0])
            and isfinite(position[1])
        ):
            points.append((position[0], position[1]))
        else:
            points.append(_position(position, f"{path}[{len(points)}]"))
    return tuple(points)


def _position(obj: object, path: str) -> Point:
    numbers = _array(obj, path)
    if len(numbers) > 2:
        raise CoordinateNotFlat(
            f"{path} has {len(numbers)} coordinates; positions are lon and lat only.",
            hint="Send [lon, lat]; give an altitude as an attribute.",
            path=path,
        )
    if len(numbers) < 2:
        raise CoordinateInvalid(
            f"{path} has {len(numbers)} coordinates; a position has two.", hint="Send [lon, lat].", path=path
        )
    return _number(numbers[0], f"{path}[0]"), _number(numbers[1], f"{path}[1]")


def _bbox(obj: object) -> tuple[float, float, float, float]:
    numbers = _array(obj, "bbox")
    if len(numbers) != 4:
        error = CoordinateNotFlat if len(numbers) == 6 else CoordinateInvalid
        raise error(
            f"bbox has {len(numbers)} numbers; it has four.", hint="Send [west, south, east, north].", path="bbox"
        )
    west, south, east, north = (_number(number, f"bbox[{index}]") for index, number in enumerate(numbers))
    return west, south, east, north


def _number(obj: object, path: str) -> float:
    if isinstance(obj, bool) or not isinstance(obj, int | float):
        raise CoordinateInvalid(f"{path} is {_shown(obj)}, not a number.", hint="Send a JSON number.", path=path)
    try:
        number = float(obj)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise CoordinateInvalid(f"{path} is {_shown(obj)}, not a finite number.", hint="Send a JSON number.", path=path)
    return number


def _array(obj: object, path: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(obj, list | tuple):
        raise GeoJsonInvalid(f"{path} is {_shown(obj)}, not an array.", hint="Send a JSON array.", path=path)
    return obj


def _object(obj: object, what: str) -> Mapping[str, Any]:
    if not isinstance(obj, Mapping):
        raise GeoJsonInvalid(f"{what} is {_shown(obj)}, not an object.", hint="Send a JSON object with a type.")
    return obj


def _shown(obj: object) -> str:
    """A value as a sentence can hold it."""
    if obj is None:
        return "missing"
    if isinstance(obj, Mapping):
        return "an object"
    if isinstance(obj, list | tuple):
        return "an array"
    if isinstance(obj, int) and abs(obj) > 10**20:
        return "a huge number"  # turning one into digits takes time, and Python refuses the longest
    if isinstance(obj, str):
        return shown(obj)
    return str(obj).lower() if isinstance(obj, bool) else str(obj)[:60]


def _polygon_to_geojson(rings: tuple[Ring, ...]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": _lists(rings)}


def _lists(rings: tuple[Ring, ...]) -> list[list[list[float]]]:
    return [[[lon, lat] for lon, lat in ring] for ring in rings]
