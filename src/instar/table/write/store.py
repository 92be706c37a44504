"""Storing rows as parts: the same code in process and on Spark's executors.

Only puts happen here, under keys that no other attempt uses. What was put becomes part of a table by
one commit, made by whoever began the write (`append.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from instar.parts import Conformer, RowOrder, conform, new_columns, open_stream, write_parts
from instar.schema import SchemaUpdate
from instar.state import Part
from instar.state.commands import check_schema_id
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
    "WriterSchema",
    "resolve_writer",
    "store_parts",
]


class StoringPlan(NamedTuple):
    """What whoever stores parts must know; it travels to executors."""

    blob: Blob
    table_id: str
    write_id: str
    schema: Schema
    order_by: tuple[int, ...]
    limits: PartLimits


class StoredPart(msgspec.Struct, frozen=True, array_like=True):
    """A part that has been put, and the fields that have values in it."""

    part: Part
    present: tuple[int, ...]


class WriterSchema(NamedTuple):
    """What rows are written under: a schema and its id, and whether the table has yet to evolve to it."""

    schema: Schema
    schema_id: int
    is_new: bool = False


class Rows(Protocol):
    """Rows to be written. Where they are decides who stores them."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns, as they were given."""

    def store(self, plan: StoringPlan, *, updates: bool) -> Iterable[StoredPart]:
        """Store them as parts; with `updates`, `_diff` and `_ts` tell what they do, and when."""


class LocalRows:
    """Rows of this process, in any form that speaks Arrow. They are stored once."""

    def __init__(self, data: ArrowData) -> None:
        self._stream = open_stream(data)

    @property
    def schema(self) -> pa.Schema:
        """Their columns, as they were given."""
        return self._stream.schema

    def store(self, plan: StoringPlan, *, updates: bool) -> Iterator[StoredPart]:
        """Store them as parts, one in memory at a time."""
        return store_parts(plan, conform(self._stream, plan.schema, updates=updates), "0")


def resolve_writer(
    state: TableState,
    incoming: pa.Schema,
    schema_id: int | None = None,
    *,
    evolve: bool = False,
    updates: bool = False,
) -> WriterSchema:
    """Return the schema to write under; with `evolve`, one that has the new columns too.

    What the types alone can tell is checked: everything else only as rows are stored.
    """
    writer = _choose_schema(state, incoming, schema_id, evolve=evolve)
    Conformer(incoming, writer.schema, updates=updates)
    return writer


def _choose_schema(
    state: TableState, incoming: pa.Schema, schema_id: int | None, *, evolve: bool
) -> WriterSchema:
    history = state.history
    chosen = history.latest_id if schema_id is None else schema_id
    check_schema_id(state, chosen)
    if evolve and chosen == history.latest_id:
        update = SchemaUpdate(history)
        added = new_columns(incoming, history.latest)
        for column in added:
            update.add_column(column.path, column.type)
        if added:
            return WriterSchema(update.schema, chosen + 1, is_new=True)
    return WriterSchema(history.schemas[chosen], chosen)


def store_parts(plan: StoringPlan, batches: Iterable[pa.RecordBatch], task: str) -> Iterator[StoredPart]:
    """Store conformed batches as parts, one in memory at a time; `task` tells attempts apart."""
    order = RowOrder.SORT if plan.order_by else RowOrder.NONE  # sorting by nothing gains nothing
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
