"""What an answer stands for."""

import sqlalchemy as sql
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Record with each answer of a run that ended the share of all items it stands for, and what it adds to the variance."""
    op.add_column("call", sql.Column("stands", sql.Float))
    op.add_column("call", sql.Column("adds", sql.Float))
