"""Indexes that no query reads, on columns that every event writes."""

from __future__ import annotations

from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Drop them: without them, PostgreSQL changes such a row in place."""
    op.drop_index("ix_datasets_current_version_uuid", "datasets")
    op.drop_index("ix_datasets_updated_at", "datasets")
    op.drop_index("ix_jobs_updated_at", "jobs")
