"""Finding the rows that have some keys, by part and position: only the columns of the key are read.

Only parts and row groups that may have one of the keys are read. Keys are equal as rows
are: null to null, NaN to NaN, and -0.0 to 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from instar.parts import Probe, rank_rows
from instar.parts.read import ROW
from instar.schema import Primitive, Schema
from instar.schema.algebra import walk_fields
from instar.state.chunk import ROWS
from instar.table.log.manifest import load_parts
from instar.table.read.locate import merged_rows
from instar.table.read.rows import read_written

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.state import Place
    from instar.table.log.manifest import ChunkReader
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = ["FoundKeys", "Keys", "find_keys", "key_schema", "narrow_plan"]

_BY_VALUE: Final = {"float", "double"}
"""Types for which Arrow calls some equal values different."""
_COMPARED: Final = 10_000
"""How many keys times parts are compared by first and last rows, which is done one by one."""


class FoundKeys(NamedTuple):
    """The rows of a plan that have one of some keys, and whether one of the given keys appears twice."""

    positions: Mapping[Place, BitMap]
    by_value: pa.Table | None
    """Rows without a position, with `_diff`, the number of copies."""
    repeated: bool


def key_schema(schema: Schema, key: Sequence[int]) -> Schema:
    """Return the top-level columns that a key is in."""
    return Schema(
        tuple(field for field in schema.fields if any(it.id in key for it in walk_fields((field,))))
    )


class Keys:
    """Keys to look for: rows with the columns of a schema; `key` has the ids of the fields."""

    def __init__(self, rows: pa.Table, schema: Schema, key: Sequence[int]) -> None:
        self._rows = rows.combine_chunks()
        self.schema = schema
        self._key = key
        self._sets = _value_sets(self._rows, schema, key)
        self.probe = Probe(self._rows, schema, key)

    @property
    def repeated(self) -> bool:
        """Whether one of them appears twice."""
        ranks = rank_rows(self._rows, self.schema, self._key)
        return len(np.unique(ranks)) < len(ranks)

    def matching(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the positions of the rows of a batch that have one of the keys, whose columns come first."""
        own = batch.select(range(len(self.schema.fields)))
        numbered = own.append_column(ROW, pa.array(np.arange(batch.num_rows)))
        for at, values in self._sets.items():
            numbered = numbered.filter(pc.is_in(numbered.column(at), value_set=values))
        if not numbered.num_rows or len(self._sets) == len(self._key) == 1:
            return numbered.column(ROW)
        rows = pa.Table.from_batches([numbered.drop_columns([ROW])])
        ranks = rank_rows(pa.concat_tables([rows, self._rows]), self.schema, self._key)
        here, given = np.split(ranks, [rows.num_rows])
        return numbered.column(ROW).filter(pa.array(np.isin(here, given)))

    def rows(self, batch: pa.RecordBatch, _schema: Schema) -> pa.Array:
        """Tell which rows of a batch have one of the keys."""
        found = np.zeros(batch.num_rows, dtype=bool)
        found[self.matching(batch).to_numpy()] = True
        return pa.array(found)


def narrow_plan(chunks: ChunkReader, plan: SnapshotPlan, probe: Probe) -> SnapshotPlan:
    """Leave out the parts that can have none of some keys.

    Also of those that are added up: all updates of a row are in parts that may have its key. Rows with other
    keys may not add up then.
    """
    state = plan.state
    known = load_parts(chunks, state, probe.fields, ())
    kept = probe.may_hold(known.bounds, known.rows)
    left = np.flatnonzero(kept)
    if len(probe.fields) > 1 and len(left) > 1 and len(left) * len(probe) <= _COMPARED:
        limits = load_parts(chunks, state, (), (ROWS,)).columns[ROWS].take(pa.array(left))
        pairs = zip(*(limits.column(name).to_pylist() for name in ("first_row", "last_row")), strict=True)
        kept[left] = probe.may_lie(list(pairs), state.order_by)
    return plan._replace(
        scan=plan.scan.keep(kept[plan.scan.mask]), merge=plan.merge.keep(kept[plan.merge.mask])
    )


def find_keys(services: Services, plan: SnapshotPlan, wanted: pa.Table, key: Sequence[int]) -> FoundKeys:
    """Find the rows of a plan that have one of the given keys, which are columns of `key_schema`."""
    state = plan.state
    latest = state.history.latest
    schema = key_schema(latest, key)
    keys = Keys(wanted, schema, key)
    plan = narrow_plan(services.chunks, plan, keys.probe)
    positions: dict[Place, BitMap] = {}
    for at, written in enumerate(plan.scan.written(state.history)):
        found = BitMap()
        for batch in read_written(services.blob, written, schema, numbered=True, probe=keys.probe):
            same = batch.column(ROW).take(keys.matching(batch))
            found.update(same.to_numpy().astype(np.uint32))
        if found:
            positions[plan.scan.place(at)] = found
    if not plan.merge:
        return FoundKeys(positions, None, keys.repeated)
    merged = merged_rows(services, state, plan.merge, plan.as_of).combine_chunks()
    (own,) = merged.select([latest.fields.index(field) for field in schema.fields]).to_batches() or [None]
    by_value = merged if own is None else merged.take(keys.matching(own))
    return FoundKeys(positions, by_value, keys.repeated)


def _value_sets(wanted: pa.Table, schema: Schema, key: Sequence[int]) -> dict[int, pa.Array]:
    """Return the values of those columns of a key that Arrow compares as rows are compared."""
    return {
        at: pc.unique(wanted.column(at))
        for at, field in enumerate(schema.fields)
        if field.id in key and isinstance(field.type, Primitive) and field.type.name not in _BY_VALUE
    }
