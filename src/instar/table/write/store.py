"""Storing rows as parts: the same code in process and on Spark's executors.

Only puts happen here, under keys that no other attempt uses. What was put becomes part of a table by
one commit, made by the process that began the write (`append.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from instar.parts import RowOrder, as_table, cluster_rows, conform, needed_types, open_stream, write_parts
from instar.parts.layout import locate
from instar.state import Part
from instar.table.layout import part_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from instar.parts import ArrowData, PartLimits
    from instar.schema import Schema
    from instar.state import TableState
    from instar.storage import Blob

__all__ = [
    "LocalRows",
    "Rows",
    "StoredPart",
    "StoringPlan",
    "plan_storing",
    "store_parts",
]


class StoringPlan(NamedTuple):
    """What a process must know to store parts; it is sent to executors."""

    blob: Blob
    table_id: str
    write_id: str
    schema: Schema
    order_by: tuple[int, ...]
    limits: PartLimits
    cluster_by: tuple[int, ...] = ()
    cluster_appends: bool = False
    """Whether rows are laid out along the curve before compaction does it."""

    @property
    def curve(self) -> tuple[int, ...]:
        """The fields that rows are laid out by, along a curve, as far as the schema has them."""
        return tuple(it for it in self.cluster_by if locate(self.schema.fields, it))


def plan_storing(
    blob: Blob, state: TableState, write_id: str, schema: Schema, limits: PartLimits
) -> StoringPlan:
    """Return what a process must know to store rows of a table under a schema."""
    appends = state.options.get("cluster_at") == "append"
    limits = limits._replace(bounded=state.bounded)
    return StoringPlan(
        blob, state.table_id, write_id, schema, state.order_by, limits, state.cluster_by, appends
    )


class StoredPart(msgspec.Struct, frozen=True, array_like=True):
    """A part that has been put, and the fields that have values in it."""

    part: Part
    present: tuple[int, ...]


class Rows(Protocol):
    """Rows to be written. Where they are decides who stores them."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns, as they were given."""

    @property
    def needs(self) -> pa.Schema:
        """The narrowest types that hold their values, as far as these are known."""

    def store(self, plan: StoringPlan, *, updates: bool) -> Iterable[StoredPart]:
        """Store them as parts; with `updates`, `_diff` and `_ts` tell what they do, and when."""


class LocalRows:
    """Rows of this process, in any form that speaks Arrow. They are stored once.

    `schema` is that of the table, which tells maps from structs where data are dicts.
    """

    def __init__(self, data: ArrowData, schema: Schema | None = None) -> None:
        self._table = as_table(data, schema)
        self._stream = open_stream(data if self._table is None else self._table)

    @property
    def schema(self) -> pa.Schema:
        """Their columns, as they were given."""
        return self._stream.schema

    @property
    def needs(self) -> pa.Schema:
        """The types that hold the values: libraries make whole numbers wider than they are."""
        return needed_types(self.schema, self._table)

    def store(self, plan: StoringPlan, *, updates: bool) -> Iterator[StoredPart]:
        """Store them as parts, one in memory at a time."""
        return store_parts(plan, conform(self._stream, plan.schema, updates=updates), "0")


def store_parts(plan: StoringPlan, batches: Iterable[pa.RecordBatch], task: str) -> Iterator[StoredPart]:
    """Store conformed batches as parts, one in memory at a time; `task` tells attempts apart."""
    order = RowOrder.SORT if plan.order_by else RowOrder.NONE  # sorting by nothing gains nothing
    if plan.cluster_appends and plan.curve:
        batches, order = cluster_rows(batches, plan.schema, plan.curve), RowOrder.NONE
    for new in write_parts(
        batches,
        plan.schema,
        plan.order_by,
        order=order,
        limits=plan.limits,
        key=lambda number: part_key(plan.table_id, plan.write_id, f"{task}-{number}"),
    ):
        plan.blob.put(new.part.key, memoryview(new.data).cast("B"))  # Arrow says that its bytes are signed
        yield StoredPart(new.part, tuple(sorted(new.present)))
