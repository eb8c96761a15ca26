"""Statements that are run with very many rows at once, without what building them for each row costs.

SQLAlchemy writes the text, once for each database; the driver gets it with the rows as they are. In between nothing
looks at a row any more, so its values must be what the driver takes: numbers, text, bytes and None.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Executable, bindparam
from sqlalchemy import insert as plain_insert
from sqlalchemy import update as plain_update
from sqlalchemy.dialects import postgresql, sqlite

from server.store.models import Base

__all__ = ["Repeated", "run_many"]

_INSERTS: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


@dataclass
class Repeated:
    """A statement of one shape; `names` are the values of a row, in their order."""

    names: tuple[str, ...]
    _statements: dict[str, Executable]
    _texts: dict[str, str] = field(default_factory=dict)
    _orders: dict[str, tuple[int, ...] | None] = field(default_factory=dict)

    @classmethod
    def insert(cls, model: type[Base], *names: str) -> "Repeated":
        statement = plain_insert(_table(model)).values({name: bindparam(name) for name in names})
        return cls(names, dict.fromkeys(_INSERTS, statement))

    @classmethod
    def upsert(cls, model: type[Base], *keys: str, values: tuple[str, ...]) -> "Repeated":
        """Rows are the keys, then the values."""
        names = (*keys, *values)
        statements: dict[str, Executable] = {}
        for dialect, insert in _INSERTS.items():
            statement: Any = insert(_table(model)).values({name: bindparam(name) for name in names})
            new = {name: statement.excluded[name] for name in values}
            statements[dialect] = statement.on_conflict_do_update(index_elements=list(keys), set_=new)
        return cls(names, statements)

    @classmethod
    def update(cls, model: type[Base], *names: str) -> "Repeated":
        """Rows are the new values, then the id of the row that gets them."""
        table = _table(model)
        statement = plain_update(table).where(table.c.id == bindparam("row_id"))
        statement = statement.values({name: bindparam(name) for name in names})
        return cls((*names, "row_id"), dict.fromkeys(_INSERTS, statement))

    def text(self, conn: Connection) -> tuple[str, tuple[int, ...] | None]:
        """For the driver, and in which order it wants the values; None if it wants them by name."""
        dialect = conn.dialect.name
        text = self._texts.get(dialect)
        if text is None:
            statement: Any = self._statements[dialect]
            compiled = statement.compile(conn.engine)
            text = self._texts[dialect] = str(compiled)
            order = compiled.positiontup
            self._orders[dialect] = None if order is None else tuple(map(self.names.index, order))
        return text, self._orders[dialect]


def run_many(conn: Connection, statement: Repeated, rows: Sequence[tuple[object, ...]]) -> None:
    text, order = statement.text(conn)
    if order is None:
        parameters: Any = [dict(zip(statement.names, row, strict=True)) for row in rows]
    elif order == tuple(range(len(order))):
        parameters = list(rows)
    else:
        parameters = [tuple(row[place] for place in order) for row in rows]
    conn.exec_driver_sql(text, parameters)


def _table(model: type[Base]) -> Any:
    """The table itself: statements on models go through the ORM, which looks at every row."""
    return model.__table__
