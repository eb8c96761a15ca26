"""Places by name, for events whose `loc` is a text.

A `Geocoder` is anything that finds them. The one that is built in needs no network: a gazetteer, which is a list of
names with their places. Names are compared folded, as names of zones are (NFKC and case folding), and without spaces
around them. A name that stands for two places is no place: whoever uses it is told so, and nothing is guessed.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from matcher.errors import LocationAmbiguous
from zones.errors import CallerError
from zones.geojson import point_from_geojson
from zones.names import fold, shown
from zones.shapes import Point
from zones.validation import check_point

__all__ = ["Gazetteer", "GazetteerInvalid", "Geocoder", "NamedPlace", "places_from_csv", "places_from_geojson"]

_BOM = b"\xef\xbb\xbf"
_COLUMNS = ("name", "lon", "lat")


class GazetteerInvalid(CallerError):
    """A gazetteer is not a CSV file with the columns name, lon and lat, or a FeatureCollection of named points."""

    code = "gazetteer_invalid"


class Geocoder(Protocol):
    """Finds places by name. It may be asked from any thread, and may take its time."""

    def locate(self, text: str) -> Point | None:
        """The place of that name; None if there is none, `LocationAmbiguous` if there are several."""
        ...


class NamedPlace(NamedTuple):
    name: str
    point: Point


class Gazetteer:
    """A `Geocoder` that knows a list of places by heart."""

    def __init__(self, places: Iterable[NamedPlace]) -> None:
        self._places: dict[str, Point | None] = {}  # None where a name has several
        for place in places:
            known = self._places.setdefault(_key(place.name), place.point)
            if known != place.point:
                self._places[_key(place.name)] = None

    def __len__(self) -> int:
        return len(self._places)

    def locate(self, text: str) -> Point | None:
        key = _key(text)
        point = self._places.get(key)
        if point is None and key in self._places:
            raise LocationAmbiguous(
                f"There are several places called {shown(text)}.", hint="Send a point, or a name that says which."
            )
        return point


def places_from_csv(data: bytes) -> list[NamedPlace]:
    """The places of a file whose first line names its columns; name, lon and lat are among them."""
    # By line feeds only: Python knows other ends of lines, which a name may well have in it.
    rows = csv.reader((f"{line}\n" for line in _text(data).split("\n")), strict=True)
    try:
        header = [name.strip().casefold() for name in next(rows, [])]
        missing = [name for name in _COLUMNS if name not in header]
        if missing:
            raise GazetteerInvalid(
                f"The first line has no column {' and no column '.join(missing)}.",
                hint="Begin the file with a line such as name,lon,lat.",
            )
        name, lon, lat = (header.index(column) for column in _COLUMNS)
        return [_from_row(row, (name, lon, lat), rows.line_num) for row in rows if row]
    except csv.Error as error:
        raise GazetteerInvalid(f"Line {rows.line_num}: {error}.", hint="Write it as RFC 4180 says.") from None


def places_from_geojson(data: bytes) -> list[NamedPlace]:
    """The places of a FeatureCollection of Points, named by the property `name`, else by the feature's id."""
    try:
        document = msgspec.json.decode(data.removeprefix(_BOM))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise GazetteerInvalid("It is not JSON.", hint="Give a GeoJSON FeatureCollection in UTF-8.") from None
    features = document.get("features") if isinstance(document, Mapping) else None
    if not isinstance(features, list) or document.get("type") != "FeatureCollection":
        raise GazetteerInvalid("It is not a FeatureCollection.", hint="Put the places into one as features.")
    return list(_from_features(features))


def _from_row(row: list[str], places: tuple[int, int, int], line: int) -> NamedPlace:
    name, lon, lat = (row[place] if place < len(row) else "" for place in places)
    try:
        point = check_point((float(lon), float(lat)))
    except ValueError:
        raise GazetteerInvalid(f"Line {line}: lon and lat are not numbers.", hint="Write degrees.") from None
    except CallerError as fault:
        raise GazetteerInvalid(f"Line {line}: {fault.sentence}", hint=fault.hint) from None
    return _named(name, point, f"Line {line}")


def _from_features(features: list[Any]) -> Iterator[NamedPlace]:
    for index, feature in enumerate(features):
        where = f"Feature {index}"
        if not isinstance(feature, Mapping):
            raise GazetteerInvalid(f"{where} is not an object.", hint="Write features.")
        properties = feature.get("properties")
        name = properties.get("name") if isinstance(properties, Mapping) else None
        try:
            point = point_from_geojson(feature.get("geometry") or {})
        except CallerError as fault:
            raise GazetteerInvalid(f"{where}: {fault.sentence}", hint=fault.hint) from None
        yield _named(feature.get("id") if name is None else name, point, where)


def _named(name: object, point: Point, where: str) -> NamedPlace:
    if not isinstance(name, str) or not name.strip():
        raise GazetteerInvalid(f"{where} has no name.", hint="Give every place a name.")
    return NamedPlace(name, point)


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise GazetteerInvalid(f"It is not UTF-8 (byte {error.start}).", hint="Save it as UTF-8.") from None


def _key(name: str) -> str:
    return fold(name.strip())
