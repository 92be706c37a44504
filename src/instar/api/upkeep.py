"""Maintenance of one table: compaction, retention, vacuum, purge, and the state of its parts.

`Table` has these calls from `TableUpkeep`. Rows are read and written in `table.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from instar.arguments import checked_methods
from instar.errors import InstarError, UsageError
from instar.reporting import RunOutput, reported
from instar.stream.stamp import dataset_name
from instar.stream.vacuum import holding, settling
from instar.table import VacuumReport, check_clock, vacuum_table
from instar.table.housekeeping.analyze import analyze_table
from instar.table.housekeeping.compaction import compact_table, find_goals, find_work
from instar.table.housekeeping.forecast import find_condition, forecast_filters
from instar.table.housekeeping.purge import purge_table
from instar.table.housekeeping.retention import retain_table
from instar.table.housekeeping.rewrite import rewrite_parts
from instar.table.read.filter import Filter
from instar.table.read.order import arrange_parts
from instar.table.read.unbounded import find_unbounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from instar.api.writing import Commit
    from instar.state import TableState
    from instar.table import Services, TableLog
    from instar.table.housekeeping.analyze import AnalysisReport
    from instar.table.housekeeping.compaction import CompactionReport
    from instar.table.housekeeping.forecast import FilterForecast, TableCondition
    from instar.table.housekeeping.plan import CompactionJob
    from instar.table.housekeeping.purge import PurgeReport
    from instar.table.housekeeping.retention import RetentionReport
    from instar.table.housekeeping.rewrite import Output, Work

__all__ = ["GRACE_MS", "TableUpkeep", "rewriter"]

GRACE_MS: Final = 24 * 60 * 60 * 1000
"""The default grace period of a vacuum: it keeps everything younger than a day."""
_REMOTE_LANES: Final = 4
"""How many jobs a client of Spark Connect runs at once."""


@checked_methods
class TableUpkeep(ABC):
    """The calls of a `Table` that change how rows are stored, and what they cost, but not the rows."""

    def __init__(self, services: Services, log: TableLog) -> None:
        self._services = services
        self._log = log

    def compact(
        self,
        spark: SparkSession | None = None,
        *,
        full: bool = False,
        tell: Callable[[int, int], None] | None = None,
    ) -> CompactionReport:
        """Rewrite parts (Parquet files) so that queries open fewer: merge small ones, sort overlapping ones.

        Readers do not notice: every read as of any time from `since` on gives the same rows. By default, a
        row is rewritten about log2(n) times in its life; `plan_compaction` shows the plan. With `full`,
        everything that is not ideal is rewritten. Rows get the latest schema at the time of the call. Others
        can keep writing. With a session, its executors do the work; without, this process does, in bounded
        memory. `tell` gets how many bytes are done, and how many there are.
        """
        rewrite, lanes = rewriter(spark)
        place = self._services.blob.url
        with reported("compact", place, self._log.name, work="COMPACTION", writes=False) as run:
            report = compact_table(
                self._services,
                self._log,
                rewrite,
                goals=partial(find_goals, full=full),
                lanes=lanes,
                tell=tell,
            )
            if run.wanted and report.jobs:
                run.outputs.append(self._compacted(report))
        return report

    def _compacted(self, report: CompactionReport) -> RunOutput:
        state = self._log.load()
        return RunOutput(
            self._services.blob.url,
            dataset_name(state),
            state.history.latest,
            str(state.seqno),
            parts=report.parts_after,
            size=report.bytes_after,
        )

    def plan_compaction(self, *, full: bool = False) -> list[CompactionJob]:
        """Return what `compact` would do now, the most urgent first."""
        with self._log.pinned() as state:
            return find_work(self._services, state, find_goals(state, full=full))

    def condition(self) -> TableCondition:
        """Return what state the parts are in, and what `compact` would do. No data file is opened."""
        with self._log.pinned() as state:
            return find_condition(self._services, state)

    def forecast(self, filters: Sequence[str] | None = None) -> list[FilterForecast]:
        """Return how many parts conditions open now, and about how many after `compact(full=True)`.

        Without `filters`, they are the last conditions of queries: at most 16, on Spark or in process, here
        or of others whose stores have been closed since. The second number is estimated from a sample of the
        rows, which are laid out as the compaction would do it.
        """
        with self._log.pinned() as state:
            if filters is None:
                parsed = list(self._asked(state))
            else:
                now = self._services.clock()
                parsed = [Filter.parse(one, state.history.latest, now) for one in filters]
            return forecast_filters(self._services, state, find_goals(state, full=True), parsed)

    def _asked(self, state: TableState) -> Iterator[Filter]:
        """Yield the last conditions that still make sense: their columns may be gone."""
        for text in self._services.asked.find(state.table_id):
            with suppress(InstarError):
                yield Filter.parse(text, state.history.latest, self._services.clock())

    def unbounded(self) -> list[str]:
        """Return the columns whose bounds are not known in some part: filters on them skip nothing there.

        Parts of very wide tables have room only for the statistics of their first columns, and of those of
        `order_by`, `key`, `cluster_by` and the option `stats`. Lists and maps never have bounds, and are not
        named.
        """
        with self._log.pinned() as state:
            return find_unbounded(self._services.chunks, state)

    def is_ordered(self, columns: Sequence[str]) -> bool:
        """Whether the rows can be read sorted by some columns in a single pass, part after part.

        This is so if the columns are the first ones of `order_by`, no change of schema has broken the order
        of old parts, and no two parts overlap. The answer comes from metadata, and may be False for rows that
        are in order by chance. `compact(full=True)` restores the order. A path such as `"s.a"` names a member
        of a struct.
        """
        if not columns:
            raise UsageError("is_ordered needs a column: name those that the rows should be sorted by")
        with self._log.pinned() as state:
            fields = dict.fromkeys(state.history.latest.load_column(column) for column in columns)
            return arrange_parts(self._services.chunks, state, list(fields)) is not None

    def purge(
        self,
        columns: Sequence[str] = (),
        where: str | None = None,
        spark: SparkSession | None = None,
        *,
        adopted: str = "keep",
        grace_ms: int = 0,
    ) -> PurgeReport:
        """Remove dropped columns and deleted rows from the files, and say which files held them.

        `columns` are paths of columns that have been dropped. The rows for which `where` is true are deleted.
        Every part that holds either, retracted or not, is rewritten; earlier times can no longer be read; and
        files that nothing needs are deleted. With `adopted="delete"`, adopted files that held them are
        deleted too. Files that somebody is reading stay, and so do those younger than `grace_ms`: the report
        names them in `kept`, and another purge or vacuum deletes them later.
        """
        if not columns and where is None:
            raise UsageError(
                "purge needs columns that were dropped, or a condition for rows: give one of them"
            )
        if adopted not in {"keep", "delete"}:
            raise UsageError(f"adopted={adopted!r}: use 'keep' or 'delete' for adopted files")
        check_clock(self._services)
        return purge_table(
            self._services,
            self._log,
            rewriter(spark)[0],
            columns=columns,
            where=where,
            delete=None if where is None else lambda: self.delete(where, spark).rows,
            delete_adopted=adopted == "delete",
            vacuum=partial(vacuum_table, grace_ms=grace_ms, settle=settling(self._services)),
        )

    def analyze(self, *, tell: Callable[[int, int], None] | None = None) -> AnalysisReport:
        """Read adopted files once, and keep statistics of them, so that queries can skip them.

        Until then, only the values in their paths and the bounds in their footers that can be trusted are
        used. `tell` gets how many bytes are done, and how many there are.
        """
        return analyze_table(self._services, self._log, tell=tell)

    def retain(self, *, dry_run: bool = False) -> RetentionReport:
        """Remove history that is older than the option `retention` allows; by default, a week.

        `since`, the earliest time that can be read, moves forward. Compaction may then leave out rows that
        were deleted before it. Open snapshots stay readable. Tables whose rows bring their own times keep all
        of their history; the report says so. With `dry_run`, only the report is made.
        """
        return retain_table(self._services, self._log, dry_run=dry_run, hold=holding(self._services))

    def vacuum(self, *, grace_ms: int = GRACE_MS, dry_run: bool = False) -> VacuumReport:
        """Delete files that nothing needs and that are older than the grace period, in milliseconds.

        These are files of writes that never committed, metadata that newer metadata has replaced, and old
        entries of the log. Readers and writers are not disturbed. With `dry_run`, only the report is made, of
        what could be deleted now: a real vacuum may first write new metadata, and so delete more.
        """
        if not dry_run:
            check_clock(self._services)
        table_id = self._log.table_id
        return vacuum_table(
            self._services,
            self._log.key,
            grace_ms=grace_ms,
            dry_run=dry_run,
            table_id=table_id,
            settle=settling(self._services),
        )

    @abstractmethod
    def delete(self, where: str, spark: SparkSession | None = None) -> Commit:
        """Retract the rows for which a condition is true."""


def rewriter(spark: SparkSession | None) -> tuple[Callable[[Work], Iterable[Output]], int]:
    """Return the function that rewrites parts, here or on executors, and how many jobs run at once."""
    if spark is None:
        return rewrite_parts, 1
    from instar.spark import rewrite_on  # noqa: PLC0415 -- only who needs Spark loads it

    is_remote = getattr(spark, "_sc", None) is None  # a client of Spark Connect, which knows no cores
    return rewrite_on(spark), _REMOTE_LANES if is_remote else spark.sparkContext.defaultParallelism
