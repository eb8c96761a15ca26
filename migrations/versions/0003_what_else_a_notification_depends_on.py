"""A notification of a distance depends on what two owners allow, or more."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("notifications", sa.Column("needs", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("notifications", "needs")
