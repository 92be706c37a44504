"""Merges: data meets the rows of a table by some columns, and clauses say what becomes of either.

Conditions and values are expressions in Spark SQL over `target` and `source`, the row of the table and that
of the data. For each row, the first clause whose condition is true applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from instar.errors import ConflictError, UsageError
from instar.parts import conform, key_stats, open_stream, rank_rows
from instar.parts.incoming import check_names
from instar.parts.read import ROW
from instar.schema import Field, Schema, Struct, arrow_schema, format_path
from instar.schema.paths import quote_name
from instar.schema.schema import number_fields
from instar.skipping import fields_needed
from instar.table.read.filter import Filter
from instar.table.read.locate import merged_rows, narrow_reader
from instar.table.read.locate_keys import find_keys, key_schema
from instar.table.read.located import read_located
from instar.table.read.rows import read_written
from instar.table.read.snapshot import KeyBounds, plan_keys, plan_snapshot, resolve_reader
from instar.table.read.values import Value
from instar.table.write.evolving import check_former
from instar.table.write.retract import negated
from instar.table.write.rows import RowChange, change_rows, parts_since
from instar.table.write.source import as_source
from instar.table.write.store import LocalRows
from instar.table.write.update import check_settings, set_columns, with_counts
from instar.table.write.upsert import check_keys_since, with_diff

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    import numpy.typing as npt

    from instar.parts import ArrowData
    from instar.schema import History
    from instar.state import Place, TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.log.pin import Pin
    from instar.table.log.table_log import Committed, TableLog
    from instar.table.read.located import LocatedRows
    from instar.table.read.snapshot import SnapshotPlan
    from instar.table.services import Services

__all__ = [
    "Clause",
    "When",
    "ambiguous_match",
    "check_clauses",
    "check_given",
    "check_names_of",
    "check_nothing_added",
    "default_values",
    "merge_local",
    "pair_schema",
]

TARGET, SOURCE = "target", "source"


class When(Enum):
    """Which rows a clause is for, and what it does with them."""

    MATCHED_UPDATE = "matched update"
    MATCHED_DELETE = "matched delete"
    NOT_MATCHED_INSERT = "not matched insert"
    NOT_MATCHED_BY_SOURCE_DELETE = "not matched by source delete"


@dataclass(frozen=True)
class Clause:
    """What to do with rows if a condition is true; without one, with all rows that no earlier clause took.

    `values` are expressions by column. Without them, every column takes the source's value of its name.
    """

    when: When
    condition: str | None = None
    values: Mapping[str, str] | None = None


def merge_local(
    services: Services, log: TableLog, data: ArrowData, on: Sequence[str], clauses: Sequence[Clause]
) -> Committed:
    """Merge data of this process."""
    latest = log.load_known().history.latest
    given = open_stream(data, latest).read_all().combine_chunks()  # perhaps it can be read only once

    def merging(pin: Pin) -> RowChange:
        return _Merging(services, pin.state, given, on, clauses).change()

    return change_rows(services, log, "merge into", merging)


def check_clauses(schema: Schema, on: Sequence[str], clauses: Sequence[Clause]) -> None:
    """Raise unless clauses can be meant for a table."""
    if isinstance(on, str) or not on:
        raise UsageError(f"on={on!r}: name the columns by which rows are the same, as in on=['id']")
    for name in on:
        if schema.load_column(name) not in schema.fields:
            raise UsageError(f"on={name!r}: rows cannot be merged by a member of a struct")
    if not clauses:
        raise UsageError("a merge without clauses does nothing: add when_matched_update(), or another")
    for clause in clauses:
        if clause.values is not None:
            check_settings(schema, clause.values)


def check_given(key: Schema, names: Container[str]) -> None:
    """Raise unless data has all columns by which it is merged; names are in lower case."""
    for field in key.fields:
        if field.name.lower() not in names:
            raise UsageError(
                f"the data has no column `{field.name}`, which `on` names: add it to the data, or merge on "
                "other columns"
            )


def check_names_of(history: History, names: Sequence[str], clauses: Sequence[Clause]) -> None:
    """Raise if a clause takes values by name, and data has some under a name of before: they would be lost.

    Other columns that the table does not have are for conditions.
    """
    by_name = {When.MATCHED_UPDATE, When.NOT_MATCHED_INSERT}
    if any(clause.values is None and clause.when in by_name for clause in clauses):
        remedy = "Rename the columns of the data as in the table, or set columns in the clause"
        check_former(history, names, remedy)


def default_values(schema: Schema, names: Sequence[str]) -> dict[str, str]:
    """Return what every column is set to by name; columns that the data lacks are left out."""
    known = {name.lower(): name for name in names}
    return {
        format_path((field.name,)): f"{SOURCE}.{quote_name(known[field.name.lower()])}"
        for field in schema.fields
        if field.name.lower() in known
    }


def ambiguous_match() -> UsageError:
    """Return the error for a row that several rows of the data would change."""
    return UsageError(
        "more than one row of the data has the same key as a row of the table: which one counts? Nothing was "
        "done; leave one row of each key in the data, or add conditions to the clauses"
    )


def pair_schema(latest: Schema, source: Schema) -> Schema:
    """Return the schema that expressions see: a struct of each row. The target's fields keep their ids."""
    ids = count(max(latest.field_ids()) + 1)
    target = Field(next(ids), TARGET, Struct(latest.fields), nullable=False)
    return Schema(
        (target, Field(next(ids), SOURCE, Struct(number_fields(source.fields, ids)), nullable=False))
    )


class _Merging:
    """One attempt to merge into one state."""

    def __init__(
        self,
        services: Services,
        state: TableState,
        given: pa.Table,
        on: Sequence[str],
        clauses: Sequence[Clause],
    ) -> None:
        self._services = services
        self._state = state
        self._latest = state.history.latest
        check_clauses(self._latest, on, clauses)
        self._clauses = clauses
        self._now = services.clock()
        self._key = [self._latest.load_column(name).id for name in on]
        check_given(key_schema(self._latest, self._key), {name.lower() for name in given.column_names})
        check_names(list(given.schema), ())
        check_names_of(state.history, given.column_names, clauses)
        self._given, source = as_source(given, self._latest)
        self._pair = pair_schema(self._latest, source)
        self._keys = self._given_keys()

    def change(self) -> RowChange:
        """Work out what is retracted and what is added."""
        by_source = [it for it in self._clauses if it.when is When.NOT_MATCHED_BY_SOURCE_DELETE]
        stats = key_stats(self._keys, key_schema(self._latest, self._key), self._key)
        keys = KeyBounds(stats, self._keys.num_rows)
        whole = plan_snapshot(
            self._services.chunks, self._state, resolve_reader(self._state, None, None), None
        )
        plan = plan_keys(self._services.chunks, whole, keys)
        found = find_keys(self._services, plan, self._keys, self._key)
        here = read_located(self._services, self._state, found.positions, found.by_value)
        ours, theirs = self._matches(here)
        gone, added = self._matched(here, ours, theirs)
        absent = np.ones(self._given.num_rows, np.bool_)
        absent[theirs] = False
        added += self._inserted(absent)
        positions, values = gone.positions(), [gone.by_value()]
        if by_source:
            more, rows = self._unmatched(whole, found.positions, found.by_value, by_source)
            for place, own in more.items():
                positions[place] = positions.get(place, BitMap()) | own
            values += rows
        values = [rows for rows in values if rows.num_rows]
        pieces = [*added, *(negated(rows) for rows in values)]
        changed = LocalRows(pa.concat_tables(pieces)) if pieces else None
        chunks = self._services.chunks
        check = partial(check_keys_since, chunks, self._state, keys)
        if by_source:
            check = partial(check_nothing_added, chunks, self._state)
        return RowChange(changed, positions, bool(values), check)

    def _given_keys(self) -> pa.Table:
        """Return the keys of the data, in the types of the table."""
        schema = key_schema(self._latest, self._key)
        names = {name.lower(): name for name in self._given.column_names}
        own = self._given.select([names[field.name.lower()] for field in schema.fields])
        return pa.Table.from_batches(conform(own, schema), schema=arrow_schema(schema)).combine_chunks()

    def _matches(self, here: LocatedRows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return all pairs of a row that was found and a row of the data with its key, as their numbers."""
        schema = key_schema(self._latest, self._key)
        own = here.rows.select([self._latest.fields.index(field) for field in schema.fields])
        ranks = rank_rows(pa.concat_tables([own, self._keys]), schema, self._key)
        mine, given = np.split(ranks, [own.num_rows])
        order = np.argsort(given, kind="stable")
        first, last = (np.searchsorted(given[order], mine, side) for side in ("left", "right"))
        counts = last - first
        ours = np.repeat(np.arange(len(mine)), counts)
        theirs = np.arange(len(ours)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        return ours, order[theirs]

    def _matched(
        self, here: LocatedRows, ours: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]
    ) -> tuple[LocatedRows, list[pa.Table]]:
        """Apply the clauses for rows that are in both; a row that is updated may match only one row."""
        rows = here.rows.take(pa.array(ours))
        pairs = self._pairs(rows, self._given.take(pa.array(theirs)))
        choice = self._choose(pairs, {When.MATCHED_UPDATE, When.MATCHED_DELETE})
        times = np.bincount(ours[choice >= 0], minlength=here.rows.num_rows)
        added: list[pa.Table] = []
        for number, clause in enumerate(self._clauses):
            chosen = choice == number
            if clause.when is When.MATCHED_UPDATE and chosen.any():
                if (times[ours[chosen]] > 1).any():
                    raise ambiguous_match()
                mask = pa.array(chosen)
                changed = set_columns(
                    rows.filter(mask), self._latest, self._settings(clause), pairs.filter(mask)
                )
                added.append(with_counts(changed, here.counts[ours[chosen]]))
        return here.keep(times > 0), added

    def _choose(
        self, pairs: pa.Table, sort: set[When], left: npt.NDArray[np.bool_] | None = None
    ) -> npt.NDArray[np.int64]:
        """Return for each pair the number of the first clause of a sort that is for it, or -1.

        A condition is evaluated only for pairs that no earlier clause applied to.
        """
        choice = np.full(pairs.num_rows, -1)
        remaining = np.arange(pairs.num_rows) if left is None else np.flatnonzero(left)
        for number, clause in enumerate(self._clauses):
            if clause.when in sort:
                holds = self._holds(clause, pairs.take(pa.array(remaining)))
                choice[remaining[holds]] = number
                remaining = remaining[~holds]
        return choice

    def _inserted(self, left: npt.NDArray[np.bool_]) -> list[pa.Table]:
        """Apply the clauses for rows of the data that the table lacks."""
        layout = arrow_schema(self._latest)
        absent = [pa.nulls(self._given.num_rows, field.type) for field in layout]
        nullable = pa.schema([field.with_nullable(True) for field in layout])  # noqa: FBT003 -- Arrow's own
        pairs = self._pairs(pa.Table.from_arrays(absent, schema=nullable), self._given)
        choice = self._choose(pairs, {When.NOT_MATCHED_INSERT}, left)
        added: list[pa.Table] = []
        for number, clause in enumerate(self._clauses):
            for batch in self._batch(pairs.filter(pa.array(choice == number))):
                settings = self._settings(clause).items()
                values = {self._latest.load_column(name).name: value.of(batch) for name, value in settings}
                rows = pa.Table.from_batches(conform(pa.table(values), self._latest), schema=layout)
                added.append(with_diff(rows, 1))
        return added

    def _unmatched(
        self,
        plan: SnapshotPlan,
        matched: Mapping[Place, BitMap],
        matched_values: pa.Table | None,
        clauses: Sequence[Clause],
    ) -> tuple[dict[Place, BitMap], list[pa.Table]]:
        """Find the rows of the table that the data lacks, and for which a clause is true."""
        target = Schema((self._pair.fields[0],))
        conditions = [Filter.parse(clause.condition or "true", target, self._now) for clause in clauses]
        needed = frozenset(
            field.id
            for field in self._latest.fields
            if not fields_needed_of(conditions).isdisjoint(Schema((field,)).field_ids())
        )
        reader = narrow_reader(self._state, needed).schema
        narrow = Schema((Field(target.fields[0].id, TARGET, Struct(reader.fields), nullable=False),))
        found: dict[Place, BitMap] = {}
        for at, written in enumerate(plan.scan.written(self._state.history)):
            place = plan.scan.place(at)
            taken = BitMap()
            partners = np.array(matched.get(place, BitMap()), np.int64)
            for batch in read_written(self._services.blob, written, reader, numbered=True):
                rows = batch.column(ROW).to_numpy()
                left = ~np.isin(rows, partners)
                own = _struct_batch(batch.select(range(len(reader.fields))))
                taken.update(rows[_any_true(conditions, own, narrow, left)].astype(np.uint32))
            if taken:
                found[place] = taken
        if not plan.merge:
            return found, []
        merged = merged_rows(self._services, self._state, plan.merge, plan.as_of)
        if not merged.num_rows:
            return found, []
        values = merged.select(range(len(self._latest.fields))).combine_chunks()
        left = np.ones(merged.num_rows, np.bool_)
        if matched_values is not None and matched_values.num_rows:
            both = pa.concat_tables([values, matched_values.select(values.schema.names)])
            mine, there = np.split(rank_rows(both, self._latest, self._key), [values.num_rows])
            left = ~np.isin(mine, there)
        (batch,) = values.to_batches()
        return found, [merged.filter(pa.array(_any_true(conditions, _struct_batch(batch), target, left)))]

    def _pairs(self, rows: pa.Table, given: pa.Table) -> pa.Table:
        """Put rows of the table and of the data side by side, as the expressions see them."""
        columns = [_as_struct(rows), _as_struct(given)]
        return pa.Table.from_arrays(columns, names=[TARGET, SOURCE])

    def _holds(self, clause: Clause, pairs: pa.Table) -> npt.NDArray[np.bool_]:
        """Tell for which pairs the condition of a clause is true."""
        if clause.condition is None or not pairs.num_rows:
            return np.ones(pairs.num_rows, np.bool_)
        condition = Filter.parse(clause.condition, self._pair, self._now)
        (batch,) = self._batch(pairs)
        mask: npt.NDArray[np.bool_] = condition.rows(batch, self._pair).to_numpy(zero_copy_only=False)
        return mask

    def _settings(self, clause: Clause) -> dict[str, Value]:
        """Return what a clause sets columns to: expressions, or data by name, which fits as in an append."""
        if clause.values is None:
            by_name = default_values(self._latest, self._given.column_names)
            return {name: Value.parse(text, self._pair, self._now) for name, text in by_name.items()}
        return {
            name: Value.parse(text, self._pair, self._now, self._latest.load_column(name).type)
            for name, text in clause.values.items()
        }

    @staticmethod
    def _batch(pairs: pa.Table) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = pairs.combine_chunks().to_batches()
        return batches


def fields_needed_of(conditions: Sequence[Filter]) -> frozenset[int]:
    """Return the ids of all fields that some conditions look at."""
    return frozenset().union(*(fields_needed(condition.expression) for condition in conditions))


def _any_true(
    conditions: Sequence[Filter], batch: pa.RecordBatch, schema: Schema, left: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Tell for which of some rows one of the conditions is true; each is asked of those that none was for."""
    found = np.zeros(batch.num_rows, np.bool_)
    remaining = np.flatnonzero(left)
    for condition in conditions:
        own = batch.take(pa.array(remaining))
        holds = condition.rows(own, schema).to_numpy(zero_copy_only=False)
        found[remaining[holds]] = True
        remaining = remaining[~holds]
    return found


def _as_struct(rows: pa.Table) -> pa.Array:
    columns = [column.combine_chunks() for column in rows.columns]
    return pa.StructArray.from_arrays(columns, fields=list(rows.schema))


def _struct_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    struct = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    return pa.RecordBatch.from_arrays([struct], names=[TARGET])


def check_nothing_added(chunks: ChunkReader, seen: TableState, current: TableState) -> None:
    """Raise if anything was added meanwhile: the data may not have it, and then it would have to go."""
    if parts_since(chunks, seen, current):
        raise ConflictError(f"others have added rows to `{current.name}` meanwhile")
