"""What a table says of its files, compared with their bytes: the order of runs, and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.parts import column_stats
from instar.parts.layout import flatten_leaves
from instar.parts.sort import arrange_rows
from instar.schema import Schema
from instar.state.manifest import stats_fields
from instar.table import load_parts
from instar.table.read.order import arrange_parts
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from instar.api.table import Table

__all__ = ["check_order", "check_runs", "check_statistics", "sorted_by"]


def sorted_by(rows: list[pa.Table], schema: Schema, order_by: tuple[int, ...]) -> bool:
    """Whether rows, one table after the other, are in order down to their times."""
    together = pa.concat_tables(rows).combine_chunks()
    order = arrange_rows(together, schema, order_by).order
    return bool(np.array_equal(order, np.arange(together.num_rows)))


def check_runs(table: Table) -> None:
    """Check that runs are sorted which say so, under the schema that they were written with."""
    state = table.state
    live = load_parts(table._services.chunks, state)
    runs: dict[tuple[int, int, int], list[pa.Table]] = {}
    for place, written in zip(live.columns["places"].to_pylist(), live.written(state.history), strict=True):
        if place["ordered"]:
            key = place["batch"], place["run"], state.history.schemas.index(written.schema)
            rows = read_written(table._services.blob, written, written.schema, updates=True)
            runs.setdefault(key, []).append(pa.Table.from_batches(rows))
    for (_, _, schema_id), run in runs.items():
        assert sorted_by(run, state.history.schemas[schema_id], state.order_by)


def check_order(table: Table) -> None:
    """Check that the whole table can be read in the order of its first columns if it says so."""
    state = table.state
    latest = state.history.latest
    leading = [field for it in state.order_by for field in latest.fields if field.id == it]
    live = list(load_parts(table._services.chunks, state).written(state.history))
    for count in range(1, len(leading) + 1):
        chosen = leading[:count]
        parts = arrange_parts(table._services.chunks, state, chosen)
        if parts:
            own = Schema(tuple(field for field in latest.fields if field in chosen))
            rows = [pa.Table.from_batches(read_written(table._services.blob, live[at], own)) for at in parts]
            assert sorted_by(rows, own, tuple(field.id for field in chosen))


def check_statistics(table: Table) -> None:
    """Check that counts are right, and that every value is within its bounds."""
    state = table.state
    latest = state.history.latest
    fields = list(stats_fields(latest))
    known = load_parts(table._services.chunks, state, fields)
    for at, written in enumerate(known.written(state.history)):
        whole = written._replace(taken=None)
        rows = pa.Table.from_batches(read_written(table._services.blob, whole, latest))
        columns = {leaf.id: column for leaf, column in flatten_leaves(rows, latest)}
        for field in fields:
            nulls, nans, low, high = (column[at] for column in known.bounds[field.id].columns)
            found = column_stats(columns[field.id])
            assert nulls.as_py() in {None, found.nulls}, field
            assert nans.as_py() in {None, found.nans}, field
            values = columns[field.id].drop_null()
            if pa.types.is_floating(values.type):
                values = values.filter(pc.invert(pc.is_nan(values)))
            for bound, compare in ((low, pc.greater_equal), (high, pc.less_equal)):
                if bound.is_valid and len(values):
                    assert pc.all(compare(values, bound)).as_py(), field
            if len(values) and not (low.is_valid and high.is_valid):
                assert not low.is_valid
                assert not high.is_valid
