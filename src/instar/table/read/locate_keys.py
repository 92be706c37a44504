"""Finding the rows that have some keys, by part and position: only the columns of the key are read.

Keys are equal as rows are: null to null, NaN to NaN, and -0.0 to 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from instar.parts import rank_rows
from instar.parts.read import ROW
from instar.schema import Primitive, Schema
from instar.schema.types import walk_fields
from instar.table.read.locate import merged_rows
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.state import Place
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["FoundKeys", "find_keys", "key_schema"]

_BY_VALUE: Final = {"float", "double"}
"""Types of which Arrow tells values apart that are equal."""


class FoundKeys(NamedTuple):
    """The rows of a plan that have one of some keys, and whether one of the given keys is there twice."""

    positions: Mapping[Place, BitMap]
    by_value: pa.Table | None
    """Those that have no position of their own, with `_diff`: how often each is there."""
    repeated: bool


def key_schema(schema: Schema, key: Sequence[int]) -> Schema:
    """Return the top-level columns that a key is in."""
    return Schema(
        tuple(field for field in schema.fields if any(it.id in key for it in walk_fields((field,))))
    )


def find_keys(services: Services, plan: SnapshotPlan, wanted: pa.Table, key: Sequence[int]) -> FoundKeys:
    """Find the rows of a plan that have one of the given keys, which are columns of `key_schema`."""
    state = plan.state
    latest = state.history.latest
    schema = key_schema(latest, key)
    wanted = wanted.combine_chunks()
    sets = _value_sets(wanted, schema, key)
    positions: dict[Place, BitMap] = {}
    for at, written in enumerate(plan.scan.written(state.history)):
        found = BitMap()
        for batch in read_written(services.blob, written, schema, numbered=True):
            candidates = _candidates(batch, sets)
            if candidates.num_rows:
                same = _same_keys(candidates, wanted, schema, key)
                found.update(candidates.column(ROW).to_numpy()[same].astype(np.uint32))
        if found:
            positions[plan.scan.place(at)] = found
    ranks = rank_rows(wanted, schema, key)
    repeated = len(np.unique(ranks)) < len(ranks)
    if not plan.merge:
        return FoundKeys(positions, None, repeated)
    merged = merged_rows(services, state, plan.merge, plan.as_of)
    own = merged.select([latest.fields.index(field) for field in schema.fields])
    return FoundKeys(positions, merged.filter(pa.array(_same_keys(own, wanted, schema, key))), repeated)


def _value_sets(wanted: pa.Table, schema: Schema, key: Sequence[int]) -> dict[int, pa.Array]:
    """Return the values of those columns of a key that Arrow compares as rows are compared."""
    return {
        at: pc.unique(wanted.column(at))
        for at, field in enumerate(schema.fields)
        if field.id in key
        and isinstance(field.type, Primitive)
        and field.type.name not in {"float", "double"}
    }


def _candidates(batch: pa.RecordBatch, sets: Mapping[int, pa.Array]) -> pa.RecordBatch:
    """Return the rows that have in each column of the key a value that is asked for."""
    for at, values in sets.items():
        batch = batch.filter(pc.is_in(batch.column(at), value_set=values))
    return batch


def _same_keys(
    here: pa.RecordBatch | pa.Table, wanted: pa.Table, schema: Schema, key: Sequence[int]
) -> np.ndarray:
    """Tell which rows have a key that is asked for."""
    width = range(len(schema.fields))
    table = (
        pa.table(here.select(width))
        if isinstance(here, pa.Table)
        else pa.Table.from_batches([here.select(width)])
    )
    ranks = rank_rows(pa.concat_tables([table, wanted]), schema, key)
    own, given = np.split(ranks, [table.num_rows])
    return np.isin(own, given)
