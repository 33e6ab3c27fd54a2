"""The tables. The unique indexes here are the promises of the ports; code above them only words the answer."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA = MetaData()

_SERIAL = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows by itself only in a column of exactly this type."""

DELIVERIES = Table(
    "deliveries",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("event", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("body_key", Text, nullable=False, unique=True),
    Column("received_at", Text, nullable=False),
    Column("finished", Boolean, nullable=False),
    Column("note", Text, nullable=False),
    Index("deliveries_unfinished", "seq", sqlite_where=text("finished = 0"), postgresql_where=text("NOT finished")),
    Index("deliveries_received", "received_at"),
)
"""`body_key` outlives the body: a purged delivery is still refused when it comes again."""

TASKS = Table(
    "tasks",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("repository_id", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("note", Text, nullable=False),
    Column("pull_number", BigInteger),
    Column("head_sha", Text),
    Column("ending", Text),
    UniqueConstraint("repository_id", "trigger", name="tasks_one_per_trigger"),
)

LATER_INDEXES = (Index("tasks_by_stage", TASKS.c.stage),)
"""Indexes of tables that an earlier version made without them."""

TASK_SUBJECTS = Table(
    "task_subjects",
    METADATA,
    Column("repository_id", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("task", Text, ForeignKey("tasks.id"), nullable=False),
    Column("live", Boolean, nullable=False),
    PrimaryKeyConstraint("repository_id", "number", "task"),
    Index(
        "task_subjects_one_live",
        "repository_id",
        "number",
        unique=True,
        sqlite_where=text("live = 1"),
        postgresql_where=text("live"),
    ),
    Index("task_subjects_by_task", "task"),
)
"""Under which numbers a task is found: its issue, and its pull request once there is one."""

APPROVALS = Table(
    "approvals",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("task", Text, nullable=False, index=True),
    Column("approval", Text, nullable=False),
    Column("chain", Text, nullable=False, unique=True),
)
"""`chain` hashes the row together with the chain before it, so a changed or missing row shows."""

LEDGER = Table(
    "ledger",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("task", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("reserved", BigInteger, nullable=False),
    Column("cost", BigInteger),
    Column("settled", Text),
    UniqueConstraint("task", "key", "number", name="ledger_one_per_attempt"),
)
"""`cost` is null until the attempt is settled; until then the reservation counts."""

LEDGER_TIMES = Table(
    "ledger_times",
    METADATA,
    Column("ledger_seq", BigInteger, ForeignKey("ledger.seq"), primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False, index=True),
)
"""When an attempt was opened, in seconds since 1970; for what may be spent in a day."""

REQUESTS = Table(
    "requests",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("user_id", BigInteger, nullable=False),
    Column("repository_id", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Index("requests_by_user", "user_id", "at"),
    Index("requests_by_repository", "repository_id", "at"),
)
"""Requests for work that were taken up: a task's start, a round of review."""

SUMMARIES = Table(
    "summaries",
    METADATA,
    Column("repository_id", BigInteger, nullable=False),
    Column("key", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("repository_id", "key"),
)
"""What a model said of a file; `key` names its blob, `vector` is empty until it is embedded."""

SUMMARY_BATCHES = Table(
    "summary_batches",
    METADATA,
    Column("repository_id", BigInteger, nullable=False),
    Column("id", Text, nullable=False),
    Column("keys", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    PrimaryKeyConstraint("repository_id", "id"),
)
"""Batches under way. The one that is about to be sent has no id yet; there is one at most."""

SUMMARY_COSTS = Table(
    "summary_costs",
    METADATA,
    Column("seq", _SERIAL, primary_key=True),
    Column("repository_id", BigInteger, nullable=False, index=True),
    Column("micros", BigInteger, nullable=False),
)
"""What summaries and their vectors have cost."""
