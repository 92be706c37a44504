"""Data from elsewhere fits if its values do, in whatever form of Arrow they come."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import assume, given
from hypothesis import strategies as st

from instar.parts import conform, new_columns
from instar.schema import ChangeKind, History, Schema, SchemaUpdate, arrow_schema, compare
from instar.schema.migration_type import MigrationType
from tests.properties.parts.rows import plain_rows
from tests.properties.schema.data import batch_of, exact, migrated_row, random_rows
from tests.properties.schema.strategies import Ids, draw_legal, projections, schemas

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

SEEDS = st.integers(0, 2**32 - 1)
FOREIGN = {
    pa.string(): [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())],
    pa.binary(): [pa.large_binary(), pa.binary_view()],
    pa.timestamp("us", "UTC"): [pa.timestamp("us", "Europe/Berlin"), pa.timestamp("us", "+05:30")],
    pa.decimal128(38, 0): [pa.decimal256(38, 0)],
    pa.decimal128(5, 2): [pa.decimal256(5, 2), pa.decimal64(5, 2), pa.decimal32(5, 2)],
}


def foreign_type(type_: pa.DataType, random: Random) -> pa.DataType:
    """Return another type for the same values."""
    if pa.types.is_struct(type_):
        return pa.struct([foreign_field(field, random) for field in type_.fields])
    if pa.types.is_list(type_):
        return random.choice((pa.list_, pa.large_list))(foreign_field(type_.value_field, random))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_field, foreign_field(type_.item_field, random))
    return random.choice((type_, *FOREIGN.get(type_, [])))


def foreign_field(field: pa.Field, random: Random) -> pa.Field:
    """Return a field of another type that may be null, and forgets what it is called if it is structural."""
    return pa.field(field.name, foreign_type(field.type, random))


def foreign(batch: pa.RecordBatch, random: Random) -> pa.Table:
    """Return a batch in another form: other types, other order of columns, other case, and a slice."""
    # Taken, so that no bug of Arrow's casts of slices is mistaken for one of ours.
    padded = batch.take(pa.array([0, *range(batch.num_rows)]))
    fields = [foreign_field(field, random) for field in batch.schema]
    columns = {
        random_case(field.name, random): column.cast(field.type)
        for field, column in zip(fields, padded.columns, strict=True)
    }
    names = random.sample(list(columns), len(columns))
    return pa.table({name: columns[name] for name in names}).slice(1)


def random_case(name: str, random: Random) -> str:
    """Return a name in capitals, if it is still the same name for Spark."""
    capitals = name.upper()
    return random.choice((name, capitals if capitals.lower() == name.lower() else name))


@given(schemas(), SEEDS)
def test_other_forms_of_the_same_values_fit(schema: Schema, seed: int) -> None:
    """Large and view types, dictionaries, other zones, columns in any order and case."""
    random = Random(seed)
    rows = random_rows(random, schema, 6)
    given_data = foreign(batch_of(rows, schema, random), random)
    found = list(conform(given_data, schema))
    for batch in found:
        batch.validate(full=True)
        assert batch.schema.equals(arrow_schema(schema))
    assert exact([row for batch in found for row in plain_rows(batch, schema)]) == exact(rows)


@st.composite
def wider_schemas(draw: DrawFn) -> tuple[Schema, Schema]:
    """Draw a schema, and one that differs from it in more columns, wider and nullable ones."""
    old, ids = draw(schemas()), Ids(1, 0)
    taken = set(old.field_ids())
    ids.fresh = iter(at for at in count(1) if at not in taken).__next__  # type: ignore[method-assign]
    new = draw_legal(draw, old, ids, only=draw(st.sampled_from(("add", "widen", "nullable"))))
    kinds = {change.kind for change in compare(MigrationType.start(old), new)}
    assume(kinds <= {ChangeKind.ADDED, ChangeKind.MADE_NULLABLE, ChangeKind.WIDENED})
    return old, new


@given(wider_schemas(), SEEDS)
def test_narrower_data_with_fewer_columns_fits(case: tuple[Schema, Schema], seed: int) -> None:
    """Data of an older shape fits a table that was widened, made nullable and given more columns."""
    old, new = case
    random = Random(seed)
    rows = random_rows(random, old, 5)
    found = [row for batch in conform(batch_of(rows, old, random), new) for row in plain_rows(batch, new)]
    assert exact(found) == exact([migrated_row(row, old.fields, new.fields) for row in rows])


@given(st.data())
def test_tables_evolve_to_what_data_needs(data: st.DataObject) -> None:
    """With the new columns added, at every level, data fits a table that had only some of them."""
    whole = data.draw(schemas())
    narrow = data.draw(projections(whole))
    update = SchemaUpdate(History.start(narrow))
    for column in new_columns(arrow_schema(whole), narrow):
        update.add_column(column.path, column.type)
    assert new_columns(arrow_schema(whole), update.schema) == ()
    assert not update.check()
    random = Random(data.draw(SEEDS))
    rows = random_rows(random, whole, 4)
    table = pa.Table.from_batches(conform(batch_of(rows, whole, random), update.schema))
    expected = conform(table, whole)  # by name, back into the order of the data
    assert exact([row for batch in expected for row in plain_rows(batch, whole)]) == exact(rows)
