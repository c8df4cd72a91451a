"""The invoices table."""

import sqlalchemy as sa
from alembic import op

revision = "0001_invoices"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "invoices",
        sa.Column("number", sa.String(40), primary_key=True),
        sa.Column("total_cents", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("invoices")
