"""`Merge`: data to merge into a table, and clauses for rows that are in both or in only one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.api.writing import is_spark_frame, report_commit
from instar.arguments import checked_methods
from instar.table.write.merge import Clause, When, check_clauses, merge_local

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.api.writing import Commit, Data
    from instar.table import Committed, Services, TableLog

__all__ = ["Merge"]


@checked_methods
class Merge:
    """Clauses, in the order in which they are tried, and `execute`, which applies them in one commit.

    Two rows match if they are equal in the columns of `on`; null equals null. Conditions and values are Spark
    SQL over `target.column`, of the table, and `source.column`, of the data. For each row, the first clause
    of its kind whose condition is true applies; a row without one stays as it is. Numbers in expressions are
    cast as for `update`; data that is taken by name has to fit as in an append.
    """

    def __init__(self, services: Services, log: TableLog, data: Data, on: Sequence[str]) -> None:
        self._services = services
        self._log = log
        self._data = data
        self._on = on
        self._clauses: tuple[Clause, ...] = ()

    def when_matched_update(
        self,
        set: Mapping[str, str] | None = None,  # noqa: A002 -- as for `update`
        *,
        condition: str | None = None,
    ) -> Merge:
        """Update rows that are in both: with values by column, or with all columns of the data."""
        return self._with(Clause(When.MATCHED_UPDATE, condition, set))

    def when_matched_delete(self, condition: str | None = None) -> Merge:
        """Delete rows of the table that are in both."""
        return self._with(Clause(When.MATCHED_DELETE, condition))

    def when_not_matched_insert(
        self, values: Mapping[str, str] | None = None, *, condition: str | None = None
    ) -> Merge:
        """Add rows that only the data has: with values by column, or as they are. Other columns are null."""
        return self._with(Clause(When.NOT_MATCHED_INSERT, condition, values))

    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Merge:
        """Delete rows that only the table has; the condition sees only `target`."""
        return self._with(Clause(When.NOT_MATCHED_BY_SOURCE_DELETE, condition))

    def execute(self) -> Commit:
        """Apply the clauses, in one commit.

        If clauses would update a row of the table with several rows of the data, `UsageError` is raised. A
        row that is only deleted may match any number. All rows that match none are added, even if they have
        the same key.

        Columns that only the data has can be used in conditions and values. If a clause takes all columns by
        name, a column with a former name of a column of the table raises `DataMismatchError`.

        Data of this process needs no JVM: a condition or value that cannot be computed without Spark then
        raises `UsageError`. A Spark frame is merged on Spark, with its session's settings.
        """
        check_clauses(self._log.load().history.latest, self._on, self._clauses)
        return report_commit(self._services, self._log, "merge", self._write, data=self._data)

    def _write(self) -> Committed:
        if is_spark_frame(self._data):
            from instar.spark import merge_frame_into  # noqa: PLC0415 -- only then

            return merge_frame_into(self._services, self._log, self._data, self._on, self._clauses)
        return merge_local(self._services, self._log, self._data, self._on, self._clauses)

    def _with(self, clause: Clause) -> Merge:
        """Return a copy with another clause, so that one merge can be continued in several ways."""
        merge = Merge(self._services, self._log, self._data, self._on)
        merge._clauses = (*self._clauses, clause)
        return merge

    def __repr__(self) -> str:
        return f"Merge({self._log.name!r}, on={list(self._on)!r})"
