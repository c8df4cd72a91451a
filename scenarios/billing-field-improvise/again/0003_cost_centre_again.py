"""The same column once more, under a guard: what a model writes when it believes that the first migration failed."""

import sqlalchemy as sa
from alembic import op

revision = "0003_cost_centre_again"
down_revision = "0002_cost_centre"


def upgrade() -> None:
    """Add the column unless it is there."""
    if "cost_centre" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("invoices")}:
        op.add_column("invoices", sa.Column("cost_centre", sa.String(40), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("invoices", "cost_centre")
