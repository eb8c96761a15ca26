"""The tables. One set of models for SQLite and PostGIS; Alembic migrations follow them.

Instants are integer epoch milliseconds, documents are JSON text. Ids are never used twice: a deleted zone's
bindings must not come back to life for a new one of the same name.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from server.store.geometry import GeometryColumn

__all__ = [
    "Agent", "Base", "Binding", "DeadReport", "Delegation", "Grant", "Key", "Notification", "Object", "Secret",
    "Subscription", "User", "Zone",
]  # fmt: skip

_ACTIVE = text("status = 'active'")
_COUNTS_UP = {"sqlite_autoincrement": True}
_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite only counts up an INTEGER PRIMARY KEY


class Base(DeclarativeBase):
    # Every constraint has a name on both databases: a later migration could not drop it else.
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class Secret(Base):
    """Keys the server made for itself at its first migration, for ids and handles that nobody can guess."""

    __tablename__ = "secrets"
    name: Mapped[str] = mapped_column(String(40), primary_key=True)
    value: Mapped[bytes] = mapped_column(LargeBinary)


class User(Base):
    __tablename__ = "users"
    __table_args__ = _COUNTS_UP
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    folded: Mapped[str] = mapped_column(Text, unique=True)  # NFKC and case folded: nobody poses as another
    is_admin: Mapped[bool] = mapped_column(Boolean, default=False)
    last_offset: Mapped[int] = mapped_column(BigInteger, default=0)  # of the notifications addressed to this user
    created: Mapped[int] = mapped_column(BigInteger)


class Key(Base):
    """An API key; only a hash of it is kept."""

    __tablename__ = "keys"
    id: Mapped[str] = mapped_column(String(24), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    secret_hash: Mapped[bytes] = mapped_column(LargeBinary)
    label: Mapped[str] = mapped_column(Text, default="")
    created: Mapped[int] = mapped_column(BigInteger)
    expires: Mapped[int | None] = mapped_column(BigInteger)
    revoked: Mapped[int | None] = mapped_column(BigInteger)


class Zone(Base):
    __tablename__ = "zones"
    __table_args__ = (
        UniqueConstraint("owner_id", "folded"),
        Index("zones_outline", "outline", postgresql_using="gist").ddl_if(dialect="postgresql"),
        _COUNTS_UP,
    )
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    local: Mapped[str] = mapped_column(Text)
    folded: Mapped[str] = mapped_column(Text)
    version: Mapped[int] = mapped_column(BigInteger)
    shape: Mapped[str] = mapped_column(Text)  # JSON; what is evaluated
    outline: Mapped[object] = mapped_column(GeometryColumn)  # what is indexed: a circle's is a polygon around it
    properties: Mapped[str] = mapped_column(Text, default="{}")
    tags: Mapped[str] = mapped_column(Text, default="[]")
    on_devices: Mapped[bool] = mapped_column(Boolean, default=False)
    changed: Mapped[int] = mapped_column(BigInteger)


class Object(Base):
    """Anything that can be located, with the newest event the server has of it."""

    __tablename__ = "objects"
    __table_args__ = _COUNTS_UP
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    oid: Mapped[str] = mapped_column(Text)
    folded: Mapped[str] = mapped_column(Text, unique=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    newest: Mapped[int | None] = mapped_column(BigInteger)
    last_event: Mapped[str | None] = mapped_column(Text)  # JSON; what holds until the next event
    generation: Mapped[int] = mapped_column(BigInteger, default=0)  # rises with each change of evaluator


class Agent(Base):
    """One enrolment. At most one row per object is active."""

    __tablename__ = "agents"
    __table_args__ = (
        Index("one_agent_per_object", "object_id", unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE),
        _COUNTS_UP,
    )
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    object_id: Mapped[int] = mapped_column(ForeignKey("objects.id"), index=True)
    status: Mapped[str] = mapped_column(String(10))  # invited, active, ended
    token_hash: Mapped[bytes | None] = mapped_column(LargeBinary, unique=True)
    token_expires: Mapped[int | None] = mapped_column(BigInteger)
    credential_hash: Mapped[bytes | None] = mapped_column(LargeBinary, unique=True)
    lease_until: Mapped[int | None] = mapped_column(BigInteger)
    last_seen: Mapped[int | None] = mapped_column(BigInteger)
    created: Mapped[int] = mapped_column(BigInteger)


class Grant(Base):
    __tablename__ = "grants"
    __table_args__ = (UniqueConstraint("owner_id", "who_id"), _COUNTS_UP)
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    who_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    operations: Mapped[str] = mapped_column(Text)  # JSON list
    created: Mapped[int] = mapped_column(BigInteger)


class Delegation(Base):
    """A location provider may publish for objects of the owner."""

    __tablename__ = "delegations"
    owner_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("users.id"), primary_key=True, autoincrement=False)
    provider_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("users.id"), primary_key=True, autoincrement=False, index=True
    )
    oids: Mapped[str | None] = mapped_column(Text)  # JSON list; NULL for all
    created: Mapped[int] = mapped_column(BigInteger)


class Subscription(Base):
    __tablename__ = "subscriptions"
    __table_args__ = (UniqueConstraint("subscriber_id", "name"), _COUNTS_UP)
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    subscriber_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str] = mapped_column(Text)  # the id the client chose
    selector: Mapped[str] = mapped_column(Text)
    service: Mapped[str] = mapped_column(Text)  # JSON of matcher.once.Service
    purpose: Mapped[str] = mapped_column(Text, default="")
    paused: Mapped[bool] = mapped_column(Boolean, default=False)
    changed: Mapped[int] = mapped_column(BigInteger)


class Binding(Base):
    """The once-state of (subscription, object, target); a row is made when there is something to remember."""

    __tablename__ = "bindings"
    subscription_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    object_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    target: Mapped[str] = mapped_column(String(40), primary_key=True)  # zone id; empty for "the whole list"
    state: Mapped[str] = mapped_column(Text)  # JSON of matcher.once.OnceState


class Notification(Base):
    """What a subscriber gets. Written in the transaction that advances the binding's state."""

    __tablename__ = "notifications"
    subscriber_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    offset: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[str] = mapped_column(String(32), unique=True)  # keyed hash of (binding, n)
    owner_id: Mapped[int] = mapped_column(BigInteger)  # whose grant it depends on
    operation: Mapped[str] = mapped_column(String(10))
    needs: Mapped[str | None] = mapped_column(Text)  # JSON list of (owner, operation): what else it depends on
    ts: Mapped[int] = mapped_column(BigInteger)
    body: Mapped[str] = mapped_column(Text)  # JSON, all but the offset
    recorded: Mapped[int] = mapped_column(BigInteger)


class DeadReport(Base):
    """A report refused for good: why, and what it said."""

    __tablename__ = "dead_reports"
    __table_args__ = _COUNTS_UP
    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    agent_id: Mapped[int] = mapped_column(ForeignKey("agents.id"), index=True)
    code: Mapped[str] = mapped_column(String(40))
    report: Mapped[str] = mapped_column(Text)
    recorded: Mapped[int] = mapped_column(BigInteger)
