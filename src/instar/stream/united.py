"""Many tables of a stream as one state: a range of them is planned, filtered and reported as one table is.

Only metadata is put together. Fields have the same ids in all tables, and a table's schemas are the stream's,
so parts keep their statistics; only the places of batches and the ids of schemas get new numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from instar.schema import History
from instar.state import Batch, Start, TableState
from instar.state.table_state import Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from instar.schema import Schema
    from instar.state import Part
    from instar.stream.catalog import Catalog
    from instar.stream.reading import HeldTable

__all__ = ["unite"]


def unite(
    catalog: Catalog, tables: Iterable[HeldTable], after: Mapping[str, int] | None = None
) -> tuple[TableState, list[HeldTable]]:
    """Return one state with the parts of many tables, and the tables that have to be planned alone.

    Those have rollups, retractions or options of their own. `after` gives, by the id of a table, a time up to
    which rows are left out.
    """
    schemas = {schema: schema_id for schema_id, schema in enumerate(catalog.history.schemas)}
    batches: list[Batch] = []
    reached: set[int] = set()
    alone: list[HeldTable] = []
    for table in tables:
        since = None if after is None else after.get(table.state.table_id)
        own = _plain_batches(table, schemas, since)
        if own is None:
            alone.append(table)
        else:
            batches += own
            reached.add(schemas[table.state.history.latest])
    numbered = tuple(
        Batch(replace(batch.header, seqno=seqno), batch.parts) for seqno, batch in enumerate(batches)
    )
    parts = [part for batch in numbered for part in batch.parts]
    return TableState(
        catalog.name,
        catalog.stream_id,
        len(numbered),
        Start(0, rollup=False),
        _history_up_to(catalog, max(reached, default=0)),
        (catalog.time,),
        upper=max((batch.header.upper for batch in numbered), default=0),
        tail=numbered,
        totals=Totals(len(parts), sum(part.rows for part in parts), sum(part.size for part in parts)),
    ), alone


def _history_up_to(catalog: Catalog, schema_id: int) -> History:
    """Return the stream's history as far as some table has followed it: only that can fence a reader."""
    if schema_id == catalog.schema_id:
        return catalog.history
    return History.fold(catalog.history.schemas[: schema_id + 1])


def _plain_batches(
    table: HeldTable, schemas: Mapping[Schema, int], since: int | None
) -> Sequence[Batch] | None:
    """Return the batches of a table under the stream's ids of schemas, or None if it is not that simple."""
    state = table.state
    if state.chunks or state.removals or state.totals.retracted or state.options:
        return None
    ids = [schemas.get(schema) for schema in state.history.schemas]
    return _renumbered(state, ids, since, table.as_of)


def _renumbered(
    state: TableState, ids: Sequence[int | None], since: int | None, as_of: int | None
) -> list[Batch] | None:
    found = []
    for batch in state.tail:
        schema_id = ids[batch.header.schema_id]
        time = batch.header.upper - 1
        if schema_id is None or batch.chunks or not all(map(_is_plain, batch.parts)):
            return None
        if (since is None or time > since) and (as_of is None or time <= as_of):
            found.append(Batch(replace(batch.header, schema_id=schema_id), batch.parts))
    return found


def _is_plain(part: Part) -> bool:
    """Whether all rows of a part were added at the time of its batch."""
    return (part.ts_min, part.diff_min, part.diff_max) == (None, 1, 1)
