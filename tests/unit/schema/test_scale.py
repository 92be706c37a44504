"""Wide schemas and long histories: how the number of operations grows, counted and not timed."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.schema import (
    Field,
    History,
    Migration,
    Primitive,
    Schema,
    SchemaUpdate,
    arrow_schema,
    check_reader,
    fingerprint,
    parse_schema_ddl,
    schema_from_arrow,
    schema_from_spark,
    spark_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

INT = Primitive("int")
WIDE = 2000
LONG = 500


def operations(action: Callable[[], object]) -> int:
    """Count the calls, of Python and of C functions, that an action makes once caches are warm."""
    action()
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in {"call", "c_call"}

    before = sys.getprofile()
    gc.disable()  # what others left to collect is not the work of the action
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
        gc.enable()
    return counted


def wide(size: int) -> Schema:
    """Return a schema of so many columns."""
    return Schema(tuple(Field(at, f"c{at}", INT) for at in range(1, size + 1)))


def changed(schema: Schema) -> Schema:
    """Drop the first column, rename the second and add one."""
    _, second, *rest = schema.fields
    return Schema((Field(90_000, "new", INT), Field(second.id, "other", INT), *rest))


WORK: dict[str, Callable[[Schema], object]] = {
    "construct": lambda schema: Schema(schema.fields),
    "print and parse": lambda schema: parse_schema_ddl(str(schema)),
    "to Arrow and back": lambda schema: schema_from_arrow(arrow_schema(schema)),
    "to Spark and back": lambda schema: schema_from_spark(spark_json(schema)),
    "fingerprint": fingerprint,
    "select all": lambda schema: schema.select(schema.names),
    "check": lambda schema: History.start(schema).check(changed(schema)),
    "evolve": lambda schema: History.start(schema).evolve(changed(schema)),
    "drop one": lambda schema: SchemaUpdate(History.start(schema)).drop_column("c5").schema,
    "evolve to a text": lambda schema: SchemaUpdate(History.start(schema)).evolve_to(f"{schema}, new int"),
    "fence": lambda schema: check_reader(History.fold((schema, changed(schema))), schema),
    "plan a migration": lambda schema: Migration(schema, changed(schema)),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_work_grows_with_the_number_of_columns_and_no_faster(work: Callable[[Schema], object]) -> None:
    """Twice as many columns are about twice the work, up to 2,000 of them."""
    half, whole = wide(WIDE // 2), wide(WIDE)
    assert operations(lambda: work(whole)) < 2.2 * operations(lambda: work(half))


def test_applying_a_migration_costs_a_few_calls_for_each_column() -> None:
    """However many rows there are, columns are passed on as they are."""
    schema = wide(WIDE)
    column = pa.array(range(1000), pa.int32())
    batch = pa.RecordBatch.from_arrays([column] * WIDE, schema=arrow_schema(schema))
    migration = Migration(schema, changed(schema))
    assert operations(lambda: migration.apply(batch)) < 10 * WIDE


def renamed_often(size: int) -> History:
    """Return a history in which one column gets a new name each time."""
    return History.fold(tuple(Schema((Field(1, f"a{at}", INT), Field(2, "b", INT))) for at in range(size)))


def replaced_often(size: int) -> History:
    """Return a history in which one column is dropped and another added each time."""
    return History.fold(tuple(Schema((Field(1, "a", INT), Field(2 + at, "b", INT))) for at in range(size)))


def test_a_check_does_not_depend_on_the_length_of_the_history() -> None:
    """Against 500 schemas a check takes as many operations as against one of the same fields."""
    new = parse_schema_ddl("a bigint, b int, c int")
    short, long = renamed_often(1), renamed_often(LONG)
    assert operations(lambda: long.check(new)) == operations(lambda: short.check(new))
    assert operations(lambda: check_reader(long, long.latest)) == operations(
        lambda: check_reader(short, short.latest)
    )


def test_a_check_grows_with_what_was_deleted_and_no_faster() -> None:
    """Every deleted field is remembered forever, and costs a few operations in each check."""
    half, whole = replaced_often(LONG // 2), replaced_often(LONG)
    assert len(whole.migration_type.deleted_ids()) == LONG - 1
    new = Schema((Field(1, "a", INT), Field(90_000, "c", INT)))
    assert operations(lambda: whole.check(new)) < 2.2 * operations(lambda: half.check(new))
    assert operations(lambda: whole.evolve(new)) < 2.2 * operations(lambda: half.evolve(new))
    assert operations(lambda: whole.evolve(new)) < 20 * LONG


def test_one_more_schema_is_one_more_step() -> None:
    """Evolving 500 times from names alone is 500 times the same work."""
    assert operations(lambda: renamed_often(LONG)) < 2.2 * operations(lambda: renamed_often(LONG // 2))
