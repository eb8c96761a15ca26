"""Traces of moving objects in Parquet, and what came of them.

A trace has the columns oid (text), ts (integer epoch milliseconds, or a timestamp), lon and lat. Others become pairs of
the events, as far as somebody asks for them by name; a null is a pair that is not there. Every value is checked before
it is used, and what is wrong with one is said with its row, counted from 0.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from agent_sdk.errors import TraceInvalid
from matcher.events import Event
from matcher.instants import LAST_INSTANT
from matcher.replaying import Told
from matcher.selector.tree import Time
from server.cli.files import FileUnreadable
from zones.errors import CallerError
from zones.validation import check_point

__all__ = ["Trace", "write_told"]

_BATCH = 8192
_OWN = ("oid", "ts", "lon", "lat")
_TOLD = pa.schema(
    [
        ("oid", pa.string()),
        ("ts", pa.int64()),
        ("target", pa.string()),
        ("mode", pa.string()),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
    ]
)


class Trace:
    """An open file; `wanted` are the names of the pairs that matter."""

    def __init__(self, file: str, wanted: Collection[str]) -> None:
        self._file = file
        try:
            with open(file, "rb") as source:
                self._source = pq.ParquetFile(pa.BufferReader(source.read()))
        except pa.ArrowException as error:
            raise FileUnreadable(
                f"{file} is not a Parquet file that can be read: {str(error).splitlines()[0].rstrip('.')}.",
                hint="Write it again, as Parquet.",
            ) from None
        schema = self._source.schema_arrow
        missing = [name for name in _OWN if name not in schema.names]
        if missing:
            has = ", ".join(schema.names[:12]) or "none"
            raise TraceInvalid(
                f"{file} has no column {' and no column '.join(missing)}; its columns are {has}.",
                hint="A trace has the columns oid, ts, lon and lat.",
                columns=missing,
            )
        kept = [name for name in (*wanted, "unc") if name in schema.names and name not in _OWN]
        self._columns = [*_OWN, *dict.fromkeys(kept)]
        for name in self._columns:
            self._check_type(name, schema.field(name).type)
        self.unknown = sorted(set(wanted) - {*self._columns, "loc"})

    def __len__(self) -> int:
        return int(self._source.metadata.num_rows)

    def events(self) -> Iterator[list[Event]]:
        """All of it in the order of the file, some thousands at a time."""
        start = 0
        for batch in self._source.iter_batches(_BATCH, columns=self._columns):
            yield self._events(batch, start)
            start += batch.num_rows

    def oids(self) -> list[str]:
        """All of its objects, in the order in which they come."""
        found: dict[str, None] = {}
        for batch in self._source.iter_batches(_BATCH, columns=["oid"]):
            column = batch.column("oid").drop_null().cast(pa.string())
            found |= dict.fromkeys(column.unique().to_pylist())
        return list(found)

    def _events(self, batch: pa.RecordBatch, start: int) -> list[Event]:
        columns = {name: self._converted(name, batch.column(name), start) for name in self._columns}
        oids, instants = columns["oid"].to_pylist(), columns["ts"].to_pylist()
        lons, lats = columns["lon"].to_pylist(), columns["lat"].to_pylist()
        self._check_places(columns["lon"].to_numpy(), columns["lat"].to_numpy(), start)
        if len(self._columns) == len(_OWN):
            return [Event(ts, (lon, lat), oid) for oid, ts, lon, lat in zip(oids, instants, lons, lats, strict=True)]
        uncs = columns["unc"].to_pylist() if "unc" in columns else [None] * len(oids)
        lpids = columns["lpid"].to_pylist() if "lpid" in columns else [None] * len(oids)
        pairs: list[dict[str, Any]] = [{} for _ in oids]
        for name in self._columns:
            if name not in (*_OWN, "unc", "lpid"):
                is_time = pa.types.is_timestamp(batch.column(name).type)
                for each, value in zip(pairs, columns[name].to_pylist(), strict=True):
                    if value is not None:
                        each[name] = Time(value) if is_time else value
        rows = zip(oids, instants, lons, lats, uncs, lpids, pairs, strict=True)
        return [Event(ts, (lon, lat), oid, unc, lpid, more) for oid, ts, lon, lat, unc, lpid, more in rows]

    # --- checks --------------------------------------------------------------------------------------

    def _check_type(self, name: str, kind: pa.DataType) -> None:
        wanted, is_right = "text, a number, a truth value or a timestamp", _is_pair(kind)
        if name in ("oid", "lpid"):
            wanted, is_right = "text", _is_text(kind)
        elif name == "ts":
            wanted, is_right = "integer epoch milliseconds or a timestamp", _is_instant(kind)
        elif name in ("lon", "lat", "unc"):
            wanted, is_right = "a number", _is_number(kind)
        if not is_right:
            raise TraceInvalid(
                f"The column {name} of {self._file} is of the type {kind}, not {wanted}.",
                hint="Write the column with another type.",
                column=name,
            )

    def _converted(self, name: str, column: pa.Array, start: int) -> pa.Array:
        """The column as one of few types, its values checked."""
        if column.null_count and name in _OWN:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise self._fault(start + row, name, "has no", "Leave out rows that are not complete.")
        kind = column.type
        if pa.types.is_timestamp(kind):
            # What lies below the millisecond is dropped, as it is in text.
            column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
        elif _is_text(kind):
            column = column.cast(pa.string())
        elif name in ("lon", "lat", "unc") or pa.types.is_floating(kind):
            column = column.cast(pa.float64())
            self._refuse(
                ~np.isfinite(_filled(column, 0.0)), name, start, "is not finite", "Write null for the unknown."
            )
        elif pa.types.is_unsigned_integer(kind):
            self._refuse(_filled(column, 0) > 2**63 - 1, name, start, "has more than 64 bits", "Write it as text.")
            column = column.cast(pa.int64())
        elif pa.types.is_integer(kind):
            column = column.cast(pa.int64())
        if name == "unc":
            self._refuse(_filled(column, 0.0) < 0, name, start, "is below 0", "It is in metres.")
        if name == "ts" or pa.types.is_timestamp(kind):
            instants = _filled(column, 0)
            outside = (instants < 0) | (instants > LAST_INSTANT)
            self._refuse(outside, name, start, "is not in the years 1970 to 9999", "Write epoch milliseconds.")
        return column

    def _check_places(self, lons: Any, lats: Any, start: int) -> None:
        for row in np.flatnonzero((np.abs(lons) > 180) | (np.abs(lats) > 90)).tolist():
            try:
                check_point((float(lons[row]), float(lats[row])))
            except CallerError as fault:
                raise TraceInvalid(
                    f"Row {start + row} of {self._file}: {fault.sentence}", hint=fault.hint, row=start + row
                ) from None

    def _refuse(self, wrong: Any, name: str, start: int, what: str, hint: str) -> None:
        if wrong.any():
            row = start + int(np.flatnonzero(wrong)[0])
            raise TraceInvalid(f"Row {row} of {self._file}: its {name} {what}.", hint=hint, row=row, column=name)

    def _fault(self, row: int, name: str, what: str, hint: str) -> TraceInvalid:
        return TraceInvalid(f"Row {row} of {self._file} {what} {name}.", hint=hint, row=row, column=name)


def write_told(file: str, told: Sequence[Told]) -> None:
    """All of them in one file, which is there when it is complete."""
    target = Path(file)
    table = pa.table(
        {
            "oid": [each.oid for each in told],
            "ts": [each.ts for each in told],
            "target": [each.target for each in told],
            "mode": [str(each.mode) for each in told],
            "lon": [None if each.loc is None else each.loc[0] for each in told],
            "lat": [None if each.loc is None else each.loc[1] for each in told],
        },
        schema=_TOLD,
    )
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as sink:
            pq.write_table(table, sink)
        partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def _filled(column: pa.Array, value: Any) -> Any:
    """As numpy has it, with this value for nulls."""
    return pc.fill_null(column, value).to_numpy(zero_copy_only=False)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _is_pair(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or _is_number(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind))
