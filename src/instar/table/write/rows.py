"""Writing rows: appending them, and changing rows that are there, which is tried again if others are faster.

Rows may be in this process or on Spark: who stores them is up to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from instar.errors import ConflictError, UsageError, WriterFencedError
from instar.state.commands import check_token
from instar.table.log.table_log import Committed
from instar.table.write.append import PartWriter, begin_write
from instar.table.write.store import resolve_writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.table.log.pin import Pin
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services
    from instar.table.write.store import Rows

__all__ = ["ATTEMPTS", "WriteOptions", "append_rows", "change_rows"]

ATTEMPTS: Final = 5
"""How often a change that depends on what is there is worked out again before it is given up."""


class WriteOptions(NamedTuple):
    """How rows are to be written; `Table.append` says what each means."""

    token: str | None = None
    evolve: bool = False
    dropped: str = "refuse"
    schema_id: int | None = None
    updates: bool = False
    expected_upper: int | None = None

    def check(self) -> None:
        """Raise unless these can be meant."""
        if self.dropped not in {"refuse", "discard"}:
            raise UsageError(
                f"dropped={self.dropped!r}: values of dropped columns are 'refuse'd or 'discard'ed"
            )
        check_token(self.token)


def append_rows(services: Services, log: TableLog, rows: Rows, options: WriteOptions) -> Committed:
    """Store rows and commit them, unless their token says that this has been done."""
    token, evolve, dropped, schema_id, updates, expected_upper = options
    state = log.load()
    if token is not None and state.find_token(token) is not None:
        return Committed(state, None)
    writer = resolve_writer(state, rows.schema, schema_id, evolve=evolve, updates=updates)
    with begin_write(services, log, state) as write:
        return write.write(
            rows,
            writer,
            updates=updates,
            token=token,
            expected_upper=expected_upper,
            discard=dropped == "discard",
        )


def change_rows(
    services: Services, log: TableLog, doing: str, changes_of: Callable[[Pin], Rows]
) -> Committed:
    """Commit changes to exactly the rows that they were worked out from; try again if the table moved on.

    `doing` is what an error calls it: 'delete from', or 'upsert into'.
    """
    for _ in range(ATTEMPTS):
        write_id = services.new_id()
        pin = log.pinned(write_id)
        with pin as state:
            changes = changes_of(pin)
            writer = resolve_writer(state, changes.schema, updates=True)
            write = PartWriter(services, log, state, write_id)
            try:
                return write.write(changes, writer, updates=True, expected_upper=state.upper)
            except (ConflictError, WriterFencedError):
                continue  # somebody wrote, or dropped a column that the rows to retract have values in
    raise ConflictError(
        f"cannot {doing} `{log.name}`: others changed it each of {ATTEMPTS} times. Try again."
    )
