"""Purge: removes dropped columns and deleted rows from the files, and names every file that held them.

These files are rewritten, earlier history is given up, and what nobody needs is deleted. What stays
because somebody reads it, or because it was adopted, is named too.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow.compute as pc

from instar.errors import ColumnNotFoundError, ConflictError, UsageError
from instar.state.chunk import FILES, PLACES, TIMES
from instar.table.housekeeping.compaction import compact_table, list_candidates
from instar.table.housekeeping.plan import CompactionJob, CompactionReason
from instar.table.housekeeping.reach import find_sharers
from instar.table.housekeeping.vacuum import vacuum_table
from instar.table.layout import TABLES, table_of, table_root
from instar.table.log.leases import LEASE_MS, live_leases
from instar.table.log.manifest import load_parts
from instar.table.log.table_log import TableLog
from instar.table.log.tables import log_keys
from instar.table.outside import delete_outside
from instar.table.read.filter import Filter
from instar.table.read.locate import narrow_reader
from instar.table.read.pruning import needed_parts
from instar.table.read.rows import read_written
from instar.table.write.append import move_since
from instar.table.write.rows import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from instar.state import Place, TableState
    from instar.table.housekeeping.compaction import Rewrite
    from instar.table.housekeeping.vacuum import VacuumReport
    from instar.table.log.part_set import WrittenPart
    from instar.table.services import Services

__all__ = ["KeptFile", "PurgeReport", "purge_table"]

_VACUUM: Final = partial(vacuum_table, grace_ms=0)


class KeptFile(NamedTuple):
    """A file that still holds, or may hold, data to purge."""

    file: str
    why: str


class PurgeReport(NamedTuple):
    """The result of a purge."""

    rows: int
    """How many rows this purge deleted."""
    files: tuple[str, ...]
    """Files that held what was purged and no longer exist."""
    unread: tuple[str, ...]
    """Files that the table had given up before, which may have held it and no longer exist."""
    kept: tuple[KeptFile, ...]
    """Files that still exist, and why."""
    since: int
    """The earliest time that can be read."""
    log_until: int | None
    """Until when the log may keep bounds of the values, in milliseconds since 1970; then a vacuum cuts it."""


def purge_table(
    services: Services,
    log: TableLog,
    rewrite: Rewrite,
    *,
    columns: Sequence[str] = (),
    where: str | None = None,
    delete: Callable[[], int] | None = None,
    delete_adopted: bool = False,
    vacuum: Callable[..., VacuumReport] = _VACUUM,
) -> PurgeReport:
    """Purge dropped columns, and rows that a condition is true for, which `delete` retracts and counts."""
    state = log.load()
    fields = frozenset(field_id for column in columns for field_id in _dropped_fields(state, column))
    condition = None if where is None else Filter.parse(where, state.history.latest, services.clock())
    rows = 0 if delete is None else delete()
    state = log.load()
    if state.upper:
        move_since(log, state.upper - 1)
    listed = _part_files(services, state.table_id)
    held: dict[str, None] = {}
    for attempt in range(ATTEMPTS):
        # Where only Spark can tell whether a row is meant, all that was retracted goes, at once.
        find = partial(_holders, services, fields=fields, condition=condition, unsure=attempt == 0)
        found = _rewrite(services, log, rewrite, find)
        held |= dict.fromkeys(found)
        if not found:
            break
    else:
        raise ConflictError(
            f"cannot purge `{state.name}`: others kept writing what should go. {len(held)} files were "
            "rewritten so far; purge again."
        )
    log.checkpoint(clean=True)
    last = log.load()
    vacuum(services, log.key, table_id=state.table_id)
    services.asked.forget(state.table_id)
    _vacuum_owners(services, last, held, vacuum)
    return _report(services, last, rows, listed, list(held), delete_adopted=delete_adopted)


def _vacuum_owners(
    services: Services, state: TableState, held: Iterable[str], vacuum: Callable[..., VacuumReport]
) -> None:
    """Vacuum the tables that this one is a clone of, if they own files that held purged data."""
    owners = {table_of(file) for file in held if _is_inside(file)}.intersection(state.origins)
    for key in log_keys(services) if owners else ():
        owner = TableLog(services, key).refresh()
        if owner is not None and owner.table_id in owners and not owner.dropped:
            vacuum(services, key, table_id=owner.table_id)


def _is_inside(file: str) -> bool:
    """Whether a file of a part is in the store: others have paths or URLs."""
    return file.startswith(f"{TABLES}/")


def _dropped_fields(state: TableState, column: str) -> set[int]:
    """Return the ids of all fields that had this path and are not there any more."""
    history = state.history
    live = frozenset(history.latest.field_ids())
    had = (schema.find_member(column) for schema in history.schemas)
    found = {field.id for field in had if field is not None} - live
    if found:
        return found
    if history.latest.find_member(column) is None:
        raise ColumnNotFoundError(column, known=tuple(history.latest.paths()))
    raise UsageError(
        f"`{column}` is a column of `{state.name}`: drop it first, with "
        f"table.evolve().drop_column({column!r}).commit()"
    )


def _rewrite(
    services: Services,
    log: TableLog,
    rewrite: Rewrite,
    find: Callable[[TableState], Iterable[tuple[Place, str]]],
) -> list[str]:
    """Rewrite all parts that hold data to purge, together, and return their files."""
    files: list[str] = []

    def choose(state: TableState) -> list[CompactionJob]:
        holders = dict(find(state))
        files[:] = holders.values()
        parts = tuple(part for part in list_candidates(services, state) if part.place in holders)
        return [CompactionJob(CompactionReason.RETRACTIONS, parts)] if parts else []

    compact_table(services, log, rewrite, choose=choose)
    return files


def _holders(
    services: Services,
    state: TableState,
    *,
    fields: frozenset[int],
    condition: Filter | None,
    unsure: bool,
) -> Iterator[tuple[Place, str]]:
    """Yield parts that hold values of some fields, or rows that a condition is true for, retracted or not.

    `unsure` is the answer for parts with rows for which the condition cannot be computed here.
    """
    live = load_parts(services.chunks, state, (), (PLACES, TIMES, FILES))
    may = np.zeros(len(live), dtype=bool)
    if condition is not None:
        may = needed_parts(services.chunks, state, condition.condition).read
    for at, written in enumerate(live.written(state.history)):
        has = not fields.isdisjoint(written.schema.field_ids())
        if not has and condition is not None and may[at]:
            try:
                has = _matches(services, state, written, condition)
            except UsageError:
                has = unsure
        if has:
            yield live.place(at), written.part.key


def _matches(services: Services, state: TableState, written: WrittenPart, condition: Filter) -> bool:
    schema = narrow_reader(state, condition.columns).schema
    whole = written._replace(taken=None)
    return any(
        pc.any(condition.rows(batch, schema)).as_py() for batch in read_written(services.blob, whole, schema)
    )


def _part_files(services: Services, table_id: str) -> set[str]:
    return {stored.key for stored in services.blob.list(f"{table_root(table_id)}/parts")}


def _report(
    services: Services,
    state: TableState,
    rows: int,
    listed: set[str],
    held: list[str],
    *,
    delete_adopted: bool,
) -> PurgeReport:
    left = _part_files(services, state.table_id)
    left |= {file for file in held if file not in listed and _exists(services, file)}
    live = set(load_parts(services.chunks, state, (), (FILES,)).keys)
    given_up = sorted(((listed | set(held)) & left) - live)
    adopters = delete_adopted and not all(_is_inside(file) for file in given_up)
    sharers = find_sharers(services, state, adopters=adopters) if given_up else {}
    leases = sorted({lease.holder for lease in live_leases(services, state.table_id)})
    kept = []
    for file in given_up:
        others = "; ".join(name for name, reach in sharers.items() if reach.reaches(file))
        if not _is_inside(file) and not delete_adopted:
            kept.append(
                KeptFile(file, "adopted, so it is not ours: delete it, or purge with --delete-adopted")
            )
        elif others:
            kept.append(KeptFile(file, f"also a file of {others}: purge there too, or drop and vacuum it"))
        elif _is_inside(file):
            why = f"in use by {', '.join(leases) or 'somebody'}, or too young to be deleted"
            kept.append(KeptFile(file, f"{why}: vacuum again later"))
        elif leases:
            kept.append(KeptFile(file, f"adopted, and in use by {', '.join(leases)}: purge again later"))
        else:
            delete_outside(services.blob, file)
            left.discard(file)
    gone = tuple(file for file in held if file not in left)
    unread = tuple(sorted(listed - left - set(held)))
    until = services.clock() + LEASE_MS if held else None
    return PurgeReport(rows, gone, unread, tuple(kept), state.since, until)


def _exists(services: Services, file: str) -> bool:
    return not _is_inside(file) or services.blob.stat(file) is not None
