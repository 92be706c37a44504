"""Counting rows: from metadata, as far as that decides, and otherwise from as few parts as may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from instar.schema import Schema
from instar.table.read.locate import certain_in
from instar.table.read.reading import read_snapshot
from instar.table.read.rows import filter_plan

if TYPE_CHECKING:
    from instar.table.read.audit import Policy
    from instar.table.read.filter import Filter
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["count_matching", "count_rows"]


def count_rows(services: Services, plan: SnapshotPlan) -> int:
    """Count all rows; only parts with rows that were retracted by value are opened."""
    nothing = plan.scan.keep(np.zeros(len(plan.scan), dtype=bool))
    added: int = sum(batch.num_rows for batch in read_snapshot(services, plan._replace(scan=nothing)))
    return plan.scan.row_count + added


def count_matching(services: Services, plan: SnapshotPlan, condition: Filter, policy: Policy) -> int:
    """Count the rows for which a condition is true.

    If statistics prove it for no row of a part, or for every row, the part is not opened. Of the others only
    the columns of the condition are read.
    """
    whole = plan.reader.whole
    fields = tuple(field for field in whole.fields if field.id in condition.columns) or whole.fields[:1]
    narrow = plan._replace(reader=plan.reader._replace(schema=Schema(fields)))
    chosen = filter_plan(services, narrow, condition, policy)
    certain = certain_in(services, chosen, condition, policy)
    left = chosen._replace(scan=chosen.scan.keep(~certain))
    found: int = chosen.scan.keep(certain).row_count
    for batch in read_snapshot(services, left, condition):
        found += pc.sum(condition.rows(batch, left.reader.schema)).as_py() or 0
    return found
