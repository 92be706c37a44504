"""Updates and merges on Spark come to what they come to in process."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from instar.errors import DataMismatchError, UsageError
from instar.schema import arrow_schema
from tests.merges import LAYOUT, draw_clauses, draw_rows, merged, with_clauses
from tests.tables import before_commit

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


def test_each_row_is_inserted_by_one_clause(store: Store, spark: SparkSession) -> None:
    """Also where a condition is by chance, and would be another one if it were asked twice."""
    table = store.create_table("chance", "k bigint, v string")
    merge = table.merge(spark.range(200).selectExpr("id as k"), on=["k"])
    chance = "double(reflect('java.lang.Math', 'random')) < 0.5"
    merge = merge.when_not_matched_insert({"k": "source.k", "v": "'one'"}, condition=chance)
    merge.when_not_matched_insert({"k": "source.k", "v": "'other'"}).execute()
    assert sorted(table.to_arrow().column("k").to_pylist()) == list(range(200))
    assert set(table.to_arrow().column("v").to_pylist()) == {"one", "other"}


def test_conditions_are_asked_only_of_the_rows_that_they_are_for(store: Store, spark: SparkSession) -> None:
    """Rows that are in both, only in the data, or only in the table; one that fails there says so."""
    table = store.create_table("failing", "k int, v int")
    table.append([{"k": 1, "v": 0}, {"k": 2, "v": 1}])
    both = table.merge(spark.sql("select 2 k, 1 v union all select 3, 0"), on=["k"])
    one = table.merge(spark.sql("select 1 k, 0 v union all select 3, 1"), on=["k"])
    for failing in (
        both.when_not_matched_insert(condition="1 / source.v > 0"),
        both.when_not_matched_by_source_delete("1 / target.v > 0"),
        one.when_matched_delete("1 / target.v > 0"),
        one.when_matched_delete("target.nobody > 0"),
    ):
        with pytest.raises(UsageError):
            failing.execute()
    assert rows_of(table) == [(1, 0), (2, 1)]
    both.when_matched_update({"v": "5"}, condition="1 / source.v > 0").execute()
    one.when_not_matched_insert(condition="1 / source.v > 0").execute()
    assert rows_of(table) == [(1, 0), (2, 5), (3, 1)]
    one.when_not_matched_by_source_delete("1 / target.v > 0").execute()
    assert rows_of(table) == [(1, 0), (3, 1)]


def test_columns_may_be_called_as_places_are(store: Store, spark: SparkSession) -> None:
    """A condition sees the columns of the table, and nothing else."""
    table = store.create_table("named", "k int, _part int, _row int", key=["k"])
    table.append([{"k": k, "_part": k + 10, "_row": k + 20} for k in range(6)])
    table.delete("_part = 10 or _row = 21", spark)
    table.update(set={"_row": "_row + _part"}, where="k = 2", spark=spark)
    table.upsert(spark.sql("select 3 k, 0 _part, 1 _row"))
    data = spark.sql("select 4 k, 5 _part, 6 _row")
    table.merge(data, on=["_part"]).when_not_matched_by_source_delete("target._row = 25").execute()
    table.merge(data, on=["k"]).when_matched_update().execute()
    assert rows_of(table) == [(2, 12, 34), (3, 0, 1), (4, 5, 6)]
    plain = store.create_table("plain", "k int")
    plain.append([{"k": 1}])
    with pytest.raises(UsageError):
        plain.delete("_part = 0", spark)


def test_a_merge_of_a_frame_loses_no_values_under_names_of_before(store: Store, spark: SparkSession) -> None:
    """As in process."""
    table = store.create_table("renamed", "k int, v int")
    table.append([{"k": 1, "v": 1}])
    table.evolve().rename_column("v", "w").commit()
    merge = table.merge(spark.sql("select 2 k, 3 v"), on=["k"])
    with pytest.raises(DataMismatchError, match="`v` is called `w` since schema 1"):
        merge.when_not_matched_insert().execute()
    merge.when_not_matched_insert({"k": "source.k", "w": "source.v"}).execute()
    assert rows_of(table) == [(1, 1), (2, 3)]


def _arrow(rows: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(LAYOUT.names, row, strict=True)) for row in rows], schema=LAYOUT)


def test_what_changes_no_row_writes_nothing(store: Store, spark: SparkSession) -> None:
    """The answer names the version that was found, also where rows have to be added up."""
    table = store.create_table("idle", "k int, v bigint", key=["k"])
    table.append([{"k": n, "v": n} for n in range(4)])
    table.apply([{"k": 3, "v": 3, "_diff": -1}])
    before = table.state
    nobody, stranger = spark.sql("select 1 k, 1L v where false"), spark.sql("select 99 k, 1L v")
    found = [
        table.delete("k > 10", spark),
        table.update({"v": "0"}, "k > 10", spark),
        table.upsert(nobody),
        table.overwrite(nobody, "k > 10"),
        table.merge(nobody, ["k"]).when_matched_update().when_not_matched_insert().execute(),
        table.merge(stranger, ["k"]).when_matched_update().when_matched_delete().execute(),
        table.merge(stranger, ["k"]).when_not_matched_by_source_delete("target.v > 10").execute(),
    ]
    assert found == [(before.seqno, before.upper - 1, 0, 0)] * len(found)
    answer = store.sql(spark, "DELETE FROM idle WHERE k > 10").collect()
    assert [tuple(row) for row in answer] == [(before.seqno, 0)]
    assert table.state == before


NUMBERS = "k int, i int, b bigint, f float, d double, n decimal(10,2), m decimal(20,5)"
ASSIGNED = {
    "i": ["b", "n", "1.7", "-d", "m * 2", "3e2"],
    "b": ["i", "d", "n + 1", "1.5"],
    "f": ["1", "0.5", "f * 2", "i", "d"],
    "d": ["0.1", "n", "m", "f", "b", "i / 2"],
    "n": ["0", "n * 2", "n * 0.9", "m", "d", "i", "n + 0.005", "-0.005"],
    "m": ["n", "n * n", "b", "1e3", "f"],
}


def test_numbers_are_assigned_as_sql_does(store: Store, spark: SparkSession) -> None:
    """A cast into the column, whatever other clauses bring: in process the same, or Spark is asked for."""
    rows = spark.sql(
        "select int(id) k, int(id * 7 - 9) i, id * 3 b, float(id / 4) f, id / 8.0D d, "
        "cast(id * 1.05 as decimal(10,2)) n, cast(id * 3.14159 as decimal(20,5)) m from range(4)"
    ).toArrow()
    types = dict(part.split(" ") for part in NUMBERS.split(", "))
    frame, names = spark.createDataFrame(rows), rows.column_names
    refused = []
    for turn in range(max(map(len, ASSIGNED.values()))):
        texts = {column: some[turn % len(some)] for column, some in ASSIGNED.items()}
        casts = {column: f"cast({text} as {types[column]}) {column}" for column, text in texts.items()}
        expected = frame.selectExpr(*(casts.get(name, name) for name in names)).toArrow().sort_by("k")
        table = store.create_table(f"numbers{turn}", NUMBERS)
        table.append(rows)
        table.update(texts, spark=spark)
        assert table.to_arrow().sort_by("k").to_pylist() == expected.to_pylist(), texts
        for column, text in texts.items():
            table.overwrite(rows)
            try:
                table.update({column: text})
            except UsageError:
                refused.append((column, text))
            else:
                found = table.to_arrow().sort_by("k")[column].to_pylist()
                assert found == expected[column].to_pylist(), (column, text)
    assert len(set(refused)) < 6, refused


def test_a_number_that_is_too_large_for_its_column_fails(store: Store, spark: SparkSession) -> None:
    """In process, on Spark, and on Spark in a session that would make it null or another number."""
    table = store.create_table("narrow", "k int, n decimal(4,2)")
    table.append(spark.sql("select 1 k, cast(12.5 as decimal(4,2)) n"))
    seqno = table.state.seqno
    loose = spark.newSession()
    loose.conf.set("spark.sql.ansi.enabled", "false")
    for session in (spark, loose, None):
        for column, text in (("n", "n * 10"), ("k", "n * 1e9")):
            with pytest.raises(UsageError, match=f"{column}|decided"):
                table.update({column: text}, spark=session)
    assert table.state.seqno == seqno


def test_no_clause_of_a_merge_rounds_what_another_one_brings(store: Store, spark: SparkSession) -> None:
    """Data by name has to fit as in an append, also where the rows of other clauses are of another type."""
    table = store.create_table("reals", "k int, d double")
    table.append(spark.sql("select 1 k, 0.5D d"))
    data = spark.sql("select 1 k, 7L d union all select 2, 9007199254740993L")
    for given in (data, data.toArrow()):
        with pytest.raises(DataMismatchError, match="`d`"):
            table.merge(given, on=["k"]).when_matched_update(
                {"k": "source.k"}
            ).when_not_matched_insert().execute()
    assert rows_of(table) == [(1, 0.5)]


@pytest.mark.parametrize("change", ["upsert", "merge", "sweep"])
def test_a_row_that_came_meanwhile_is_merged_too(
    store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Whether the data has its key, or it has to go because the data lacks it."""
    table = store.create_table("t", "k int, v string", key=["k"])
    table.append([{"k": 1, "v": "old"}])
    data = spark.sql("SELECT 2 AS k, 'new' AS v")
    merge = table.merge(data, on=["k"]).when_matched_update().when_not_matched_insert()
    if change == "sweep":
        merge = merge.when_not_matched_by_source_delete()
    late = [{"k": 3 if change == "sweep" else 2, "v": "others"}]
    before_commit(monkeypatch, lambda: store.table("t").append(late))
    if change == "upsert":
        table.upsert(data)
    else:
        merge.execute()
    left = [] if change == "sweep" else [(1, "old")]
    assert rows_of(table) == [*left, (2, "new")]
