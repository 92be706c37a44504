"""Files that others wrote are read by Spark's own reader, in one query with parts of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import instar
from instar.errors import AdoptedFileError
from tests.adopting import ROWS, WRITERS, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store

pytestmark = pytest.mark.spark

DDL = (
    "id int, big bigint, name string, ok boolean, x double, day date, at timestamp, price decimal(9,2), "
    "tags array<string>, who struct<n: bigint, m: string>"
)


def _rows(frame: DataFrame) -> list[dict[str, object]]:
    return rows_of(frame.toArrow().cast(ROWS.schema))


def test_spark_reads_the_files_of_every_writer_beside_its_own(
    store: Store, spark: SparkSession, tmp_path: Path
) -> None:
    """Rows are those that each library, Spark among them, was given; filters find them, NaN among them."""
    table = store.create_table("t", DDL)
    first = table.append(ROWS).ts
    for number, write in enumerate(WRITERS.values()):
        write(tmp_path / f"{number}.parquet")
        table.adopt(tmp_path / f"{number}.parquet")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try:
        table.snapshot(as_of=first).to_spark(spark).coalesce(1).write.parquet(str(tmp_path / "spark"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
        spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    table.adopt(tmp_path / "spark")
    copies = len(WRITERS) + 2
    frame = table.read(spark)
    expected = [row for row in rows_of(ROWS) for _ in range(copies)]
    assert _rows(frame) == expected
    assert rows_of(table.snapshot().to_arrow()) == expected
    assert frame.where("x > 5").count() == copies  # NaN is the greatest number, and no footer says so
    assert frame.where("at < '1980-01-01' and price = -99.99 and who.n = 3").count() == copies
    assert frame.where("tags is null").select("name").distinct().count() == 1


def test_paths_renames_and_retractions_on_spark(store: Store, spark: SparkSession, tmp_path: Path) -> None:
    """What a path tells, names of old, deleted rows and rows retracted by value, as in process."""
    for day in ("2026-11-15", "2026-11-16"):
        folder = tmp_path / "in" / f"day={day}" / "code=0a" / "n=3" / "big=5"
        folder.mkdir(parents=True)
        rows = {"a": pa.array([1, 2, 3], pa.int32()), "s": [{"x": 1, "y": 2.5}, None, {"x": 3, "y": None}]}
        pq.write_table(pa.table(rows), folder / "x.parquet")
    table = store.create_table(
        "t", "a int, s struct<x: bigint, y: double>, day date, code string, n tinyint, big bigint"
    )
    table.adopt(tmp_path / "in")
    table.evolve().rename_column("a", "b").add_column("a", "string").drop_column("s.x").widen_column(
        "b", "bigint"
    ).add_column("s.z", "string", first=True).commit()
    view = table.follow(spark)
    table.append(pa.table({"b": [9], "day": pa.array([20000], pa.date32())}))
    table.delete("b = 1 and day = '2026-11-15'", spark)
    table.delete("b = 2 and day = '2026-11-15'")

    def same() -> None:
        mine = table.snapshot().to_arrow().sort_by([("day", "ascending"), ("b", "ascending")]).to_pylist()
        theirs = table.read(spark).orderBy("day", "b").toArrow().to_pylist()
        assert theirs == mine

    same()
    assert table.read(spark).where("day = '2026-11-16' and n = 3 and big = 5 and code = '0a'").count() == 3
    reports = instar.scan_reports(table.read(spark).where("day = '2026-11-16'"))
    assert [(report.read, report.skipped) for report in reports if report.total] == [(0, 1), (1, 0), (0, 1)]
    assert view.where("s is null").count() == 2
    table.apply(
        table.snapshot().to_arrow(where="b = 3 and day = '2026-11-16'").append_column("_diff", pa.array([-1]))
    )
    same()
    assert table.count() == 4
    table.compact(spark, full=True)
    same()


@pytest.mark.native
def test_spark_says_that_an_adopted_file_is_gone(store: Store, spark: SparkSession, tmp_path: Path) -> None:
    """No query reads another file in place of an adopted one; a view reads files that are adopted later."""
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "1.parquet")
    table = store.create_table("t", "a bigint")
    table.adopt(tmp_path / "1.parquet")
    view = table.follow(spark)
    assert view.count() == 2
    table.evolve().rename_column("a", "b").commit()
    pq.write_table(pa.table({"b": [3]}), tmp_path / "2.parquet")
    table.adopt(tmp_path / "2.parquet")
    assert sorted(row.a for row in view.where("a > 0").collect()) == [1, 2, 3]
    pq.write_table(pa.table({"a": [1, 3]}), tmp_path / "1.parquet")
    with pytest.raises(AdoptedFileError, match="another file"):
        table.read(spark).count()
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(AdoptedFileError, match="missing"):
        table.read(spark).count()
