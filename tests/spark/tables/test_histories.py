"""Random histories on Spark: every time, every schema, some projections, on both paths, against the model."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import instar
from instar.errors import ReaderFencedError
from instar.schema import List, Map, Primitive, Schema, Struct, spark_json
from instar.schema.types import INTERVAL_YEAR_MONTH
from tests.properties.schema.data import exact, rows_of
from tests.properties.schema.strategies import projections
from tests.properties.tables.histories import SMALL, History, as_arrow, as_pandas, draw_history
from tests.properties.tables.model import row_key

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Type
    from tests.properties.schema.data import Row

# Looking for a simpler counterexample would take longer than the test may; the seed finds it again.
some = settings(max_examples=max(8, settings().max_examples // 500), phases=(Phase.reuse, Phase.generate))


@pytest.fixture(autouse=True, scope="module")
def _small_and_quick(spark: SparkSession) -> Iterator[None]:
    """Write parts of a few rows, and let Spark interpret: compiling many small queries takes longer."""
    quick = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = spark.conf.get("instar.planner", "auto")
    for name, value in quick.items():
        spark.conf.set(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("instar.table.write.append.PartLimits", lambda: SMALL)
        patch.setattr("instar.parts.write.ROW_GROUP_ROWS", 3)
        yield
    for name in quick:
        spark.conf.unset(name)
    spark.conf.set("instar.planner", str(before))


def can_be_arrow(type_: Type) -> bool:
    """Whether PySpark can make Arrow data of a type: not of months, nor of lists that a null struct lacks."""
    match type_:
        case Struct(fields=members):
            return all(
                can_be_arrow(member.type) and (member.nullable or not isinstance(member.type, List | Map))
                for member in members
            )
        case List(element=element):
            return can_be_arrow(element)
        case Map(key=key, value=value):
            return can_be_arrow(key) and can_be_arrow(value)
        case Primitive(name=name):
            return name not in INTERVAL_YEAR_MONTH
    return True


def shown(reader: Schema) -> Schema | None:
    """Return the columns of a reader that a test can get out of Spark; the others still tell rows apart."""
    fields = tuple(field for field in reader.fields if can_be_arrow(field.type))
    return Schema(fields) if fields else None


def frame_form(spark: SparkSession, folder: Path) -> Callable[[pa.Table, Schema], object]:
    """Give rows as a Spark frame, where they can be one; PySpark itself does not take sliced arrays."""
    from pyspark.sql.types import LongType, StructType  # noqa: PLC0415 -- only tests with Spark pay for it

    def as_frame(table: pa.Table, schema: Schema) -> object:
        if shown(schema) != schema:
            return as_arrow(table, schema)
        struct = StructType.fromJson(spark_json(schema))
        for name in table.column_names[len(schema.fields) :]:
            struct.add(name, LongType())
        file = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(table, file)
        return spark.read.schema(struct).parquet(str(file))

    return as_frame


def plain_rows(table: pa.Table, schema: Schema) -> Iterator[Row]:
    """Read rows back without the code under test."""
    width = range(len(schema.fields))
    for batch in table.combine_chunks().to_batches():
        yield from rows_of(batch.select(width), schema)


def bag(table: pa.Table, schema: Schema) -> list[str]:
    """Return rows so that they can be compared bit for bit, whatever their order."""
    return sorted(repr(exact(row)) for row in plain_rows(table, schema))


def keys_by_time(table: pa.Table, schema: Schema) -> dict[int, Counter[Hashable]]:
    """Return rows as the model has them, by the time in the last column."""
    found: dict[int, Counter[Hashable]] = {}
    for row, at in zip(plain_rows(table, schema), table.column(-1).to_pylist(), strict=True):
        found.setdefault(at, Counter())[row_key(row, schema.fields)] += 1
    return found


def collected(frame: DataFrame) -> pa.Table:
    """Return the rows of a frame; PySpark's `toArrow` fails on null structs whose members may not be null."""
    batches = frame._collect_as_arrow()  # type: ignore[operator]
    return pa.Table.from_batches(batches) if batches else frame.toArrow()


def check_reader(
    spark: SparkSession, history: History, times: Sequence[int], schema_id: int, reader: Schema
) -> None:
    """Check what one reader sees at some times, in one query: the right rows, or a fence and nothing.

    So it is whether Spark's planner knows the parts, or only files.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 -- only tests with Spark pay for it

    model, table = history.model, history.table
    if model.fences(schema_id, reader):
        with pytest.raises(ReaderFencedError):
            table.snapshot(times[-1], schema=reader)
        return
    seen = shown(reader)
    if seen is None:
        return

    def snapshot(at: int) -> DataFrame:
        return table.snapshot(at, schema=seen).to_spark(spark).select("*", F.lit(at).alias("_at"))

    expected = {at: rows for at in times if (rows := model.rows(at, seen))}
    for way in ("files", "auto"):
        spark.conf.set("instar.planner", way)
        together = reduce(lambda left, right: left.unionAll(right), map(snapshot, times))
        assert [field.nullable for field in together.schema][:-1] == [field.nullable for field in seen.fields]
        assert keys_by_time(collected(together), seen) == expected


@some
@given(st.data())
def test_every_snapshot_is_what_the_model_says(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """At every time, under every schema that is not fenced, and in projections, Spark finds the rows."""
    with instar.open(tmp_path_factory.mktemp("lake")) as store:
        store.initialise()
        forms = (as_arrow, as_pandas, frame_form(spark, tmp_path_factory.mktemp("frames")))
        history = draw_history(data, store._services, forms, most=6, session=spark, care=True)
        model = history.model
        times = history.times() or [history.table.upper - 1]
        for schema_id, schema in enumerate(model.schemas):
            check_reader(spark, history, times, schema_id, schema)
            check_reader(spark, history, times[-1:], schema_id, data.draw(projections(schema)))
        seen = shown(model.latest)
        if seen is not None and all(update.diff > 0 for update in model.updates):
            snapshot = history.table.snapshot(schema=seen)
            assert bag(collected(snapshot.to_spark(spark)), seen) == bag(snapshot.to_arrow(), seen)
