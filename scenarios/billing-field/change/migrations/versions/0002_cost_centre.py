"""Invoices know the customer's cost centre."""

import sqlalchemy as sa
from alembic import op

revision = "0002_cost_centre"
down_revision = "0001_invoices"


def upgrade() -> None:
    """Add the column."""
    op.add_column("invoices", sa.Column("cost_centre", sa.String(40), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("invoices", "cost_centre")
