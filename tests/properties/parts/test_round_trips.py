"""Whatever is written to a part is what every schema that may read it sees."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from instar.parts import PartLimits, RowOrder, conform, needed_fields, read_part, write_parts
from instar.parts.layout import parquet_leaves
from instar.schema import Field, Primitive, Schema, parse_schema_ddl
from tests.properties.parts.rows import as_bag, orderable_ids, plain_rows, read_rows, with_updates
from tests.properties.schema.data import batch_of, batches, exact, migrated_row, random_rows
from tests.properties.schema.strategies import histories, projections, schemas, thorough

SEEDS = st.integers(0, 2**32 - 1)
TINY = PartLimits(file_bytes=1500, buffer_bytes=3000)


@thorough
@given(st.data())
def test_rows_come_back_as_every_reader_sees_them(data: st.DataObject) -> None:
    """Sliced batches of any type, written as they come and read under a later schema or some of it."""
    history = data.draw(histories(most=4))
    written, latest = history[0], history[-1]
    reader = latest if data.draw(st.booleans()) else data.draw(projections(latest))
    rows, batch = data.draw(batches(written, most=12))
    parts = list(write_parts([batch], written, order=RowOrder.NONE, limits=TINY))
    expected = [migrated_row(row, written.fields, reader.fields) for row in rows]
    assert exact(read_rows(parts, written, reader)) == exact(expected)
    assert sum(new.part.rows for new in parts) == len(rows)


@given(st.data())
def test_sorting_and_cutting_lose_nothing(data: st.DataObject) -> None:
    """However rows are sorted and cut into parts, each of them comes back once, with its time and diff."""
    schema = data.draw(schemas())
    random = Random(data.draw(SEEDS))
    rows = random_rows(random, schema, random.randint(1, 40))
    choices = data.draw(st.sampled_from(((7,), (7, 8, -1))))
    times = [random.choice(choices) for _ in rows]
    diffs = [random.choice(choices) for _ in rows]
    batch = with_updates(batch_of(rows, schema, random), times, diffs)
    cut = random.randint(0, len(rows))
    order_by = random.sample(ids := orderable_ids(schema.fields), min(2, len(ids)))
    parts = list(write_parts([batch.slice(0, cut), batch.slice(cut)], schema, order_by, limits=TINY))
    found: list[object] = []
    for new in parts:
        for read in read_part(new.data, new.part, schema, schema, updates=True):
            found += zip(
                plain_rows(read, schema), read["_ts"].to_pylist(), read["_diff"].to_pylist(), strict=True
            )
        stored = pq.read_schema(pa.BufferReader(new.data)).names
        assert ("_ts" in stored) == (new.part.ts_min != new.part.ts_max)
        assert ("_diff" in stored) == (new.part.diff_min != new.part.diff_max)
    assert as_bag(found) == as_bag(zip(rows, times, diffs, strict=True))


@given(st.data())
def test_only_what_is_needed_is_read(data: st.DataObject) -> None:
    """Of a column that the reader has not, nothing is read, unless there is nothing else."""
    history = data.draw(histories(most=3))
    written = history[0]
    reader = data.draw(projections(history[-1]))
    leaves = {leaf.path for leaf in parquet_leaves(written)}
    needed = {leaf.path for leaf in parquet_leaves(needed_fields(written, reader))}
    assert needed <= leaves
    wanted = {leaf.path for leaf in parquet_leaves(reader)}
    assert leaves & wanted <= needed
    shared = {field.id for field in written.fields} & {field.id for field in reader.fields}
    read = {int(path.partition(".")[0][1:]) for path in needed}
    assert read == shared if shared else len(read) == 1


@given(st.data())
def test_files_say_what_they_hold(data: st.DataObject) -> None:
    """A file has exactly the leaves of its schema, under their physical names, with their field ids."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema, most=3))
    for new in write_parts([batch], schema):
        file = pq.ParquetFile(pa.BufferReader(new.data))
        assert [file.schema.column(at).path for at in range(len(file.schema))] == [
            leaf.path for leaf in parquet_leaves(schema)
        ]
        for field in file.schema_arrow:
            assert field.name == "f" + (field.metadata or {})[b"PARQUET:field_id"].decode()
        assert file.metadata.num_rows == new.part.rows == len(rows)
        assert new.data.size == new.part.size


@given(st.data())
def test_data_that_fits_is_passed_on(data: st.DataObject) -> None:
    """Batches in the layout of the schema conform to it as they are."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema))
    found = [row for conformed in conform(batch, schema) for row in plain_rows(conformed, schema)]
    assert exact(found) == exact(rows)


def test_a_part_without_anything_for_the_reader_has_its_rows() -> None:
    """Columns added later are null in as many rows as the part has."""
    written, reader = parse_schema_ddl("a int, b string"), Schema((Field(9, "x", Primitive("int")),))
    rows = [{1: at, 2: "b"} for at in range(5)]
    [new] = write_parts([batch_of(rows, written, Random(0))], written)
    assert read_rows([new], written, reader) == [{9: None}] * 5
