"""Reports on scans: how many parts a filter needs, what each of its conditions does, and why."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from instar.amounts import format_bytes, format_count
from instar.schema.html import html_table
from instar.skipping import Conjunct, Verdict, explain_conjuncts, explain_part
from instar.state.chunk import FILES
from instar.table.read.audit import Skipping
from instar.table.read.pruning import needed_parts, part_bounds

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.part_set import PartSet
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


@dataclass(frozen=True, repr=False)
class ScanReport:
    """Which parts one scan of a table reads, and why."""

    table: str
    seqno: int
    condition: str
    """The filter as it was understood; an unknown function shows only its name."""
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
    joins: tuple[Conjunct, ...] = ()
    """The values from joins and subqueries when the query last ran, and how many parts each excluded."""

    @property
    def skipped(self) -> int:
        """How many parts are not opened."""
        return self.total - self.read

    def __repr__(self) -> str:
        return f"ScanReport({self.table!r}, {self.condition!r}: {self._told()}; skipping is {self.skipping})"

    def _repr_html_(self) -> str:
        rows = [(conjunct.text, format_count(conjunct.excludes, "part")) for conjunct in self.conjuncts]
        conditions = html_table(("condition", "excludes alone"), rows, numbers=(1,))
        return f"<p><b>Scan</b> of {escape(self.table)}: {self._told()}</p>{conditions}"

    def _told(self) -> str:
        parts = f"reads {self.read:,} of {format_count(self.total, 'part')}"
        return f"{parts}, {format_bytes(self.bytes_read)} of {format_bytes(self.bytes_total)}"


def report_scan(
    chunks: ChunkReader,
    state: TableState,
    considered: PartSet,
    condition: Condition,
    mode: Skipping,
    *,
    parts: bool = False,
) -> ScanReport:
    """Report on the parts of a scan."""
    needed = needed_parts(chunks, state, condition)
    read = considered.keep(needed.read[considered.mask]) if mode is Skipping.ON else considered
    known = part_bounds(chunks, state, condition.expression).keep(considered.mask)
    return ScanReport(
        state.name,
        state.seqno,
        str(condition.expression),
        len(considered),
        len(read),
        considered.bytes,
        read.bytes,
        needed.chunks,
        needed.chunks_skipped if mode is Skipping.ON else 0,
        explain_conjuncts(condition.expression, known.bounds, known.rows, condition.now),
        _part_reports(considered, known, condition, mode) if parts else (),
        mode.value,
    )


def _part_reports(
    considered: PartSet, known: PartSet, condition: Condition, mode: Skipping
) -> tuple[PartReport, ...]:
    reports = []
    bounds = known.bounds
    for at, file in enumerate(considered.columns[FILES].to_pylist()):
        reason = explain_part(condition.expression, bounds, known.rows, at, condition.now)
        needed = reason.verdict is Verdict.READ
        why = reason.text if needed or mode is Skipping.ON else f"skipping is {mode}, though {reason.text}"
        read = needed or mode is not Skipping.ON
        reports.append(PartReport(file["key"], file["rows"], file["size"], read, why))
    return tuple(reports)
