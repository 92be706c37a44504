"""Reports on scans: how many parts a filter needs, what each of its conditions does, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from instar.skipping import Conjunct, Verdict, explain_conjuncts, explain_part
from instar.state.chunk import FILES
from instar.table.log.manifest import keep_parts
from instar.table.read.audit import Skipping
from instar.table.read.pruning import needed_parts, part_bounds, total_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.state import TableState
    from instar.state.manifest import Columns
    from instar.table.log.manifest import ChunkReader, Mask
    from instar.table.read.pruning import Condition

__all__ = ["PartReport", "ScanReport", "report_scan"]


@dataclass(frozen=True)
class PartReport:
    """The verdict for one part, and the bounds that decided it."""

    key: str
    rows: int
    size: int
    read: bool
    why: str


@dataclass(frozen=True)
class ScanReport:
    """What one scan of a table has to do with its parts."""

    table: str
    seqno: int
    condition: str
    """The filter as it was understood; what was not stands as the name of its function."""
    total: int
    """Parts that hold rows as of the time of the scan."""
    read: int
    bytes_total: int
    bytes_read: int
    chunks: int
    chunks_skipped: int
    """Manifest chunks, and how many were excluded as a whole."""
    conjuncts: tuple[Conjunct, ...]
    """The conditions that are joined by AND, and how many parts each excludes alone."""
    parts: tuple[PartReport, ...] = ()
    skipping: str = "on"
    """The mode of the scan: in `off` and `audit` everything is read, whatever the filter needs."""

    @property
    def skipped(self) -> int:
        """How many parts are not opened."""
        return self.total - self.read


def report_scan(
    chunks: ChunkReader,
    state: TableState,
    considered: tuple[Columns, Mask],
    condition: Condition,
    mode: Skipping,
    *,
    parts: bool = False,
) -> ScanReport:
    """Report on the parts of a scan, which are given with their mask among the live parts of the state."""
    columns, mask = considered
    needed = needed_parts(chunks, state, condition)
    read = keep_parts(columns, needed.read[mask]) if mode is Skipping.ON else columns
    known = part_bounds(chunks, state, condition.expression)
    chosen = pa.array(mask)
    bounds = {field_id: batch.filter(chosen) for field_id, batch in known.bounds.items()}
    rows = known.rows.filter(chosen)
    return ScanReport(
        state.name,
        state.seqno,
        str(condition.expression),
        columns[FILES].num_rows,
        read[FILES].num_rows,
        total_bytes(columns),
        total_bytes(read),
        needed.chunks,
        needed.chunks_skipped if mode is Skipping.ON else 0,
        explain_conjuncts(condition.expression, bounds, rows, condition.now),
        _part_reports(columns, bounds, rows, condition, mode) if parts else (),
        mode.value,
    )


def _part_reports(
    columns: Columns,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    condition: Condition,
    mode: Skipping,
) -> tuple[PartReport, ...]:
    reports = []
    for at, file in enumerate(columns[FILES].to_pylist()):
        reason = explain_part(condition.expression, bounds, rows, at, condition.now)
        needed = reason.verdict is Verdict.READ
        why = reason.text if needed or mode is Skipping.ON else f"skipping is {mode}, though {reason.text}"
        read = needed or mode is not Skipping.ON
        reports.append(PartReport(file["key"], file["rows"], file["size"], read, why))
    return tuple(reports)
