"""Owners delegate to location providers."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delegations",
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("provider_id", sa.BigInteger(), nullable=False),
        sa.Column("oids", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_delegations_owner_id"),
        sa.ForeignKeyConstraint(["provider_id"], ["users.id"], name="fk_delegations_provider_id"),
        sa.PrimaryKeyConstraint("owner_id", "provider_id", name="pk_delegations"),
    )
    op.create_index("ix_delegations_provider_id", "delegations", ["provider_id"])


def downgrade() -> None:
    op.drop_table("delegations")
