"""The laws of migration on random histories and awkward data, against migration by hand."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import IncompatibleSchemaError
from instar.schema import (
    ChangeKind,
    History,
    Migration,
    Names,
    Schema,
    Struct,
    arrow_schema,
    check_reader,
    migrate,
)
from tests.properties.schema.data import batches, exact, migrated_row, rows_of, values_of
from tests.properties.schema.strategies import histories, mutations, readers, schemas, thorough

if TYPE_CHECKING:
    from tests.properties.schema.data import Row


def assert_rows(batch: pa.RecordBatch, schema: Schema, rows: list[Row]) -> None:
    """Check that a batch is valid Arrow data of a schema and holds exactly these rows."""
    batch.validate(full=True)
    assert batch.schema.equals(arrow_schema(schema), check_metadata=True)
    for column, field in zip(batch.columns, schema.fields, strict=True):
        assert column.type == arrow_schema(schema).field(field.name).type
    assert exact(rows_of(batch, schema)) == exact(rows)


def by_hand(rows: list[Row], old: Schema, new: Schema) -> list[Row]:
    """Migrate plain rows."""
    return [migrated_row(row, old.fields, new.fields) for row in rows]


def addresses(array: pa.Array) -> list[object]:
    """Tell where an array's memory is and which part of it is used."""
    return [array.offset, len(array), *(buffer.address if buffer else None for buffer in array.buffers())]


def table_rows(table: pa.Table, schema: Schema) -> list[Row]:
    """Read a table back; columns may be cut into chunks in different places."""
    table.validate(full=True)
    columns = [
        [value for chunk in column.chunks for value in values_of(chunk, field.type)]
        for column, field in zip(table.columns, schema.fields, strict=True)
    ]
    ids = [field.id for field in schema.fields]
    return [dict(zip(ids, values, strict=True)) for values in zip(*columns, strict=True)]


@given(st.data())
def test_generated_batches_hold_the_generated_rows(data: st.DataObject) -> None:
    """The data of these tests is valid, and is what its rows say: otherwise they would prove nothing."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema))
    assert_rows(batch, schema, rows)


@thorough
@given(st.data())
def test_every_part_ever_written_is_readable(data: st.DataObject) -> None:
    """Data of every schema of a history, migrated to the latest, is what migration by hand gives."""
    schemas = data.draw(histories(most=6))
    old = data.draw(st.sampled_from(schemas))
    rows, batch = data.draw(batches(old))
    assert_rows(migrate(batch, old, schemas[-1]), schemas[-1], by_hand(rows, old, schemas[-1]))


@thorough
@given(st.data())
def test_direct_migration_equals_stepwise_migration(data: st.DataObject) -> None:
    """Going from v0 to vn at once or through every schema between gives the same rows and types."""
    schemas = data.draw(histories(most=6))
    rows, batch = data.draw(batches(schemas[0]))
    direct, stepwise = migrate(batch, schemas[0], schemas[-1]), batch
    for old, new in itertools.pairwise(schemas):
        stepwise = migrate(stepwise, old, new)
        assert_rows(stepwise, new, by_hand(rows, schemas[0], new))
    assert_rows(direct, schemas[-1], rows_of(stepwise, schemas[-1]))


@thorough
@given(readers(), st.data())
def test_a_reader_that_is_not_fenced_reads_every_part(
    case: tuple[tuple[Schema, ...], int, Schema], data: st.DataObject
) -> None:
    """Whatever schema a part was written under, before or after the reader's own, its rows are right."""
    schemas, _, reader = case
    if check_reader(History.fold(schemas), reader):
        return
    old = data.draw(st.sampled_from(schemas))
    rows, batch = data.draw(batches(old))
    assert_rows(migrate(batch, old, reader), reader, by_hand(rows, old, reader))


@thorough
@given(mutations(), st.data())
def test_whatever_the_rules_accept_can_be_read(
    case: tuple[tuple[Schema, ...], Schema], data: st.DataObject
) -> None:
    """A schema tried at random either reads data of every earlier one, or is refused and migrates nothing.

    The order of fields is the rules' concern alone: a migration brings them into any order.
    """
    schemas, new = case
    violations = {change.kind for change in History.fold(schemas).check(new)} - {ChangeKind.REORDERED}
    if not violations:
        old = data.draw(st.sampled_from(schemas))
        rows, batch = data.draw(batches(old))
        assert_rows(migrate(batch, old, new), new, by_hand(rows, old, new))
    elif violations != {
        ChangeKind.RECREATED
    }:  # what was deleted earlier, the latest schema alone cannot know
        with pytest.raises(IncompatibleSchemaError):
            Migration(schemas[-1], new)


@given(st.data())
def test_migrating_to_the_same_schema_copies_nothing(data: st.DataObject) -> None:
    """The identity passes on every buffer of a batch, of a table and of a struct array, sliced or not."""
    schema = data.draw(schemas(depth=3))
    rows, batch = data.draw(batches(schema))
    same = migrate(batch, schema, schema)
    assert_rows(same, schema, rows)
    assert [addresses(a) for a in same.columns] == [addresses(a) for a in batch.columns]
    table = migrate(pa.Table.from_batches([batch]), schema, schema)
    chunks = [column.chunk(0) for column in table.columns if column.num_chunks]
    assert [addresses(a) for a in chunks] == [addresses(a) for a in batch.columns if chunks]
    start = data.draw(st.integers(0, len(rows)))
    sliced = batch.to_struct_array().slice(start)
    assert addresses(migrate(sliced, schema, schema)) == addresses(sliced)


@given(st.data())
def test_columns_that_do_not_change_are_not_copied(data: st.DataObject) -> None:
    """In a batch that changes, every column with an equal type before and after keeps its buffers."""
    schemas = data.draw(histories(most=3))
    old, new = schemas[0], schemas[-1]
    _, batch = data.draw(batches(old))
    after = migrate(batch, old, new)
    before = {field.id: (field, column) for field, column in zip(old.fields, batch.columns, strict=True)}
    for field, column in zip(new.fields, after.columns, strict=True):
        elder, source = before.get(field.id, (None, None))
        if elder is not None and source is not None and elder.type == field.type:
            assert addresses(column) == addresses(source)


@given(st.data())
def test_slices_migrate_like_the_whole(data: st.DataObject) -> None:
    """Slicing before or after a migration makes no difference."""
    schemas = data.draw(histories(most=4))
    old, new = schemas[0], schemas[-1]
    rows, batch = data.draw(batches(old))
    start = data.draw(st.integers(0, len(rows)))
    size = data.draw(st.integers(0, len(rows) - start))
    expected = by_hand(rows, old, new)[start : start + size]
    assert_rows(migrate(batch.slice(start, size), old, new), new, expected)
    assert_rows(migrate(batch, old, new).slice(start, size), new, expected)


@given(st.data())
def test_every_form_of_data_migrates_alike(data: st.DataObject) -> None:
    """Tables, struct arrays and chunked arrays give the rows that a batch gives, null rows staying null."""
    schemas = data.draw(histories(most=3))
    old, new = schemas[0], schemas[-1]
    rows, batch = data.draw(batches(old))
    expected = by_hand(rows, old, new)
    table = migrate(pa.Table.from_batches([batch, batch.slice(1)], schema=batch.schema), old, new)
    assert table.schema.equals(arrow_schema(new), check_metadata=True)
    assert exact(table_rows(table, new)) == exact(expected + expected[1:])
    odd = [at % 2 == 1 for at in range(len(rows))]
    structs = pa.StructArray.from_arrays(
        batch.columns, fields=list(batch.schema), mask=pa.array(odd, pa.bool_())
    )
    masked = [None if hidden else row for hidden, row in zip(odd, expected, strict=True)]
    after = migrate(structs, old, new)
    after.validate(full=True)
    assert exact(values_of(after, Struct(new.fields))) == exact(masked)
    chunked = migrate(pa.chunked_array([structs, structs.slice(1)]), old, new)
    found = [value for chunk in chunked.chunks for value in values_of(chunk, Struct(new.fields))]
    assert exact(found) == exact(masked + masked[1:])


@given(st.data())
def test_physical_names_migrate_alike(data: st.DataObject) -> None:
    """With names from field ids, as inside parts, a migration gives the same rows under those names."""
    schemas = data.draw(histories(most=4))
    old, new = schemas[0], schemas[-1]
    rows, batch = data.draw(batches(old))
    after = migrate(batch, old, new, Names.FIELD)
    after.validate(full=True)
    assert after.schema.equals(arrow_schema(new, Names.FIELD), check_metadata=True)
    assert exact(rows_of(after, new)) == exact(by_hand(rows, old, new))
