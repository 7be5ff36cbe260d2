"""What an API said besides the label."""

import sqlalchemy as sql
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Record the provider's number for each label and, if the user keeps answers, its words."""
    op.add_column("call", sql.Column("scores", sql.JSON))
    op.add_column("call", sql.Column("said", sql.String))
