"""How others match a region against many constraints: the same answers, by the best that GEOS and PostGIS offer.

A design is made of geometries and the codes of their relations (`matcher.engines.pairs`), and is asked with a region in
its own form; it answers with the numbers of the constraints that hold.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
import shapely
from numpy.typing import NDArray

from benchmarks.support.usage import cpu_seconds
from matcher.engines.pairs import CONTAINS, COVERED_BY, COVERS, DISJOINT, EQUALS, INSIDE, MEETS, OVERLAPS
from tests.support.postgis import running_postgis

__all__ = ["Codes", "Found", "Postgis", "PreparedPredicates", "Relate", "running_design"]

Codes = NDArray[np.int8]
Found = NDArray[np.int64]
_Bools = NDArray[np.bool_]


def _code_of(matrix: str) -> int:
    """The relation in the nine intersections that GEOS gives."""
    interiors, boundaries = matrix[0] != "F", matrix[4] != "F"
    a_in_b, b_in_a = matrix[2] == "F", matrix[6] == "F"
    if a_in_b and b_in_a:
        return EQUALS
    if a_in_b:
        return COVERED_BY if boundaries else INSIDE
    if b_in_a:
        return COVERS if boundaries else CONTAINS
    if interiors:
        return OVERLAPS
    return MEETS if boundaries else DISJOINT


class Relate:
    """STRtree for the boxes, then `relate` for each that is left, prepared or not."""

    def __init__(self, geometries: NDArray[Any], codes: Codes, *, prepares: bool) -> None:
        self._tree = shapely.STRtree(geometries)
        self._geometries, self._codes = geometries, codes
        self._is_disjoint = codes == DISJOINT
        self._prepares = prepares
        self._known: dict[str, int] = {}

    def match(self, query: Any) -> Found:
        if self._prepares:
            shapely.prepare(query)
        near = self._tree.query(query)
        found = self._is_disjoint.copy()
        found[near] = False
        known = self._known
        said = []
        for matrix in shapely.relate(query, self._geometries[near]):
            code = known.get(matrix)
            if code is None:
                code = known[matrix] = _code_of(matrix)
            said.append(code)
        found[near] = self._codes[near] == said
        return np.flatnonzero(found)


class PreparedPredicates:
    """STRtree for the boxes, then for each relation the one predicate of the prepared message that decides it.

    Boxes decide first what they can, all at once. Two predicates are needed only where GEOS has not one that says it.
    """

    def __init__(self, geometries: NDArray[Any], codes: Codes) -> None:
        self._tree = shapely.STRtree(geometries)
        self._geometries, self._codes = geometries, codes
        self._boxes = shapely.bounds(geometries)
        self._is_disjoint = codes == DISJOINT

    def match(self, query: Any) -> Found:
        shapely.prepare(query)
        near = self._tree.query(query)
        codes = self._codes[near]
        found = self._is_disjoint.copy()
        found[near] = False
        west, south, east, north = query.bounds
        boxes = self._boxes[near]
        is_within = (boxes[:, 0] >= west) & (boxes[:, 1] >= south) & (boxes[:, 2] <= east) & (boxes[:, 3] <= north)
        is_around = (boxes[:, 0] <= west) & (boxes[:, 1] <= south) & (boxes[:, 2] >= east) & (boxes[:, 3] >= north)

        def decide(wanted: _Bools, holds: Callable[[NDArray[Any]], _Bools]) -> None:
            chosen = near[wanted]
            if len(chosen):
                found[chosen] = holds(self._geometries[chosen])

        decide(codes == DISJOINT, lambda others: ~shapely.intersects(query, others))
        decide(codes == MEETS, lambda others: shapely.touches(query, others))
        decide(codes == OVERLAPS, lambda others: shapely.overlaps(query, others))
        decide((codes == CONTAINS) & is_within, lambda others: shapely.contains_properly(query, others))
        decide((codes == COVERS) & is_within, lambda others: self._covers(query, others))
        decide((codes == EQUALS) & is_within & is_around, lambda others: shapely.equals(query, others))
        decide((codes == INSIDE) & is_around, lambda others: shapely.contains_properly(others, query))
        decide((codes == COVERED_BY) & is_around, lambda others: self._is_covered_by(query, others))
        return np.flatnonzero(found)

    @staticmethod
    def _covers(query: Any, others: NDArray[Any]) -> _Bools:
        covered: _Bools = shapely.covers(query, others)
        covered[covered] = ~shapely.contains_properly(query, others[covered])
        covered[covered] = ~shapely.equals(query, others[covered])
        return covered

    @staticmethod
    def _is_covered_by(query: Any, others: NDArray[Any]) -> _Bools:
        covering: _Bools = shapely.covered_by(query, others)
        covering[covering] = ~shapely.contains_properly(others[covering], query)
        covering[covering] = ~shapely.equals(query, others[covering])
        return covering


# Of one relation after the other, so that each has an index of its own and needs one predicate, which PostGIS prepares
# by itself for the message, as that stays the same from row to row. ST_Equals does not find the index without `~=`.
# One array comes back much faster than ten thousand rows.
_ONE_STATEMENT = f"""
WITH message AS MATERIALIZED (SELECT ST_GeomFromWKB(%(region)s) AS region)
SELECT array_agg(id) FROM (
  SELECT id FROM message, constraints WHERE relation = {DISJOINT} AND NOT geom && region
  UNION ALL SELECT id FROM message, constraints WHERE relation = {DISJOINT} AND geom && region
    AND NOT ST_Intersects(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {MEETS} AND ST_Touches(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {OVERLAPS} AND ST_Overlaps(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {EQUALS} AND geom ~= region
    AND ST_Equals(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {INSIDE} AND ST_ContainsProperly(geom, region)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {CONTAINS} AND ST_ContainsProperly(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {COVERS} AND ST_Covers(region, geom)
    AND NOT ST_ContainsProperly(region, geom) AND NOT ST_Equals(region, geom)
  UNION ALL SELECT id FROM message, constraints WHERE relation = {COVERED_BY} AND ST_CoveredBy(region, geom)
    AND NOT ST_ContainsProperly(geom, region) AND NOT ST_Equals(region, geom)
) AS held
"""


class Postgis:
    """A table with a GiST index for each relation, asked with one statement a message. One process, as ours."""

    def __init__(self, connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._connection = connection
        row = connection.execute("SELECT pg_backend_pid(), postgis_full_version()").fetchone()
        assert row is not None
        self._pid: int = row[0]
        self.version = str(row[1]).split('"')[1]

    def fill(self, geometries: NDArray[Any], codes: Codes) -> None:
        run = self._connection.execute
        run("CREATE TABLE constraints (id int PRIMARY KEY, relation smallint NOT NULL, geom geometry NOT NULL)")
        with self._connection.cursor() as cursor, cursor.copy("COPY constraints FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "int2", "bytea"])
            for number, (code, wkb) in enumerate(zip(codes.tolist(), shapely.to_wkb(geometries), strict=True)):
                copy.write_row((number, code, wkb))
        for code in range(8):
            run(f"CREATE INDEX ON constraints USING gist (geom) WHERE relation = {code}".encode())
        run("VACUUM ANALYZE constraints")
        run("SET jit = off")
        run("SET max_parallel_workers_per_gather = 0")

    def match(self, query: bytes) -> Found:
        with self._connection.cursor(binary=True) as cursor:
            cursor.execute(_ONE_STATEMENT, {"region": query}, prepare=True)
            row = cursor.fetchone()
        return np.sort(np.array(row[0] if row and row[0] else [], np.int64))

    @property
    def cpu_seconds(self) -> float:
        """What the server's process has used so far; most systems count in hundredths of a second."""
        return cpu_seconds(self._pid)


@contextmanager
def running_design(geometries: NDArray[Any], codes: Codes) -> Iterator[Postgis]:
    """A throw-away PostGIS with these constraints."""
    with running_postgis() as server, server.database() as url:
        plain = url.replace("postgresql+psycopg://", "postgresql://")
        with psycopg.connect(plain, autocommit=True) as connection:
            design = Postgis(connection)
            design.fill(geometries, codes)
            yield design
