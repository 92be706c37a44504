"""Updates without an engine: rows that a condition is true for are retracted, and added with other values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from instar.errors import UsageError
from instar.parts import DIFF, conform
from instar.schema import arrow_schema
from instar.table.read.filter import Filter
from instar.table.read.locate import find_rows
from instar.table.read.located import read_located
from instar.table.read.values import Value
from instar.table.write.retract import negated
from instar.table.write.rows import RowChange, change_rows
from instar.table.write.store import LocalRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from instar.schema import Schema
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.services import Services

__all__ = ["check_settings", "set_columns", "update_local", "with_counts"]


def update_local(
    services: Services, log: TableLog, values: Mapping[str, str], where: str | None
) -> Committed:
    """Give the rows for which a condition is true other values in some columns."""

    def updating(pin: Pin) -> RowChange:
        state = pin.state
        latest = state.history.latest
        check_settings(latest, values)
        now = services.clock()
        condition = Filter.parse("true" if where is None else where, latest, now)
        settings = {
            name: Value.parse(text, latest, now, latest.load_column(name).type)
            for name, text in values.items()
        }
        found = find_rows(services, state, condition)
        here = read_located(services, state, found.positions, found.by_value)
        if not here.rows.num_rows:
            return RowChange(None)
        changed = set_columns(here.rows, latest, settings, here.rows)
        gone = here.by_value()
        added = with_counts(changed, here.counts)
        rows = pa.concat_tables([added, negated(gone)]) if gone.num_rows else added
        return RowChange(LocalRows(rows), found.positions, by_value=bool(gone.num_rows))

    return change_rows(services, log, "update", updating)


def check_settings(schema: Schema, values: Mapping[str, str]) -> None:
    """Raise unless every name is a top-level column, named once, and every value a text."""
    if not values:
        raise UsageError("nothing is set: give at least one column and its expression")
    seen: set[int] = set()
    for name, text in values.items():
        field = schema.load_column(name)
        if field not in schema.fields:
            raise UsageError(f"cannot set `{name}`: set the whole column that it is a member of")
        if field.id in seen:
            raise UsageError(f"column `{name}` is set twice")
        seen.add(field.id)
        if not isinstance(text, str):
            raise UsageError(
                f"`{name}` is set to {text!r}, and an expression in Spark SQL is text: write {str(text)!r}"
            )


def set_columns(rows: pa.Table, schema: Schema, settings: Mapping[str, Value], seen: pa.Table) -> pa.Table:
    """Return rows with new values in some columns, computed by expressions."""
    named = {schema.load_column(name).id: value for name, value in settings.items()}
    (batch,) = seen.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=seen.schema)]
    columns, fields = [], []
    for at, field in enumerate(schema.fields):
        value = named.get(field.id)
        column = rows.column(at) if value is None else value.of(batch)
        columns.append(column)
        fields.append(rows.schema.field(at) if value is None else pa.field(field.name, column.type))
    changed = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return pa.Table.from_batches(conform(changed, schema), schema=arrow_schema(schema))


def with_counts(rows: pa.Table, counts: npt.NDArray[np.int64]) -> pa.Table:
    """Return rows with how often each is added."""
    return rows.append_column(pa.field(DIFF, pa.int64(), nullable=False), pa.array(counts))
