"""Storing rows as parts: the same code in process and on Spark's executors.

Only puts happen here, under keys that no other attempt uses. What was put becomes part of a table by
one commit, made by whoever began the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from instar.errors import UsageError
from instar.parts import PartLimits, RowOrder, new_columns, write_parts
from instar.parts.layout import locate
from instar.schema import SchemaUpdate, format_path
from instar.schema.types import member_fields
from instar.state import Part
from instar.state.commands import check_schema_id
from instar.table.layout import part_key
from instar.table.write.append import begin_write

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from instar.schema import Field, Schema
    from instar.state import TableState
    from instar.storage import Blob
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services

__all__ = [
    "ATTEMPTS",
    "StoredPart",
    "StoringPlan",
    "WriterSchema",
    "key_paths",
    "repeated_key",
    "resolve_writer",
    "store_parts",
    "write_rows",
]

ATTEMPTS: Final = 5
"""How often a change that depends on what is there is worked out again before it is given up."""

MAX_OWN_TIME: Final = 2**62
"""The latest time that rows may have of their own; what is left above is for the writes after them."""

Store = Callable[["StoringPlan"], Iterable["StoredPart"]]
"""Stores rows as parts by a plan: in process, or on executors."""


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


def resolve_writer(
    state: TableState, incoming: pa.Schema, schema_id: int | None, *, evolve: bool
) -> WriterSchema:
    """Return the schema to write under; with `evolve`, one that has the new columns too."""
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


def write_rows(
    services: Services,
    log: TableLog,
    writer: WriterSchema,
    store: Store,
    *,
    token: str | None = None,
    expected_upper: int | None = None,
    discard: bool = False,
    limits: PartLimits | None = None,
) -> Committed:
    """Store rows as parts and commit them as one batch."""
    state = log.load()
    with begin_write(services, log) as write:
        plan = StoringPlan(
            services.blob,
            state.table_id,
            write.write_id,
            writer.schema,
            state.order_by,
            limits or PartLimits(),
        )
        stored = list(store(plan))
        parts = [replace(item.part, run=run) for run, item in enumerate(stored)]
        return write.append(
            parts,
            writer.schema_id,
            expected_upper=expected_upper,
            upper=_upper(state, parts),
            token=token,
            present=frozenset(field_id for item in stored for field_id in item.present),
            discard=discard,
            evolved=writer.schema if writer.is_new else None,
        )


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


def key_paths(state: TableState) -> list[tuple[str, ...]]:
    """Return the names that lead to each column of the key."""
    return [_names(state.history.latest.fields, field_id) for field_id in state.key]


def repeated_key(state: TableState) -> UsageError:
    """Return what to say of data to upsert in which two rows have one key."""
    keys = ", ".join(format_path(path) for path in key_paths(state))
    return UsageError(
        f"the data for `{state.name}` has the same key ({keys}) more than once: which row shall stay?"
    )


def _names(fields: tuple[Field, ...], field_id: int) -> tuple[str, ...]:
    names = []
    for at in locate(fields, field_id):
        names.append(fields[at].name)
        fields = tuple(member_fields(fields[at].type))
    return tuple(names)


def _upper(state: TableState, parts: list[Part]) -> int | None:
    """Return where a batch with times of its own ends; they must all be to come."""
    times = [(part.ts_min, part.ts_max) for part in parts if part.ts_min is not None]
    if not times:
        return None
    earliest = min(first for first, _ in times)
    if earliest < state.upper:
        raise UsageError(
            f"cannot write to `{state.name}` at time {earliest}: the table is complete up to {state.upper}"
        )
    latest = max(last for _, last in times if last is not None)
    if latest > MAX_OWN_TIME:
        raise UsageError(
            f"cannot write to `{state.name}` at time {latest}: times end at {MAX_OWN_TIME}, so that others "
            "can follow. Give times in milliseconds since 1970, or count from a smaller number"
        )
    return latest + 1
