"""The foundation: users, zones, objects and their agents, grants, subscriptions, what they remember and tell."""

import os
import time
from typing import Any

import sqlalchemy as sa
from alembic import op

from server.store.errors import DatabaseUnsuitable
from server.store.geometry import GeometryColumn

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ACTIVE = sa.text("status = 'active'")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        _require_postgis()
    _create_accounts()
    _create_places()
    _create_objects()
    _create_subscriptions()
    _insert_firsts()


def downgrade() -> None:
    for table in (
        "dead_reports", "notifications", "bindings", "subscriptions", "grants", "agents", "objects", "zones", "keys",
        "users", "secrets",
    ):  # fmt: skip
        op.drop_table(table)


def _require_postgis() -> None:
    conn = op.get_bind()
    if conn.scalar(sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'postgis'")):
        return
    try:
        with conn.begin_nested():
            conn.execute(sa.text("CREATE EXTENSION postgis"))
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        raise DatabaseUnsuitable(
            f"The database has no PostGIS, and it can't be added: {reason}.",
            hint="Install PostGIS on the database server and have an administrator run `CREATE EXTENSION postgis`.",
        ) from error


def _create_accounts() -> None:
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.create_table(
        "users",
        _column("id", _ID),
        _column("name", sa.Text()),
        _column("folded", sa.Text()),
        _column("is_admin", sa.Boolean()),
        _column("last_offset", sa.BigInteger()),
        _column("created", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("folded", name="uq_users_folded"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "keys",
        _column("id", sa.String(24)),
        _column("user_id", _ID),
        _column("secret_hash", sa.LargeBinary()),
        _column("label", sa.Text()),
        _column("created", sa.BigInteger()),
        sa.Column("expires", sa.BigInteger()),
        sa.Column("revoked", sa.BigInteger()),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_keys_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
    )
    op.create_index("ix_keys_user_id", "keys", ["user_id"])


def _create_places() -> None:
    op.create_table(
        "zones",
        _column("id", _ID),
        _column("owner_id", _ID),
        _column("local", sa.Text()),
        _column("folded", sa.Text()),
        _column("version", sa.BigInteger()),
        _column("shape", sa.Text()),
        _column("outline", GeometryColumn()),
        _column("properties", sa.Text()),
        _column("tags", sa.Text()),
        _column("on_devices", sa.Boolean()),
        _column("changed", sa.BigInteger()),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_zones_owner_id"),
        sa.PrimaryKeyConstraint("id", name="pk_zones"),
        sa.UniqueConstraint("owner_id", "folded", name="uq_zones_owner_id_folded"),
        sqlite_autoincrement=True,
    )
    if op.get_context().dialect.name == "postgresql":
        op.create_index("zones_outline", "zones", ["outline"], postgresql_using="gist")


def _create_objects() -> None:
    op.create_table(
        "objects",
        _column("id", _ID),
        _column("oid", sa.Text()),
        _column("folded", sa.Text()),
        _column("owner_id", _ID),
        sa.Column("newest", sa.BigInteger()),
        sa.Column("last_event", sa.Text()),
        _column("generation", sa.BigInteger()),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_objects_owner_id"),
        sa.PrimaryKeyConstraint("id", name="pk_objects"),
        sa.UniqueConstraint("folded", name="uq_objects_folded"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_objects_owner_id", "objects", ["owner_id"])
    op.create_table(
        "agents",
        _column("id", _ID),
        _column("object_id", _ID),
        _column("status", sa.String(10)),
        sa.Column("token_hash", sa.LargeBinary()),
        sa.Column("token_expires", sa.BigInteger()),
        sa.Column("credential_hash", sa.LargeBinary()),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("last_seen", sa.BigInteger()),
        _column("created", sa.BigInteger()),
        sa.ForeignKeyConstraint(["object_id"], ["objects.id"], name="fk_agents_object_id"),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
        sa.UniqueConstraint("credential_hash", name="uq_agents_credential_hash"),
        sa.UniqueConstraint("token_hash", name="uq_agents_token_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_agents_object_id", "agents", ["object_id"])
    op.create_index(
        "one_agent_per_object", "agents", ["object_id"], unique=True, sqlite_where=_ACTIVE, postgresql_where=_ACTIVE
    )
    op.create_table(
        "grants",
        _column("id", _ID),
        _column("owner_id", _ID),
        _column("who_id", _ID),
        _column("operations", sa.Text()),
        _column("created", sa.BigInteger()),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_grants_owner_id"),
        sa.ForeignKeyConstraint(["who_id"], ["users.id"], name="fk_grants_who_id"),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        sa.UniqueConstraint("owner_id", "who_id", name="uq_grants_owner_id_who_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_grants_who_id", "grants", ["who_id"])


def _create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        _column("id", _ID),
        _column("subscriber_id", _ID),
        _column("name", sa.Text()),
        _column("selector", sa.Text()),
        _column("service", sa.Text()),
        _column("purpose", sa.Text()),
        _column("paused", sa.Boolean()),
        _column("changed", sa.BigInteger()),
        sa.ForeignKeyConstraint(["subscriber_id"], ["users.id"], name="fk_subscriptions_subscriber_id"),
        sa.PrimaryKeyConstraint("id", name="pk_subscriptions"),
        sa.UniqueConstraint("subscriber_id", "name", name="uq_subscriptions_subscriber_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "bindings",
        _column("subscription_id", sa.BigInteger()),
        _column("object_id", sa.BigInteger()),
        _column("target", sa.String(40)),
        _column("state", sa.Text()),
        sa.PrimaryKeyConstraint("subscription_id", "object_id", "target", name="pk_bindings"),
    )
    op.create_table(
        "notifications",
        _column("subscriber_id", sa.BigInteger()),
        _column("offset", sa.BigInteger()),
        _column("id", sa.String(32)),
        _column("owner_id", sa.BigInteger()),
        _column("operation", sa.String(10)),
        _column("ts", sa.BigInteger()),
        _column("body", sa.Text()),
        _column("recorded", sa.BigInteger()),
        sa.PrimaryKeyConstraint("subscriber_id", "offset", name="pk_notifications"),
        sa.UniqueConstraint("id", name="uq_notifications_id"),
    )
    op.create_table(
        "dead_reports",
        _column("id", _ID),
        _column("agent_id", _ID),
        _column("code", sa.String(40)),
        _column("report", sa.Text()),
        _column("recorded", sa.BigInteger()),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_dead_reports_agent_id"),
        sa.PrimaryKeyConstraint("id", name="pk_dead_reports"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_dead_reports_agent_id", "dead_reports", ["agent_id"])


def _insert_firsts() -> None:
    """The owner of the zones that belong to nobody, and the key of the ids nobody can guess."""
    users = sa.table("users", *map(sa.column, ("name", "folded", "is_admin", "last_offset", "created")))
    secrets = sa.table("secrets", sa.column("name"), sa.column("value"))
    system = {"name": "SYSTEM", "folded": "system", "is_admin": False, "last_offset": 0, "created": _now_ms()}
    op.bulk_insert(users, [system])
    op.bulk_insert(secrets, [{"name": "ids", "value": os.urandom(32)}])


def _column(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
