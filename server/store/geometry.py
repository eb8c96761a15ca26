"""Shapely geometries in a column, on both databases.

PostGIS keeps them as `geometry(GEOMETRY, 4326)`, so that SQL can search them; SQLite here loads no extensions, so
there they are EWKB blobs that only Python looks into. Either way the Python value is a shapely geometry with
SRID 4326. A decorator decides per dialect because a `with_variant` type keeps GeoAlchemy's functions on SQLite.
"""

from typing import Any

import shapely
from geoalchemy2 import Geometry
from geoalchemy2.elements import WKBElement
from shapely.geometry.base import BaseGeometry
from sqlalchemy import Dialect, LargeBinary
from sqlalchemy.types import TypeDecorator, TypeEngine

__all__ = ["SRID", "GeometryColumn"]

SRID = 4326


class GeometryColumn(TypeDecorator[BaseGeometry]):
    """A geometry in WGS 84; index it with `postgresql_using="gist"` and `.ddl_if(dialect="postgresql")`."""

    impl = LargeBinary
    cache_ok = True
    spatial_index = False  # read by GeoAlchemy; the index is declared with the table, where migrations are held to it

    def load_dialect_impl(self, dialect: Dialect | None) -> TypeEngine[Any]:
        if dialect is None:  # GeoAlchemy asks so while a table is made, to learn whether this is a raster
            return LargeBinary()
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Geometry(srid=SRID, spatial_index=False))
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: BaseGeometry | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        ewkb = shapely.to_wkb(shapely.set_srid(value, SRID), include_srid=True)
        return WKBElement(ewkb, srid=SRID, extended=True) if dialect.name == "postgresql" else ewkb

    def process_result_value(self, value: Any, dialect: Dialect) -> BaseGeometry | None:
        if value is None:
            return None
        return shapely.from_wkb(value.data if isinstance(value, WKBElement) else value)
