"""Rows with their places: a frame over the parts of a plan that says where each row is.

Positions are put together by the tasks that find them, so that only bitmaps come back. Of parts for which
statistics prove a condition for every row, none is read: `proved_parts` asks with the condition as Spark
understands it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyroaring import BitMap

from instar.errors import InstarError
from instar.spark.native.filters import Filters
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.positions import readers_of
from instar.spark.native.relation import METADATA, parts_frame, plan_of, show, shown_frame
from instar.spark.native.scan_source import Branch, SnapshotSource
from instar.spark.native.stand_ins import install_rule
from instar.spark.planner.table import is_planned, planned_frame
from instar.table.read.audit import Skipping
from instar.table.read.filter import Filter
from instar.table.read.locate import certain_parts
from instar.table.read.pruning import Condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from instar.state import Place
    from instar.table import Services
    from instar.table.log.part_set import Mask
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["PART", "ROW", "located_frame", "positions_of", "proved_parts"]

PART: Final = "\N{UNIT SEPARATOR}part"
"""The number of the part that a row is in, among those that a plan scans: no column has such a name."""
ROW: Final = "\N{UNIT SEPARATOR}row"
"""Its position there."""
_ZONE: Final = "spark.sql.session.timeZone"


def located_frame(spark: SparkSession, services: Services, plan: SnapshotPlan, pin: Pin) -> DataFrame:
    """Return the rows of the parts that a plan scans, under the reader's names, with `PART` and `ROW`."""
    gateway, fields, history = gateway_of(spark), plan.reader.schema.fields, plan.state.history
    widened = widened_decimals(history, (*fields, *history.latest.fields))
    places = (PART, ROW)

    def over_files(*others: str) -> DataFrame:
        source = SnapshotSource(gateway, services, Branch.LOCATED, fields, {}, plan, pin)
        return shown_frame(
            spark,
            _label(plan),
            fields,
            source,
            *others,
            widened=widened,
            partitions=source.partitions,
            leave_out=source.leave_out,
            places=places,
        )

    source = SnapshotSource(gateway, services, Branch.PLANNED, fields, {}, plan, pin)
    if not is_planned(spark, source):
        return over_files()
    install_rule(gateway)
    return planned_frame(
        spark, source, fields, widened, _label(plan), lambda: plan_of(over_files(METADATA)), places
    )


def proved_parts(spark: SparkSession, services: Services, plan: SnapshotPlan, pin: Pin, where: str) -> Mask:
    """Tell for which parts that a plan scans a condition is proved to be true for every row."""
    gateway = gateway_of(spark)
    fields = plan.reader.schema.fields
    source = SnapshotSource(gateway, services, Branch.SCAN, fields, {}, plan, pin)
    nothing = np.zeros(len(plan.scan), dtype=bool)
    if source.policy(plan).mode is not Skipping.ON or not _may_be_proved(services, plan, where):
        return nothing
    frame = show(parts_frame(spark, _label(plan), fields, source), fields).where(where)
    conditions = _conditions(frame._jdf.queryExecution().optimizedPlan())  # noqa: SLF001 -- nothing public
    if conditions is None:
        return nothing
    zone = spark.conf.get(_ZONE) or ""
    texts = [own.toJSON() for own in conditions]
    read = Filters.told(gateway, gateway.seq(conditions), texts, zone).read(fields)
    return certain_parts(services.chunks, plan.state, Condition(read))[plan.scan.mask]


def _may_be_proved(services: Services, plan: SnapshotPlan, where: str) -> bool:
    """Whether it is worth asking what Spark understands: it takes longer than to look at the text."""
    try:
        condition = Filter.parse(where, plan.state.history.latest, services.clock()).condition
    except InstarError:
        return False
    return bool(certain_parts(services.chunks, plan.state, condition)[plan.scan.mask].any())


def _conditions(plan: Any) -> list[Any] | None:  # noqa: ANN401 -- a plan and expressions of Spark's
    """Return the conditions between the top of a plan and its files, if nothing else is there."""
    found = []
    name = plan.getClass().getSimpleName()
    while name in ("Project", "Filter"):
        if name == "Filter":
            found.append(plan.condition())
        plan = plan.child()
        name = plan.getClass().getSimpleName()
    return found if name == "LogicalRelation" else None


def _label(plan: SnapshotPlan) -> str:
    return f"instar:/{plan.state.name}@{plan.state.seqno} ({len(plan.scan)} parts)"


def positions_of(frame: DataFrame, plan: SnapshotPlan) -> dict[Place, BitMap]:
    """Return where the rows of a frame are that came from `located_frame`."""
    places = frame.selectExpr(f"int(`{PART}`) AS `{PART}`", f"bigint(`{ROW}`) AS `{ROW}`")
    readers = readers_of(gateway_of(frame.sparkSession))
    rows = places._jdf  # noqa: SLF001 -- PySpark has no public way to it
    found = _bitmaps(places.toArrow()) if readers is None else _decode(readers.less.located(rows))
    return {plan.scan.place(part): positions for part, positions in found}


def _decode(data: bytes) -> Iterator[tuple[int, BitMap]]:
    """Yield numbers of parts and positions, as tasks have put them together."""
    at = 0
    while at < len(data):
        part, length = struct.unpack_from(">ii", data, at)
        at += 8
        yield part, BitMap.deserialize(bytes(data[at : at + length]))
        at += length


def _bitmaps(places: pa.Table) -> Iterator[tuple[int, BitMap]]:
    """Yield the same of rows one by one."""
    grouped = places.group_by(PART).aggregate([(ROW, "list")])
    for part, rows in zip(grouped.column(PART), grouped.column(f"{ROW}_list"), strict=True):
        yield part.as_py(), BitMap(rows.values.to_numpy().astype("uint32"))
