"""Updates and merges on Spark come to what they come to in process."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import UsageError
from instar.schema import arrow_schema
from tests.merges import LAYOUT, draw_clauses, draw_rows, merged, with_clauses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store, Table

pytestmark = pytest.mark.spark


def rows_of(table: Table) -> list[tuple[object, ...]]:
    """Return the rows, sorted."""
    return sorted((tuple(row.values()) for row in table.snapshot().to_arrow().to_pylist()), key=repr)


def make(store: Store, name: str) -> Table:
    """Return a table in which a row is there twice, and one was retracted by value."""
    table = store.create_table(name, "k int, `a.b` string, v bigint")
    names = arrow_schema(table.schema)
    rows = [{"k": n % 8, "a.b": f"t{n}", "v": n} for n in range(12)]
    table.append(pa.Table.from_pylist([*rows, rows[3]], schema=names))
    late = {"k": 9, "a.b": "x", "v": 9}
    table.apply(
        pa.Table.from_pylist([late, late, rows[5]], schema=names).append_column("_diff", [[1, 1, -1]])
    )
    return table


def test_spark_and_process_agree(store: Store, spark: SparkSession) -> None:
    """On updates and merges with every sort of clause, in one commit each."""
    on_spark, in_process = make(store, "one"), make(store, "two")
    for session, table in ((spark, on_spark), (None, in_process)):
        table.update({"v": "v * 2"}, "k > 2", session)
        layout = pa.schema([("k", pa.int32()), ("a.b", pa.string()), ("v", pa.int64())])
        data = pa.Table.from_pylist(
            [{"k": k, "a.b": "new", "v": 10 * k} for k in (1, 4, 6, 50, 51)], schema=layout
        )
        given = data if session is None else spark.createDataFrame(data)
        (
            table.merge(given, on=["K"])
            .when_matched_delete("source.k = 4")
            .when_matched_update({"v": "source.v + target.v"}, condition="target.v > 1")
            .when_matched_update()
            .when_not_matched_insert({"k": "source.k", "v": "-1"}, condition="source.k = 50")
            .when_not_matched_insert()
            .when_not_matched_by_source_delete("target.k = 9 or target.v = 2")
            .execute()
        )
        assert table.state.seqno == 4
    assert rows_of(on_spark) == rows_of(in_process)
    assert (50, None, -1) in rows_of(on_spark)
    assert sorted(
        (row.k, row["a.b"], row.v) for row in on_spark.read(spark).collect() if row["a.b"]
    ) == sorted(row for row in rows_of(on_spark) if row[1])
    twice = spark.sql("select 1 as k, 2 as v union all select 1, 3")
    with pytest.raises(UsageError, match="more than one row"):
        on_spark.merge(twice, on=["k"]).when_matched_update().execute()


def test_a_merge_comes_to_what_its_clauses_say(store: Store, spark: SparkSession) -> None:
    """Whatever is null, there twice on either side, or gets another key; also of rows without a place."""
    random = Random(13)
    table = store.create_table("random", "k bigint, j string, v bigint")
    model = [*draw_rows(random, 12), *[(3, "a", 5)] * 3]
    table.append(_arrow(model))
    table.apply(_arrow(model[-1:]).append_column("_diff", [[-1]]))
    model.pop()
    done = refused = 0
    while done < 6 or not refused:
        data, clauses = draw_rows(random, 8), draw_clauses(random)
        on = random.choice([[0], [0, 1]])
        frame = spark.createDataFrame(_arrow(data))
        merge = with_clauses(table.merge(frame, on=[LAYOUT.names[at] for at in on]), clauses)
        try:
            model = merged(model, data, on, clauses)
        except UsageError:
            refused += 1
            with pytest.raises(UsageError, match="more than one row"):
                merge.execute()
        else:
            done += 1
            merge.execute()
        assert rows_of(table) == sorted(model, key=repr)
        if not model:
            model = draw_rows(random, 12)
            table.append(_arrow(model))


def _arrow(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(LAYOUT.names, row, strict=True)) for row in rows], schema=LAYOUT)
