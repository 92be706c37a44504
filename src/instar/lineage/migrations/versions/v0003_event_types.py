"""The type of each event beside its payload, so that events can be counted by type."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add the column; it is unknown for existing events."""
    op.add_column("lineage_events", sa.Column("event_type", sa.String(length=16), nullable=True))
