"""`PartScan`: the parts of a table that one place of a plan reads, and which columns, as Spark's `Scan`.

Which parts are needed is decided once, when Spark first asks for sizes or for partitions. A join may prune
more of them when it runs. That holds for what Spark asks for next, in the same thread, and for nothing else:
several places of a plan may share one scan, and not all of them need have the join.
"""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.errors import UsageError
from instar.skipping import Conjunct
from instar.spark.native.relay import relayed
from instar.spark.native.scan_source import Chosen
from instar.spark.planner.guards import fall_back
from instar.spark.planner.interfaces import Feature
from instar.spark.planner.joins import runtime_conditions
from instar.spark.planner.listing import ListingLostError, is_columnar, parquet_scan
from instar.spark.planner.objects import PlannerObject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from instar.spark.native.filters import Filters
    from instar.spark.planner.columns import Columns
    from instar.spark.planner.interfaces import Interfaces
    from instar.spark.planner.table import PlannedTable
    from instar.table.log.part_set import PartSet
    from instar.table.read.report import ScanReport

__all__ = ["PartBatch", "PartScan", "PartStatistics"]

_ID: Final = re.compile(r"(?<=\w)#\d+L?")


class Pruned(NamedTuple):
    """What joins left of the parts, by which conditions."""

    parts: PartSet
    conditions: tuple[Conjunct, ...]


class PartScan(PlannerObject):
    """One scan."""

    def __init__(
        self,
        table: PlannedTable,
        columns: Columns,
        filters: Filters,
        decided: Chosen | None = None,
        selected: Chosen | None = None,
    ) -> None:
        super().__init__([*Feature.SCAN.interfaces[3:4], *table.implemented(Feature.JOINS)])
        self._table = table
        self._columns = columns
        self._filters = filters
        self._decided = decided
        """The parts, if more than the filters was asked to choose them."""
        self._selected = selected
        """The parts that the filters need, if that is known already."""
        self._lock = threading.Lock()
        self._schema = table.gateway.schema(columns.shown_json)
        self._stored = self._schema if columns.is_physical else table.gateway.schema(columns.stored_json)
        self._pending: dict[int, Chosen] = {}
        self._pruned: Pruned | None = None
        self._reader: Any = None

    @cached_property
    def identity(self) -> str:
        """The table in its state, the columns, and the filters without the numbers of a plan."""
        filters = sorted(_ID.sub("", str(own.toString())) for own in self._filters.expressions)
        decided = "" if self._decided is None else _digest(self._decided.parts)
        return f"{self._table.identity} {self._columns.shown_json} {filters} {decided}"

    @property
    def interfaces(self) -> Interfaces:
        """Spark's classes."""
        return self._table.interfaces

    @property
    def chosen(self) -> Chosen:
        """The parts that the filters need."""
        with self._lock:
            return self._chosen

    @cached_property
    def _chosen(self) -> Chosen:
        known = self._decided or self._selected
        if known is not None:
            return known
        return self._table.source.choose(self._table.source.plan, self._filters)

    def report(self) -> ScanReport:
        """Report on the parts that the filters need, and on what joins left of them when they last ran."""
        report = self._table.source.report(self._filters)
        if self._pruned is None and self._decided is None:
            return report
        parts, joins = (self.chosen.parts, ()) if self._pruned is None else self._pruned
        return replace(report, read=len(parts), bytes_read=parts.bytes, joins=joins)

    # Spark's interface.

    def readSchema(self) -> Any:  # noqa: ANN401, N802 -- here and below
        """Return the columns that are read."""
        return self._schema

    def description(self) -> str:
        """Say in plans what is read."""
        filters = ", ".join(str(own.toString()) for own in self._filters.expressions)
        told = f"location: [{self._table.label}], filters: [{filters}]"
        if self._pruned is None:
            return told
        left = f"{len(self._pruned.parts):,} of {len(self.chosen.parts):,} parts"
        return f"{told}, joins left {left}: [{', '.join(own.text for own in self._pruned.conditions)}]"

    @relayed
    def toBatch(self) -> PartBatch:  # noqa: N802
        """Return the parts to read."""
        pruned = None
        if self._pending:
            pruned = self._pending.pop(self.interfaces.thread.currentThread().getId(), None)
        return PartBatch(self, pruned)

    @relayed
    def filterAttributes(self) -> Any:  # noqa: ANN401, N802
        """Return the columns that joins may prune by: all that have bounds."""
        return self._table.references(self._columns)

    def fullyPushedFilterAttributes(self) -> Any:  # noqa: ANN401, N802
        """Say that rows have to be looked at, whatever the column."""
        return self.interfaces.nothing["references"]

    @relayed
    def filter(self, expressions: Any) -> None:  # noqa: ANN401
        """Prune by what a join, or a subquery, has found out: for the batch that is asked for next."""
        conditions = runtime_conditions(self.interfaces, expressions)
        if not conditions:
            return
        chosen, checks, told = self.chosen, [], []
        for condition in conditions:
            filters = self._table.filters(self._table.gateway.seq([condition.expression]))
            before = len(chosen.parts)
            chosen = self._table.source.choose(self._table.source.plan, filters, chosen.parts)
            checks.append(chosen.check)
            told.append(Conjunct(self._table.told(condition.text), before - len(chosen.parts)))
        with self._lock:
            self._pruned = Pruned(chosen.parts, tuple(told))
            checks.append(self._chosen.check)
            thread = self.interfaces.thread.currentThread().getId()
            self._pending[thread] = Chosen(chosen.parts, partial(_check_all, checks))

    def toMicroBatchStream(self, _: str) -> None:  # noqa: N802
        """Refuse: tables are streamed by `readStream.format("instar")`."""
        raise NotImplementedError

    def toContinuousStream(self, _: str) -> None:  # noqa: N802
        """Refuse as well."""
        raise NotImplementedError

    def supportedCustomMetrics(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self.interfaces.nothing["metrics"]

    def reportDriverMetrics(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self.interfaces.nothing["task metrics"]

    def columnarSupportMode(self) -> Any:  # noqa: ANN401, N802
        """Say whether Spark reads these columns in batches."""
        return self._columnar

    @cached_property
    def _columnar(self) -> Any:  # noqa: ANN401 -- a Java object
        return self.interfaces.columnar[is_columnar(self.interfaces, self._stored)]

    @relayed
    def estimateStatistics(self) -> PartStatistics:  # noqa: N802
        """Say how large the parts are, for the columns that are read."""
        return PartStatistics(
            self.interfaces, self._table.estimate(self.chosen.parts, self._schema), self._rows()
        )

    @relayed
    def estimateSizeInBytes(self) -> Any:  # noqa: ANN401, N802
        """Say how large the parts are."""
        return self.interfaces.optional_long.of(self._table.estimate(self.chosen.parts, self._schema))

    def reflectsFullyPushedDownFilters(self) -> bool:  # noqa: N802
        """Say that the numbers are of whole parts."""
        return False

    def _rows(self) -> int:
        return self.chosen.parts.row_count

    # Of the batch.

    def scan_of(self, parts: PartSet | None) -> Any:  # noqa: ANN401 -- a Java object
        """Return Spark's scan of parts; None for its way to read any."""
        files = (
            []
            if parts is None
            else [file for group in self._table.source.groups(parts) for file in group.files]
        )
        self._reader = parquet_scan(
            self.interfaces, files, self._table.stored_schema, self._stored, self._filters.expressions
        )
        return self._reader

    @property
    def reader(self) -> Any:  # noqa: ANN401 -- a Java object
        """Spark's scan, whatever its files: it reads all alike."""
        return self.scan_of(None) if self._reader is None else self._reader

    def partitions_of(self, chosen: Chosen) -> Any:  # noqa: ANN401 -- a Java array
        """Check what is about to be read, and return it as partitions."""
        self._table.source.check_session()
        self._table.source.check_pin()
        chosen.check()
        try:
            scan = self.scan_of(chosen.parts)
        except ListingLostError as error:
            fall_back(self.interfaces, str(error))
            raise UsageError(
                f"cannot read `{self._table.label}` with Spark's planner: {error}. Make the frame again: it "
                "is read over files then, as with instar.planner set to files"
            ) from None
        return scan.planInputPartitions()


def _digest(parts: PartSet) -> str:
    return blake2b(parts.mask.tobytes(), digest_size=16).hexdigest()


def _check_all(checks: Sequence[Callable[[], None]]) -> None:
    for check in checks:
        check()


class PartBatch(PlannerObject):
    """The parts of a scan, or those that a join left, which are listed only if Spark asks for them."""

    def __init__(self, scan: PartScan, pruned: Chosen | None = None) -> None:
        super().__init__(Feature.SCAN.interfaces[4:5])
        self._scan = scan
        self._pruned = pruned

    @property
    def identity(self) -> str:
        """What the scan is. What a join left is nobody else's."""
        return self._scan.identity if self._pruned is None else f"{self._scan.identity} {self._number}"

    @relayed
    def planInputPartitions(self) -> Any:  # noqa: ANN401, N802 -- Spark's interface
        """Return the partitions that tasks read."""
        return self._scan.partitions_of(self._scan.chosen if self._pruned is None else self._pruned)

    @relayed
    def createReaderFactory(self) -> Any:  # noqa: ANN401, N802
        """Return Spark's own reader."""
        return self._scan.reader.createReaderFactory()


class PartStatistics(PlannerObject):
    """What Spark decides joins by."""

    def __init__(self, interfaces: Interfaces, size: int, rows: int) -> None:
        super().__init__(Feature.SCAN.interfaces[5:6])
        self._interfaces = interfaces
        self._size = size
        self._rows = rows

    @property
    def identity(self) -> str:
        """The numbers."""
        return f"{self._size} {self._rows}"

    @relayed
    def sizeInBytes(self) -> Any:  # noqa: ANN401, N802 -- Spark's interface
        """Return how many bytes are read."""
        return self._interfaces.optional_long.of(self._size)

    @relayed
    def numRows(self) -> Any:  # noqa: ANN401, N802
        """Return how many rows the parts have."""
        return self._interfaces.optional_long.of(self._rows)

    @relayed
    def columnStats(self) -> Any:  # noqa: ANN401, N802
        """Say nothing of single columns."""
        return self._interfaces.gateway.jvm.java.util.HashMap()
