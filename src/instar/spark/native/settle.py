"""Settling on Spark: where much has to be searched for rows that were retracted by value, executors do it."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.schema.paths import quote_name
from instar.spark.native.located import located_frame, positions_of
from instar.table.read.locate_keys import key_schema
from instar.table.read.settle import settle
from instar.table.read.snapshot import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyroaring import BitMap
    from pyspark.sql import SparkSession

    from instar.state import Place
    from instar.table import Services
    from instar.table.log.pin import Pin
    from instar.table.read.snapshot import SnapshotPlan

__all__ = ["may_settle_here", "settle_on_spark"]

_HERE: Final = 20_000_000
"""How many rows are searched in this process: a job of Spark takes longer to begin."""
_RETRACTING: Final = 2_000_000
"""How many rows parts that retract may have: they are held in memory."""


def may_settle_here(plan: SnapshotPlan) -> bool:
    """Whether the rows of a plan that have to be looked at are few."""
    return (pc.sum(plan.merge.rows).as_py() or 0) <= _HERE and _retracting(plan) <= _RETRACTING


def settle_on_spark(spark: SparkSession, services: Services, plan: SnapshotPlan, pin: Pin) -> SnapshotPlan:
    """Return a plan of the same rows that has nothing to add up, if that is worth finding out."""
    if not plan.merge or _retracting(plan) > _RETRACTING:
        return plan
    if may_settle_here(plan):
        return settle(services, plan)

    def find(searched: SnapshotPlan, wanted: pa.Table, key: Sequence[int]) -> Mapping[Place, BitMap]:
        schema = key_schema(plan.state.history.latest, key)
        reader = Reader(schema, plan.state.history.latest, plan.state.history.latest_id)
        searched = searched._replace(reader=reader)
        rows = located_frame(spark, services, searched, pin)
        names = [f"wanted_{at}" for at in range(wanted.num_columns)]
        values = spark.createDataFrame(wanted.rename_columns(names)).distinct()
        same = [
            F.col(quote_name(field.name)).eqNullSafe(F.col(name))
            for field, name in zip(schema.fields, names, strict=True)
        ]
        return positions_of(rows.join(F.broadcast(values), reduce(and_, same), "left_semi"), searched)

    return settle(services, plan, find=find)


def _retracting(plan: SnapshotPlan) -> int:
    """Return how many rows there are in parts that retract."""
    parts = plan.merge.keep(~plan.merge.times.plain)
    return pc.sum(parts.rows).as_py() or 0
