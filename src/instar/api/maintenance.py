"""Maintenance of a whole store: retention, compaction and vacuum for every table, one after the other."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import AdoptedFileError, InstarError, TableNotFoundError
from instar.stream.leadership import Leader
from instar.stream.vacuum import holding, settling, vacuum_streams
from instar.table import check_clock, vacuum_store, vacuum_table
from instar.table.housekeeping.compaction import CompactionReport, compact_table
from instar.table.housekeeping.retention import retain_table
from instar.table.housekeeping.rewrite import rewrite_parts
from instar.table.housekeeping.vacuum import VacuumReport
from instar.table.log.table_log import TableLog
from instar.table.log.tables import INTERNAL, log_keys
from instar.table.metrics import MAINTAINED, MAINTENANCE_FAILED, REWRITTEN_BYTES, VACUUMED_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from instar.table import Services
    from instar.table.housekeeping.compaction import Rewrite

__all__ = ["Maintenance", "MaintenanceFailure", "MaintenanceReport"]

_LOG: Final = logging.getLogger("instar.maintenance")

_KEY: Final = f"{INTERNAL}maintenance/store"
_LEAD_MS: Final = 5 * 60_000


class MaintenanceFailure(NamedTuple):
    """A table that could not be maintained. The others were."""

    table: str
    error: str


class MaintenanceReport(NamedTuple):
    """The result of a pass over all tables."""

    tables: int = 0
    """How many tables were maintained."""
    moved: int = 0
    """For how many the earliest time that can be read has moved."""
    compaction: CompactionReport = CompactionReport()
    vacuum: VacuumReport = VacuumReport()
    failures: tuple[MaintenanceFailure, ...] = ()
    leader: str | None = None
    """Who leads, if it is somebody else: then nothing was done."""
    stopped: bool = False
    """Whether it was asked to stop before all tables were done."""


class _StoppedError(Exception):
    """It was asked to stop in the middle of a table."""


class Maintenance:
    """Maintains all tables of a store. Several may run: one leads, and the others do nothing."""

    def __init__(
        self, services: Services, *, grace_ms: int, rewrite: Rewrite = rewrite_parts, lanes: int = 1
    ) -> None:
        self._services = services
        self._grace_ms = grace_ms
        self._rewrite = rewrite
        self._lanes = lanes
        self._leader = Leader(services, _KEY, lead_ms=_LEAD_MS)
        self._settle = settling(services)
        self._hold = holding(services)

    def run_once(
        self, *, stop: Event | None = None, tell: Callable[[str, int, int], None] | None = None
    ) -> MaintenanceReport:
        """Maintain every table once. `tell` gets a table, its bytes that are done, and all of its bytes.

        A table that fails does not stop the others. When `stop` is set, the current rewrite is finished; the
        rest of the table's compaction, and all other tables, wait for the next pass.
        """
        rival = self._leader.lead()
        if rival is not None:
            return MaintenanceReport(leader=rival.holder)
        check_clock(self._services)
        report = MaintenanceReport()
        for name in log_keys(self._services):
            if stop is not None and stop.is_set():
                return report._replace(stopped=True)
            try:
                report = self._maintain(name, report, stop, tell)
            except TableNotFoundError:
                continue  # it was dropped meanwhile
            except _StoppedError:
                return report._replace(stopped=True)
            except Exception as error:  # noqa: BLE001 -- the other tables still have their turn
                MAINTENANCE_FAILED.inc()
                known = isinstance(error, InstarError)
                if not known:
                    _LOG.warning("maintenance of `%s` failed", name, exc_info=True)
                failure = MaintenanceFailure(name, str(error) if known else repr(error))
                report = report._replace(failures=(*report.failures, failure))
        # What belongs to no table is known only if all tables can be read.
        for vacuum in () if report.failures else (vacuum_streams, vacuum_store):
            freed = vacuum(self._services, grace_ms=self._grace_ms)
            report = report._replace(vacuum=_plus(report.vacuum, freed))
        return report

    def close(self) -> None:
        """Let others lead at once."""
        self._leader.resign()

    def _maintain(
        self,
        name: str,
        report: MaintenanceReport,
        stop: Event | None,
        tell: Callable[[str, int, int], None] | None,
    ) -> MaintenanceReport:
        services = self._services
        log = TableLog(services, name)
        state = log.refresh()
        if state is not None:
            log.bind(state.table_id)  # it may be called otherwise than its log
        moved, compacted = False, CompactionReport()

        def told(done: int, total: int) -> None:
            self._leader.lead()  # a long compaction renews the lead as it goes
            if tell is not None:
                tell(log.name, done, total)
            if stop is not None and stop.is_set() and done < total:
                raise _StoppedError

        if state is not None and not state.dropped:
            kept = retain_table(services, log, hold=self._hold)
            moved = kept.since > kept.before
            try:
                compacted = compact_table(services, log, self._rewrite, lanes=self._lanes, tell=told)
            except AdoptedFileError:
                # Whether it comes back is not for us to say, and what nobody needs may go all the same.
                vacuum_table(services, name, grace_ms=self._grace_ms, settle=self._settle)
                raise
        freed = vacuum_table(services, name, grace_ms=self._grace_ms, settle=self._settle)
        MAINTAINED.inc()
        REWRITTEN_BYTES.inc(compacted.bytes_before)
        VACUUMED_BYTES.inc(freed.bytes)
        return report._replace(
            tables=report.tables + 1,
            moved=report.moved + moved,
            compaction=report.compaction + compacted,
            vacuum=_plus(report.vacuum, freed),
        )

    def __repr__(self) -> str:
        return f"Maintenance(grace_ms={self._grace_ms})"


def _plus(one: VacuumReport, other: VacuumReport) -> VacuumReport:
    return VacuumReport(*(left + right for left, right in zip(one, other, strict=True)))
