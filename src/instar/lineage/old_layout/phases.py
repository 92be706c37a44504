"""The three phases, from the old layout to schemas kept once, and the progress of each.

1. Everything that is ingested is written in both layouts, as long as the old table exists.
2. The backfill converts what is older, a batch at a time, and then compares both layouts.
3. The clean-up compares them once more and drops the old table.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import exists, func, select, text
from sqlalchemy.exc import DBAPIError

from instar.errors import CorruptTableError, UsageError
from instar.lineage.database import Database, open_database
from instar.lineage.old_layout.convert import Converter
from instar.lineage.old_layout.journal import ConversionJournal, Step, begin, find_journal, load_journal, save
from instar.lineage.old_layout.pace import BATCH, Pace
from instar.lineage.old_layout.tables import (
    OLD_MAPPING,
    OLD_TABLE,
    VERSIONS,
    MappingLayout,
    find_layout,
    is_marquez,
)
from instar.lineage.old_layout.verify import verify_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from instar.lineage.old_layout.batches import Cursor, VersionBatch

__all__ = ["Progress", "backfill", "cleanup", "open_any_layout", "status"]

_SHOWN: Final = 5
_DROP_ATTEMPTS: Final = 20
_LOCK_TIMEOUT: Final = "55P03"


class Progress(NamedTuple):
    """How far a step has come, in dataset versions."""

    step: str
    done: int
    total: int


def _ignore(_: Progress) -> None:
    pass


def open_any_layout(url: str) -> Database:
    """Open a database of instar, or one of Marquez as it is."""
    database = Database(url)
    try:
        with database.reading() as connection:
            marquez = is_marquez(connection)
    except BaseException:
        database.close()
        raise
    if marquez:
        return database
    database.close()
    return open_database(url)


def status(database: Database) -> dict[str, Any]:
    """Tell the state of each phase, as JSON."""
    with database.reading() as connection:
        layout = find_layout(connection)
        journal = find_journal(connection)
        marquez = is_marquez(connection)
    found: dict[str, Any] = {
        "database": "marquez" if marquez else "instar",
        "write both": "on" if layout is not None else "off",
        "backfill": _backfill_state(layout, journal),
        "cleanup": "waiting",
    }
    if journal is not None:
        progress = {name: getattr(journal, name) for name in ("versions", "total", "converted", "mismatches")}
        found["progress"] = progress
    if layout is None:
        found["cleanup"] = "done" if journal is not None and journal.step is Step.DROPPED else "not needed"
    elif journal is not None and journal.step is Step.VERIFIED:
        found["cleanup"] = "ready"
    return found


def _backfill_state(layout: MappingLayout | None, journal: ConversionJournal | None) -> str:
    if journal is None:
        return "not started" if layout is not None else "not needed"
    return "done" if journal.step in {Step.VERIFIED, Step.DROPPED} else str(journal.step)


def backfill(
    database: Database, *, batch: int = BATCH, report: Callable[[Progress], None] = _ignore
) -> dict[str, Any]:
    """Convert what only the old layout describes, from where an earlier call ended, and check everything."""
    layout = _load_layout(database)
    journal = database.write(begin)
    converter = Converter(layout)
    pace = Pace(database, batch)
    while journal.step is Step.CONVERT:
        with pace.batch() as size:
            journal = database.write(partial(_convert, converter=converter, size=size))
        report(Progress("converting", journal.versions, max(journal.total, journal.versions)))
    problems: list[str] = []
    while journal.step is Step.VERIFY:
        with pace.batch() as size:
            with database.reading() as connection:
                seen, found = verify_batch(connection, layout, journal.cursor, size)
            journal = database.write(partial(_verified, expected=journal, batch=seen, mismatches=len(found)))
        problems += found[: _SHOWN - len(problems)]
        report(Progress("verifying", journal.versions, max(journal.total, journal.versions)))
    if journal.step is Step.FAILED:
        raise _mismatch(journal.mismatches, problems)
    return status(database)


def _load_layout(database: Database) -> MappingLayout:
    with database.reading() as connection:
        layout = find_layout(connection)
    if layout is None:
        raise UsageError(f"this database has no table `{OLD_TABLE}`: there is nothing to convert or to drop")
    return layout


def _convert(connection: Connection, converter: Converter, size: int) -> ConversionJournal:
    journal = load_journal(connection)
    if journal.step is not Step.CONVERT:
        return journal  # another process was faster
    batch, converted = converter.convert(connection, journal.cursor, size)
    if batch.cursor is None:
        journal = journal._replace(step=Step.VERIFY, cursor=None, versions=0, mismatches=0)
    else:
        journal = journal._replace(
            cursor=batch.cursor,
            versions=journal.versions + len(batch.versions),
            rows=journal.rows + batch.rows,
            converted=journal.converted + converted,
        )
    save(connection, journal)
    return journal


def _verified(
    connection: Connection, expected: ConversionJournal, batch: VersionBatch, mismatches: int
) -> ConversionJournal:
    """Remember that a batch was compared, unless another process was faster."""
    journal = load_journal(connection)
    if (journal.step, journal.cursor) != (expected.step, expected.cursor):
        return journal
    if batch.cursor is None:
        journal = journal._replace(step=Step.FAILED if journal.mismatches else Step.VERIFIED, cursor=None)
    else:
        journal = journal._replace(
            cursor=batch.cursor,
            versions=journal.versions + len(batch.versions),
            mismatches=journal.mismatches + mismatches,
        )
    save(connection, journal)
    return journal


def cleanup(
    database: Database,
    *,
    marquez_stopped: bool = False,
    batch: int = BATCH,
    report: Callable[[Progress], None] = _ignore,
) -> dict[str, Any]:
    """Compare both layouts once more, and drop the old one if they agree."""
    layout = _load_layout(database)
    if layout is MappingLayout.MARQUEZ and not marquez_stopped:
        raise UsageError(
            "Marquez reads the old table up to version 0.51 at least, and fails without it: stop Marquez for "
            "good, and then clean up with --marquez-stopped"
        )
    with database.reading() as connection:
        journal = find_journal(connection)
    if journal is None or journal.step is not Step.VERIFIED:
        raise UsageError("the backfill has not converted and verified everything: run it first")
    _verify_all(database, layout, journal, batch, report)
    _drop(database)
    return status(database)


def _verify_all(
    database: Database,
    layout: MappingLayout,
    journal: ConversionJournal,
    size: int,
    report: Callable[[Progress], None],
) -> None:
    cursor: Cursor | None = None
    done, count = 0, 0
    shown: list[str] = []
    pace = Pace(database, size)
    while True:
        with pace.batch() as some, database.reading() as connection:
            batch, problems = verify_batch(connection, layout, cursor, some)
        if batch.cursor is None:
            break
        cursor, done, count = batch.cursor, done + len(batch.versions), count + len(problems)
        shown += problems[: _SHOWN - len(shown)]
        report(Progress("verifying", done, max(journal.total, done)))
    if count:
        failed = journal._replace(step=Step.FAILED, mismatches=count)
        database.write(lambda connection: save(connection, failed))
        raise _mismatch(count, shown)


def _drop(database: Database) -> None:
    """Drop the table without making anybody wait long: if the lock is not free, try again."""
    for attempt in range(_DROP_ATTEMPTS):
        try:
            return database.write(_drop_once)
        except DBAPIError as error:
            if attempt == _DROP_ATTEMPTS - 1 or getattr(error.orig, "sqlstate", None) != _LOCK_TIMEOUT:
                raise
    raise AssertionError  # the last attempt returns or raises


def _drop_once(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        connection.execute(text("SET LOCAL lock_timeout = '500ms'"))
        connection.execute(text(f"LOCK TABLE {OLD_TABLE} IN ACCESS EXCLUSIVE MODE"))
    version = VERSIONS.c.uuid
    missed = select(func.count()).where(
        VERSIONS.c.dataset_schema_version_uuid.is_(None),
        exists().where(OLD_MAPPING.c.dataset_version_uuid == version).correlate(VERSIONS),
    )
    count = connection.scalar(missed.select_from(VERSIONS)) or 0
    journal = load_journal(connection)
    if count:
        raise UsageError(
            f"{count} dataset versions were written in the old layout alone since the backfill: stop the old "
            "service that writes them, and run the backfill again"
        )
    OLD_MAPPING.drop(connection)
    save(connection, journal._replace(step=Step.DROPPED))


def _mismatch(count: int, problems: list[str]) -> CorruptTableError:
    more = f"; and {count - len(problems)} more" if count > len(problems) else ""
    return CorruptTableError("the lineage database", f"{'; '.join(problems)}{more}. The old table stays")
