"""A range of tables as one DataFrame: one file index over all, asked with the filters of each query."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.schema import Schema, format_path
from instar.schema.types import Primitive
from instar.spark.native.file_index import FileGroup, Listing
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.relation import shown_frame
from instar.spark.native.scan import later_frame, snapshot_frame
from instar.spark.native.scan_source import Branch, ScanSource, SnapshotSource
from instar.spark.source.table_scan import SCAN_LEASE_MS
from instar.spark.source.worker_frame import can_open, worker_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.filters import Filters
    from instar.spark.native.gateway import Gateway
    from instar.state import ConfigValue
    from instar.stream.reading import Cut, HeldTables, Mixed, Span
    from instar.table import Services
    from instar.table.read.report import ScanReport
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["mixed_frame", "range_frame"]


class RangeSource(ScanSource):
    """The parts of several plans as one scan: every query reads the same tables."""

    def __init__(
        self,
        gateway: Gateway,
        services: Services,
        fields: Sequence[Field],
        options: Mapping[str, ConfigValue | None],
        plans: Sequence[SnapshotPlan],
        held: HeldTables,
    ) -> None:
        super().__init__(gateway, services, Branch.SCAN, fields, options)
        self._plans = plans
        self._held = held  # no vacuum touches the tables as long as Spark knows of this source
        self._size = sum(plan.scan.bytes for plan in plans)

    def files(self, filters: Filters) -> Listing:
        """Return the files of all tables that a query with these filters reads."""
        groups = [group for plan in self._plans for group in self.select(plan, filters)]
        files = [file for group in groups for file in group.files]
        return Listing([FileGroup((), files)] if files else [])

    def size(self) -> int:
        """Return the size of all files."""
        return self._size

    def origin(self) -> TableOrigin | None:
        """Return what the tables of this kind are called together."""
        return self.origin_in(self._plans[0].state) if self._plans else None

    def report(self, filters: Filters) -> ScanReport:
        """Report on a scan of all tables with these filters."""
        reports = [self.explain(plan, filters) for plan in self._plans]
        total = reports[0]
        for other in reports[1:]:
            total = replace(
                total,
                total=total.total + other.total,
                read=total.read + other.read,
                bytes_total=total.bytes_total + other.bytes_total,
                bytes_read=total.bytes_read + other.bytes_read,
                chunks=total.chunks + other.chunks,
                chunks_skipped=total.chunks_skipped + other.chunks_skipped,
            )
        return total


def range_frame(
    spark: SparkSession,
    services: Services,
    held: HeldTables,
    plans: Sequence[SnapshotPlan],
    fields: Sequence[Field],
    cut: Cut | None,
    options: Mapping[str, ConfigValue | None] | None = None,
) -> DataFrame:
    """Return the rows of a range of tables. Tables with retractions are read as they would be alone."""
    has_time = cut is None or any(field.id == cut.field.id for field in fields)
    with_time = fields if has_time or cut is None else (*fields, cut.field)
    if not can_open(spark, services.blob):
        held.lend(SCAN_LEASE_MS)
        widened = [
            plan._replace(reader=plan.reader._replace(schema=Schema(tuple(with_time)))) for plan in plans
        ]
        return _cut(
            worker_frame(spark, services.blob, widened, Schema(tuple(with_time))), fields, with_time, cut
        )
    scanned = [plan for plan in plans if not _has_retractions(plan)]
    source = RangeSource(gateway_of(spark), services, with_time, options or {}, scanned, held)
    parts = sum(len(plan.scan) for plan in scanned)
    label = f"instar:/{held.catalog.name} ({len(held.tables)} tables, {parts} parts)"
    decimals = widened_decimals(held.catalog.history, with_time)
    frame = shown_frame(spark, label, with_time, source, widened=decimals)
    for plan in plans:
        if _has_retractions(plan):
            wide = plan._replace(reader=plan.reader._replace(schema=Schema(tuple(with_time))))
            frame = frame.unionAll(snapshot_frame(spark, services, wide, held, options))  # type: ignore[arg-type]
    return _cut(frame, fields, with_time, cut)


def _cut(frame: DataFrame, fields: Sequence[Field], with_time: Sequence[Field], cut: Cut | None) -> DataFrame:
    if cut is None:
        return frame
    time = next(field for field in with_time if field.id == cut.field.id)
    return frame.where(_within(cut.span, time)).select([_column(field) for field in fields])


def mixed_frame(
    spark: SparkSession, services: Services, held: HeldTables, mixed: Mixed, fields: Sequence[Field]
) -> DataFrame:
    """Return the later rows of parts that hold earlier ones too."""
    plan, since = mixed
    source = SnapshotSource(gateway_of(spark), services, Branch.MERGE, fields, {}, plan, held)  # type: ignore[arg-type]
    label = f"instar:/{plan.state.name}@{plan.state.seqno} ({len(plan.merge)} parts, after {since})"
    widened = widened_decimals(plan.state.history, fields)
    return later_frame(spark, label, fields, source, widened, since)


def _has_retractions(plan: SnapshotPlan) -> bool:
    return bool(plan.merge or plan.state.totals.retracted)


def _within(span: Span, time: Field) -> Column:
    condition = _column(time).isNotNull()
    if span.start is not None:
        condition &= _column(time) >= _literal(span.start, time)
    if span.end is not None:
        condition &= _column(time) < _literal(span.end, time)
    return condition


def _column(field: Field) -> Column:
    return F.col(format_path((field.name,)))


def _literal(micros: int, field: Field) -> Column:
    """Return a moment as a literal of the type of the column that is compared with it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    if field.type == Primitive("timestamp"):
        return F.timestamp_micros(F.lit(micros))
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f")
    # A date is the midnight that it begins with, so that it is compared with moments of the day too.
    return F.lit(text).cast("timestamp_ntz")
