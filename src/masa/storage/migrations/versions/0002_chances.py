"""How a query came to be asked."""

import sqlalchemy as sql
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Record with each call the batch that its item was drawn with, and with what chance."""
    op.add_column("call", sql.Column("batch", sql.Integer))
    op.add_column("call", sql.Column("chance", sql.Float))
    op.add_column("call", sql.Column("batch_size", sql.Integer))
