"""The root of every error, and the errors of zones.

    FencepostError            a stable code, one sentence with the values in it, a hint
    ├── CallerError           the caller's fault: bad input, refused without any change
    │   ├── OidInvalid              oid_invalid
    │   └── ZoneError
    │       ├── ZoneNameInvalid     zone_name_invalid
    │       └── ShapeInvalid        shape_invalid, and its kinds:
    │           ├── GeoJsonInvalid          geojson_invalid
    │           ├── WktInvalid              wkt_invalid
    │           ├── ShapeEmpty              shape_empty
    │           ├── CoordinateInvalid       coordinate_invalid
    │           ├── CoordinateNotFlat       coordinate_not_2d
    │           ├── CoordinateOutOfRange    coordinate_out_of_range
    │           ├── RadiusOutOfRange        radius_out_of_range
    │           ├── RectangleUpsideDown     rectangle_upside_down
    │           ├── AntimeridianAmbiguous   antimeridian_ambiguous
    │           ├── TooManyVertices         too_many_vertices
    │           ├── TooManyParts            too_many_parts
    │           ├── TooManyHoles            too_many_holes
    │           ├── ZeroArea                zero_area
    │           ├── RingTooShort            ring_too_short
    │           ├── RingUnclosed            ring_unclosed
    │           ├── RingRepeatsPoint        ring_repeats_point
    │           ├── RingHasSpike            ring_has_spike
    │           ├── RingCrossesItself       ring_crosses_itself
    │           ├── RingTouchesItself       ring_touches_itself
    │           ├── HoleOutside             hole_outside
    │           ├── HoleTouchesAlongEdge    hole_touches_along_edge
    │           ├── HolesOverlap            holes_overlap
    │           ├── InteriorDisconnected    interior_disconnected
    │           ├── PartsOverlap            parts_overlap
    │           └── PartsTouchAlongEdge     parts_touch_along_edge
    ├── PeerError             the other end of a connection broke the protocol
    └── FaultError            ours: something that should not happen did

The code is a promise; the wording is free to improve.
"""

from typing import Any, ClassVar

__all__ = [
    "AntimeridianAmbiguous",
    "CallerError",
    "CoordinateInvalid",
    "CoordinateNotFlat",
    "CoordinateOutOfRange",
    "FaultError",
    "FencepostError",
    "GeoJsonInvalid",
    "HoleOutside",
    "HoleTouchesAlongEdge",
    "HolesOverlap",
    "InteriorDisconnected",
    "OidInvalid",
    "PartsOverlap",
    "PartsTouchAlongEdge",
    "PeerError",
    "RadiusOutOfRange",
    "RectangleUpsideDown",
    "RingCrossesItself",
    "RingHasSpike",
    "RingRepeatsPoint",
    "RingTooShort",
    "RingTouchesItself",
    "RingUnclosed",
    "ShapeEmpty",
    "ShapeInvalid",
    "TooManyHoles",
    "TooManyParts",
    "TooManyVertices",
    "WktInvalid",
    "ZeroArea",
    "ZoneError",
    "ZoneNameInvalid",
]


class FencepostError(Exception):
    """What went wrong, in one sentence; `hint` says what to do about it."""

    code: ClassVar[str] = "internal"

    def __init__(self, sentence: str, *, hint: str = "", **details: Any) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.details = details


class CallerError(FencepostError):
    """The caller sent something that can't be used; nothing has changed."""

    code = "bad_request"


class PeerError(FencepostError):
    """The other end of a connection did not keep to the protocol."""

    code = "protocol_violation"


class FaultError(FencepostError):
    """A fault of ours."""

    code = "internal"


class OidInvalid(CallerError):
    """Not `owner` or `owner/name`."""

    code = "oid_invalid"


class ZoneError(CallerError):
    code = "zone_invalid"


class ZoneNameInvalid(ZoneError):
    code = "zone_name_invalid"


class ShapeInvalid(ZoneError):
    code = "shape_invalid"


class GeoJsonInvalid(ShapeInvalid):
    """The GeoJSON object is not built as it should be."""

    code = "geojson_invalid"


class WktInvalid(ShapeInvalid):
    """The text is not one of the shapes that can be written inline."""

    code = "wkt_invalid"


class ShapeEmpty(ShapeInvalid):
    """There is nothing in the shape."""

    code = "shape_empty"


class CoordinateInvalid(ShapeInvalid):
    """A coordinate is not a finite number."""

    code = "coordinate_invalid"


class CoordinateNotFlat(ShapeInvalid):
    """A position has more than two coordinates."""

    code = "coordinate_not_2d"


class CoordinateOutOfRange(ShapeInvalid):
    """A coordinate is not on the globe."""

    code = "coordinate_out_of_range"


class RadiusOutOfRange(ShapeInvalid):
    """A circle's radius is not above 0 and at most 1,000 km."""

    code = "radius_out_of_range"


class RectangleUpsideDown(ShapeInvalid):
    """A rectangle's south lies north of its north."""

    code = "rectangle_upside_down"


class AntimeridianAmbiguous(ShapeInvalid):
    """It can't be known which way around the globe is meant."""

    code = "antimeridian_ambiguous"


class TooManyVertices(ShapeInvalid):
    code = "too_many_vertices"


class TooManyParts(ShapeInvalid):
    code = "too_many_parts"


class TooManyHoles(ShapeInvalid):
    code = "too_many_holes"


class ZeroArea(ShapeInvalid):
    """A ring or rectangle encloses nothing."""

    code = "zero_area"


class RingTooShort(ShapeInvalid):
    """A ring has fewer than four points, the first repeated at the end included."""

    code = "ring_too_short"


class RingUnclosed(ShapeInvalid):
    """A ring does not end where it began."""

    code = "ring_unclosed"


class RingRepeatsPoint(ShapeInvalid):
    """A ring has the same point twice in a row."""

    code = "ring_repeats_point"


class RingHasSpike(ShapeInvalid):
    """A ring goes out to a point and back on the same line."""

    code = "ring_has_spike"


class RingCrossesItself(ShapeInvalid):
    code = "ring_crosses_itself"


class RingTouchesItself(ShapeInvalid):
    """A ring comes back to one of its own points."""

    code = "ring_touches_itself"


class HoleOutside(ShapeInvalid):
    """A hole is not, or not wholly, inside its outer ring."""

    code = "hole_outside"


class HoleTouchesAlongEdge(ShapeInvalid):
    """A hole shares more than single points with another ring."""

    code = "hole_touches_along_edge"


class HolesOverlap(ShapeInvalid):
    code = "holes_overlap"


class InteriorDisconnected(ShapeInvalid):
    """Holes that touch cut a polygon into pieces."""

    code = "interior_disconnected"


class PartsOverlap(ShapeInvalid):
    code = "parts_overlap"


class PartsTouchAlongEdge(ShapeInvalid):
    """Two parts share more than single points."""

    code = "parts_touch_along_edge"
