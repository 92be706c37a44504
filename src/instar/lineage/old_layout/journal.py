"""The progress of the backfill: one row that is written in the same transaction as each batch.

So a process that is killed at any moment leaves a whole number of batches, and the next one continues there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlalchemy import func, inspect, select, text

from instar.lineage.old_layout.batches import Cursor
from instar.lineage.old_layout.tables import JOURNAL, VERSIONS

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["ConversionJournal", "Step", "begin", "find_journal", "load_journal", "save"]


_LAZY: Final = text("SET LOCAL synchronous_commit = off")


class Step(StrEnum):
    """What the backfill does, or did last."""

    CONVERT = "converting"
    VERIFY = "verifying"
    FAILED = "failed"
    VERIFIED = "verified"
    DROPPED = "dropped"


class ConversionJournal(NamedTuple):
    """The row: `versions` of `total` were looked at in this step, all those up to `cursor`."""

    step: Step
    cursor: Cursor | None
    total: int
    versions: int
    rows: int
    converted: int
    mismatches: int


def find_journal(connection: Connection) -> ConversionJournal | None:
    """Return how far the backfill has come, or None if it never began."""
    if not inspect(connection).has_table(JOURNAL.name):
        return None
    return _read(connection, lock=False)


def load_journal(connection: Connection) -> ConversionJournal:
    """Return the progress of the backfill; no other process changes it until the transaction ends."""
    journal = _read(connection, lock=True)
    assert journal is not None  # noqa: S101 -- `begin` has written it
    return journal


def _read(connection: Connection, *, lock: bool) -> ConversionJournal | None:
    statement = select(JOURNAL).where(JOURNAL.c.id == 1)
    row = connection.execute(statement.with_for_update() if lock else statement).mappings().first()
    if row is None:
        return None
    cursor = Cursor(row["cursor_dataset"], row["cursor_at"], row["cursor"]) if row["cursor"] else None
    counts = (row[name] for name in ("total", "versions", "rows", "converted", "mismatches"))
    return ConversionJournal(Step(row["step"]), cursor, *counts)


def begin(connection: Connection) -> ConversionJournal:
    """Return the journal of an unfinished backfill, or start a new one."""
    JOURNAL.create(connection, checkfirst=True)
    journal = _read(connection, lock=True)
    if journal is not None and journal.step in {Step.CONVERT, Step.VERIFY}:
        return journal
    total = connection.scalar(select(func.count()).select_from(VERSIONS)) or 0
    journal = ConversionJournal(Step.CONVERT, None, total, 0, 0, 0, 0)
    save(connection, journal)
    return journal


def save(connection: Connection, journal: ConversionJournal) -> None:
    """Write the row, without waiting for the disk: a batch that a crash undoes is done again."""
    if connection.dialect.name != "sqlite":
        connection.execute(_LAZY)
    dataset, at, uuid = journal.cursor if journal.cursor is not None else (None, None, None)
    row = {**journal._asdict(), "step": str(journal.step), "cursor": uuid}
    connection.execute(JOURNAL.delete())
    connection.execute(JOURNAL.insert().values(id=1, **row, cursor_dataset=dataset, cursor_at=at))
