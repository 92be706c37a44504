"""What a stream reports through OpenLineage: writes, and jobs that copy from one kind of tables to another.

Tables of a stream come and go, so each kind is one dataset, named after the beginning of their names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.api.writing import inputs_of
from instar.reporting import RunInput, RunOutput, reported
from instar.stream import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.api.writing import Data
    from instar.stream import StreamCommit, StreamHandle

__all__ = ["report_stream"]


def report_stream(
    handle: StreamHandle, operation: str, run: Callable[[], StreamCommit], *, data: Data = None
) -> StreamCommit:
    """Write to a stream, and report it through OpenLineage if that is configured."""
    location = handle.services.blob.url
    with reported(operation, location, handle.name, writes=False) as report:
        if report.wanted:
            copied = RunInput(location, _regular(handle), same_columns=True)
            report.inputs += inputs_of(data) if operation == "write" else [copied]
        commit = run()
        if report.wanted:
            schema = handle.known().schema
            kinds = sorted({table.rpartition("/")[0] for table in commit.tables})
            report.outputs += [RunOutput(location, kind, schema, rows=commit.rows) for kind in kinds]
    return commit


def _regular(handle: StreamHandle) -> str:
    return handle.known().layout.table_name(Kind.REGULAR, None).rpartition("/")[0]
