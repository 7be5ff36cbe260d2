"""The tables of a store. Every change to them is a migration as well."""

import sqlalchemy as sql

HEAD = "0004"
"""The newest migration; a test compares it with the files."""

WORKING = "working"
"""What `stopped` says of a run while a process works on it, and after that was killed."""

LOG_LOST = "without log"
"""What `stopped` says of a run whose process was killed, and then the log of the store was gone."""

SETTLED = ("answer", "error", "known", "unsent")
"""Outcomes after which an item has an answer, or has failed for good."""

TO_BE_ASKED_AGAIN = ("failed", "free")
"""Outcomes of calls after which their items are asked again."""

metadata = sql.MetaData()

data = sql.Table(
    "data",
    metadata,
    sql.Column("fingerprint", sql.String, primary_key=True),
    sql.Column("size", sql.Integer, nullable=False),
    # The items' keys, ascending, 8 bytes each, deflated.
    sql.Column("hashes", sql.LargeBinary, nullable=False),
)

run = sql.Table(
    "run",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String, nullable=False),
    sql.Column("kind", sql.String, nullable=False),  # assess, baseline, import, compare
    sql.Column("created", sql.String, nullable=False),
    sql.Column("touched", sql.String, nullable=False),
    sql.Column("finished", sql.String),
    sql.Column("stopped", sql.String),  # why it ended or paused
    # The same command on the same data has the same identity.
    sql.Column("identity", sql.String, nullable=False),
    sql.Column("data", sql.ForeignKey("data.fingerprint"), nullable=False),
    sql.Column("baseline", sql.ForeignKey("run.id")),
    sql.Column("settings", sql.JSON, nullable=False),
    # What two runs must have in common to be compared.
    sql.Column("comparable", sql.JSON, nullable=False),
    sql.Column("result", sql.JSON),
    sql.Index("run_by_name", "name", "kind"),
    sqlite_autoincrement=True,
)

call = sql.Table(
    "call",
    metadata,
    sql.Column("run", sql.ForeignKey("run.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True),
    sql.Column("item", sql.BigInteger, nullable=False),
    # Whether the item is asked a second time, to see whether the API contradicts itself.
    sql.Column("repeat", sql.Boolean, nullable=False),
    sql.Column("sent", sql.Float, nullable=False),
    sql.Column("reserved", sql.BigInteger, nullable=False),  # the most it may cost, in billionths
    sql.Column("ended", sql.Float),
    # Billed: answer, error (the item failed for good), failed (will be tried again).
    # Not billed: known (imported), unsent (the item failed for good), free (will be tried again).
    sql.Column("outcome", sql.String),
    sql.Column("prediction", sql.String),
    sql.Column("confidence", sql.Float),
    sql.Column("version", sql.String),
    sql.Column("cost", sql.BigInteger),
    # Why there is no answer, or why an answer cannot be read as a label.
    sql.Column("reason", sql.String),
    # The batch in which the item was drawn, where items are drawn in batches.
    sql.Column("batch", sql.Integer),
    sql.Column("chance", sql.Float),  # the inclusion probability in that batch
    sql.Column("batch_size", sql.Integer),
    # The weight of the answer, its share of all items, once the run has ended.
    sql.Column("stands", sql.Float),
    # What a residual of 1 adds to the variance of a sum over all items.
    sql.Column("adds", sql.Float),
    sql.Column("scores", sql.JSON),  # the provider's number for each label
    # The answer in the API's words, if the user keeps answers; or the name in place of a label,
    # until the first label is read.
    sql.Column("said", sql.String),
)

baseline = sql.Table(
    "baseline",
    metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String, nullable=False),
    sql.Column("run", sql.ForeignKey("run.id"), nullable=False),
    sql.Column("created", sql.String, nullable=False),
    sqlite_autoincrement=True,
)
