"""Tables that begin with rows: the commit that creates a table has them, so nobody sees it without.

Until that commit nothing of the table is in the store but its parts, under a lease. If the rows cannot be
stored, there is no table, and one that was to be replaced is as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.state.commits import CommitRecord, Start
from instar.state.table_state import apply
from instar.table.log.table_log import TableLog
from instar.table.log.tables import Beginning, begin_table, begin_with
from instar.table.write.rows import WriteOptions, append_rows

if TYPE_CHECKING:
    from instar.state import Created, Step, TableState
    from instar.table.log.table_log import Committed, Decide
    from instar.table.services import Services
    from instar.table.write.store import Rows

__all__ = ["create_with_rows"]


def create_with_rows(
    services: Services, name: str, step: Created, rows: Rows, *, replace: bool = False
) -> Beginning:
    """Store rows, and create a table that has them; with `replace`, in the place of one that has the name."""
    log = _UnbornLog(services, name, step, replace=replace)
    committed = append_rows(services, log, rows, WriteOptions())
    return Beginning(log.born, committed)


class _UnbornLog(TableLog):
    """What a write takes for the log of a table that is not there yet: the write's commit creates it."""

    def __init__(self, services: Services, name: str, step: Created, *, replace: bool) -> None:
        super().__init__(services, name)
        self._step = step
        self._replace = replace
        self._born: TableLog | None = None
        record = CommitRecord(
            services.new_id(),
            services.clock(),
            services.author(),
            step.table_id,
            Start(0, rollup=False),
            (step,),
            None,
        )
        self._first = apply(None, name, 0, record)

    @property
    def born(self) -> TableLog:
        """The log that the table has, once it is there."""
        if self._born is None:
            raise LookupError(f"the table `{self.name}` has not been created")
        return self._born

    def refresh(self) -> TableState:
        """Return the state that the table will begin with."""
        return self._first

    def commit(self, decide: Decide, commit_id: str | None = None) -> Committed:
        """Create the table, and commit the steps that `decide` answers, all in one commit."""
        begin = begin_with(self.name, self._step, replace=self._replace)

        def with_rows(log: TableLog) -> Decide:
            create = begin(log)

            def steps(state: TableState | None) -> tuple[Step, ...]:
                return (*create(state), *decide(self._first))

            return steps

        begun = begin_table(
            self._services, self.name, self._step.table_id, with_rows, commit_id, replace=self._replace
        )
        self._born = begun.log
        return begun.committed
