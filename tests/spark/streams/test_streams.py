"""Streams on Spark: written, read as one frame, repartitioned and archived, exactly once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar
from instar.errors import DataMismatchError, ReaderFencedError
from instar.stream.writing import append_item

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

FIRST = "user string not null, at timestamp, amount int, billed timestamp"
KINDS = {"regular": "1d", "hourly": "6h", "repartitioned": "1d", "eod": "1d", "archive": "1y"}
START = datetime(2025, 3, 1, tzinfo=UTC)


@pytest.fixture
def stream(tmp_path: Path) -> instar.Stream:
    """Return an empty stream."""
    store = instar.open(tmp_path / "lake")
    return store.create_stream("billing/events", FIRST, version="v0.0.1", time="at", kinds=KINDS)


def _events(spark: SparkSession, rows: int, days: int, first: int = 0) -> DataFrame:
    """Return events that are spread over days, and billed a day later."""
    at = f"timestamp'2025-03-01' + make_dt_interval({first} + id % {days}, cast(id % 24 as int), 0, 0)"
    return spark.range(0, rows, 1, 2).selectExpr(
        "concat('u', id) user", f"{at} at", "cast(id as int) amount", f"{at} + interval 1 day billed"
    )


def _rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_a_frame_is_written_to_all_its_tables_and_read_as_one(
    spark: SparkSession, stream: instar.Stream
) -> None:
    """Rows are in the tables of their times; a range is one frame, of one scan, equal to what was written."""
    written = _events(spark, 1000, 10)
    commit = stream.write(written, version="v0.0.1")
    assert commit.rows == 1000
    assert len(stream.tables("regular")) == 10
    frame = stream.read(spark)
    assert _rows(frame) == _rows(written)
    assert _rows(stream.read(spark, "hourly")) == _rows(written)
    assert len(instar.scan_reports(frame)) == 1
    some = stream.read(spark, start="2025-03-03", end="2025-03-05T12:00")
    assert _rows(some) == _rows(
        written.where("at >= timestamp'2025-03-03' and at < timestamp'2025-03-05 12:00'")
    )
    assert sum(table.rows for table in stream.tables("regular")) == 1000


def test_late_rows_reach_their_day_and_rows_without_a_place_are_kept(
    spark: SparkSession, stream: instar.Stream
) -> None:
    """Jobs take rows without a place by their own column; those without that time have no place there."""
    rows = [
        ("late", "2019-01-01", "2025-03-02"),
        ("never", None, "2025-03-02"),
        ("soon", "2099-01-01", None),
        ("now", "2025-03-01", None),
    ]
    frame = spark.createDataFrame(rows, "user string, at string, billed string")
    stream.write(frame.selectExpr("user", "timestamp(at) at", "timestamp(billed) billed"), version="v0.0.1")
    names = [table.name.rpartition("/")[2] for table in stream.tables("regular")]
    assert names == ["unplaced", "2019-01-01", "2025-03-01"]
    assert {row.user for row in stream.read(spark).collect()} == {"late", "never", "soon", "now"}
    assert [row.user for row in stream.read(spark, start="2019-01-01", end="2025-01-01").collect()] == [
        "late"
    ]
    assert {row.user for row in stream.read(spark, "hourly").collect()} == {"late", "now"}
    assert stream.repartition(spark, by="billed").rows == 4
    found = {table.name: table.rows for table in stream.tables("repartitioned")}
    where = "billing/events-repartitioned/1d"
    assert found == {f"{where}/unplaced": 2, f"{where}/2025-03-02": 2}
    assert stream.archive(spark, before="2026-01-01").rows == 2
    assert stream.read(spark).count() == 4


def test_a_filter_opens_only_the_parts_it_needs_of_all_tables(
    spark: SparkSession, stream: instar.Stream
) -> None:
    """Skipping decides over all tables at once, and finds the same rows as without."""
    stream.write(_events(spark, 1000, 20), version="v0.0.1")
    frame = stream.read(spark).where("date_trunc('day', at) = '2025-03-07'")
    (report,) = instar.scan_reports(frame)
    assert (report.total, report.read) == (40, 2)
    assert frame.count() == 50


def test_a_year_of_tables_under_forty_versions_equals_the_model(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever version a row was written in, and whatever its table is stamped with, it reads the same."""
    store = instar.open(tmp_path / "lake", consensus="memory://forty")
    stream = store.create_stream(
        "s",
        "id bigint not null, at timestamp not null, n int",
        version="v0.0.1",
        time="at",
        kinds={"regular": "1d"},
    )
    model: list[dict[str, object]] = []
    for number in range(1, 41):
        names = [f"c{each}" for each in range(2, number + 1) if each % 3 != number % 3]
        wide = "bigint" if number >= 20 else "int"
        columns = "".join(f", {name} string" for name in names)
        stream.evolve(
            f"id bigint not null, at timestamp not null, n {wide}{columns}", version=f"v0.0.{number}"
        )
        rows = [
            {
                "id": number * 1000 + day,
                "at": START + timedelta(days=(day * 41 + number) % 365, seconds=number),
                "n": 2**40 if number >= 20 and day == 1 else day,
                **{name: f"{name}/{number}" for name in names[-3:]},
            }
            for day in range(10)
        ]
        model += rows
        stream.write(pa.Table.from_pylist(rows), version=f"v0.0.{number}")
        if number == 25:
            store.evolver(always=True).run_once()
    frame = stream.read(spark)
    found = sorted((row.asDict() for row in frame.collect()), key=lambda row: int(row["id"]))
    shown = stream.schema.names
    expected = sorted(
        ({name: row.get(name) for name in shown} for row in model), key=lambda row: int(str(row["id"]))
    )
    for row in found:
        row["at"] = row["at"].replace(tzinfo=UTC)
    assert found == expected
    assert len(stream.tables()) > 250
    assert frame.where("c39 is not null or n > 1000").count() == sum(
        row.get("c39") is not None or int(str(row["n"])) > 1000 for row in model
    )


def test_data_that_does_not_fit_writes_nothing(spark: SparkSession, stream: instar.Stream) -> None:
    """A row that does not fit its version is named, and no table has any row of the write."""
    frame = _events(spark, 100, 3).selectExpr("if(amount = 77, null, user) user", "at", "amount", "billed")
    with pytest.raises(DataMismatchError, match="user"):
        stream.write(frame, version="v0.0.1")
    assert stream.read(spark).count() == 0


def test_readers_of_a_range_are_fenced_as_those_of_a_table(
    spark: SparkSession, stream: instar.Stream
) -> None:
    """A version that a table in the range cannot honour any more fences its reader; a held frame goes on."""
    stream.write(_events(spark, 10, 2), version="v0.0.1")
    held = stream.read(spark)
    stream.evolve(FIRST.replace("amount int", "amount bigint"), version="v0.0.2")
    stream.write(_events(spark, 10, 2), version="v0.0.2")
    with pytest.raises(ReaderFencedError, match="amount"):
        stream.snapshot(schema="v0.0.1")
    assert held.count() == 10
    assert stream.read(spark).count() == 20


def test_a_streaming_query_writes_every_batch_once(
    spark: SparkSession, stream: instar.Stream, tmp_path: Path
) -> None:
    """A batch that is repeated, because its query died before it could note that, changes nothing."""
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"

    def run(sink: object) -> None:
        frame = spark.readStream.schema(_events(spark, 1, 1).schema).parquet(str(source))
        query = frame.writeStream.foreachBatch(sink)  # type: ignore[arg-type]
        query.option("checkpointLocation", str(checkpoint)).trigger(
            availableNow=True
        ).start().awaitTermination()

    def die_after(batch: DataFrame, number: int) -> None:
        stream.sink("v0.0.1")(batch, number)
        raise RuntimeError("the query dies")

    _events(spark, 100, 4).write.parquet(str(source))
    with pytest.raises(Exception, match="the query dies"):
        run(die_after)
    assert stream.read(spark).count() == 100
    run(stream.sink("v0.0.1"))
    assert stream.read(spark).count() == 100
    _events(spark, 50, 4, first=2).write.mode("append").parquet(str(source))
    run(stream.sink("v0.0.1"))
    assert stream.read(spark).count() == 150
    assert stream.read(spark, "hourly").count() == 150


def test_a_sink_that_dies_between_two_tables_of_a_batch_has_written_it_once(
    spark: SparkSession, stream: instar.Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch has happened once its intent is recorded; the query that is started again finishes it."""
    left = [2]

    def dying(*given: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise SystemError("killed")
        append_item(*given)  # type: ignore[arg-type]

    def run() -> None:
        frame = spark.readStream.schema(_events(spark, 1, 1).schema).parquet(str(tmp_path / "in"))
        query = frame.writeStream.foreachBatch(stream.sink("v0.0.1"))
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()

    _events(spark, 60, 3).write.parquet(str(tmp_path / "in"))
    monkeypatch.setattr("instar.stream.writing.append_item", dying)
    with pytest.raises(Exception, match="killed"):
        run()
    assert sum(table.rows for table in stream.tables()) < 120
    run()
    for kind in ("regular", "hourly"):
        assert sum(table.rows for table in stream.tables(kind)) == 60
    assert _rows(stream.read(spark)) == _rows(_events(spark, 60, 3))


def test_clocks_that_are_put_forward_and_back_move_no_row(spark: SparkSession, stream: instar.Stream) -> None:
    """Tables are of days in UTC, whatever the zone of the session is, and so is a range."""
    times = ("2025-03-09T06:59:59Z", "2025-03-09T07:00:00Z", "2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.createDataFrame([(text,) for text in times], "user string").selectExpr(
            "user", "timestamp(user) at"
        )
        stream.write(frame, version="v0.0.1")
        hourly = [table.name.rpartition("/")[2] for table in stream.tables("hourly")]
        assert hourly == ["2025-03-09_001", "2025-11-02_000", "2025-11-02_001"]
        found = stream.read(spark, start="2025-11-02T05:30", end="2025-11-02T06:30").collect()
        assert [row.user for row in found] == ["2025-11-02T05:30:00Z"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_jobs_copy_every_row_once(spark: SparkSession, stream: instar.Stream, tmp_path: Path) -> None:
    """Repartitioned, end-of-day and archive tables have the rows of regular ones, late and compacted too."""
    stream.write(_events(spark, 200, 5), version="v0.0.1")
    assert stream.repartition(spark, by="billed").rows == 200
    stream.evolve(FIRST.replace("amount int", "amount bigint"), version="v0.0.2")
    stream.write(_events(spark, 40, 5), version="v0.0.2")
    instar.open(tmp_path / "lake").table("billing/events/1d/2025-03-02").compact(full=True)
    assert stream.repartition(spark, by="billed").rows == 40
    assert _rows(stream.read(spark, "repartitioned")) == _rows(stream.read(spark))
    assert str(stream.tables("repartitioned")[0].start) == "2025-03-02"
    assert stream.close_day(spark, "2025-03-01").rows == 48
    kept = stream.archive(spark, before="2025-03-04", drop=True)
    assert (kept.rows, len(kept.dropped), len(kept.kept)) == (144, 1, 2)
    assert [stream.close_day(spark, f"2025-03-0{day}").rows for day in (2, 3)] == [48, 48]
    assert len(stream.archive(spark, before="2025-03-04", drop=True).dropped) == 2
    assert len(stream.tables("regular")) == 2
    assert stream.read(spark).count() + stream.read(spark, "archive").count() == 240
    assert stream.read(spark, "archive", start="2025-03-03").count() == 48


def test_a_table_with_retractions_is_read_among_the_others(
    spark: SparkSession, stream: instar.Stream, tmp_path: Path
) -> None:
    """Rows that were deleted from one table are missing from a range, and only they."""
    stream.write(_events(spark, 100, 4), version="v0.0.1")
    store = instar.open(tmp_path / "lake")
    store.table("billing/events/1d/2025-03-02").delete("amount < 50", spark)
    kept = _events(spark, 100, 4).where("not (date(at) = '2025-03-02' and amount < 50)")
    assert _rows(stream.read(spark)) == _rows(kept)
    assert stream.snapshot().to_arrow().num_rows == kept.count()
