"""Data sets, runs, calls and baselines."""

import sqlalchemy as sql
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "data",
        sql.Column("fingerprint", sql.String, primary_key=True),
        sql.Column("size", sql.Integer, nullable=False),
        sql.Column("hashes", sql.LargeBinary, nullable=False),
    )
    op.create_table(
        "run",
        sql.Column("id", sql.Integer, primary_key=True),
        sql.Column("name", sql.String, nullable=False),
        sql.Column("kind", sql.String, nullable=False),
        sql.Column("created", sql.String, nullable=False),
        sql.Column("touched", sql.String, nullable=False),
        sql.Column("finished", sql.String),
        sql.Column("stopped", sql.String),
        sql.Column("identity", sql.String, nullable=False),
        sql.Column("data", sql.String, sql.ForeignKey("data.fingerprint"), nullable=False),
        sql.Column("baseline", sql.Integer, sql.ForeignKey("run.id")),
        sql.Column("settings", sql.JSON, nullable=False),
        sql.Column("comparable", sql.JSON, nullable=False),
        sql.Column("result", sql.JSON),
        sqlite_autoincrement=True,
    )
    op.create_index("run_by_name", "run", ["name", "kind"])
    op.create_table(
        "call",
        sql.Column("run", sql.Integer, sql.ForeignKey("run.id"), primary_key=True),
        sql.Column("number", sql.Integer, primary_key=True),
        sql.Column("item", sql.BigInteger, nullable=False),
        sql.Column("repeat", sql.Boolean, nullable=False),
        sql.Column("sent", sql.Float, nullable=False),
        sql.Column("reserved", sql.BigInteger, nullable=False),
        sql.Column("ended", sql.Float),
        sql.Column("outcome", sql.String),
        sql.Column("prediction", sql.String),
        sql.Column("confidence", sql.Float),
        sql.Column("version", sql.String),
        sql.Column("cost", sql.BigInteger),
        sql.Column("reason", sql.String),
    )
    op.create_table(
        "baseline",
        sql.Column("id", sql.Integer, primary_key=True),
        sql.Column("name", sql.String, nullable=False),
        sql.Column("run", sql.Integer, sql.ForeignKey("run.id"), nullable=False),
        sql.Column("created", sql.String, nullable=False),
        sqlite_autoincrement=True,
    )
