"""Streams out of tables and into them: what a batch has, when it stops, and what a restart repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import instar
from instar.spark.source.data_source import InstarSource
from instar.spark.source.part_tasks import ChangesTask, changes_tasks, read_task
from instar.table.read.listen import plan_changes
from instar.table.read.snapshot import resolve_reader
from tests.tables import list_leases

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table


@pytest.fixture
def store(tmp_path: Path, spark: SparkSession) -> Iterator[Store]:
    """Return a store whose source and sink are known to Spark."""
    with instar.open(tmp_path / "lake") as opened:
        opened.initialise()
        instar.register(spark, opened)
        yield opened


def rows(*numbers: int) -> pa.Table:
    """Return data for a table `k int, v string`."""
    return pa.table({"k": pa.array(numbers, pa.int32()), "v": [f"v{number}" for number in numbers]})


def retract(table: Table, *numbers: int) -> instar.Commit:
    """Take rows back."""
    return table.apply(rows(*numbers).append_column("_diff", pa.array([-1] * len(numbers))))


def stream(spark: SparkSession, store: Store, table: str, **options: str) -> DataFrame:
    """Read a table as a stream."""
    reader = spark.readStream.format("instar").option("store", store.location).option("table", table)
    return reader.options(**options).load()


def drain(frame: DataFrame, checkpoint: Path, sink: dict[str, str]) -> None:
    """Process all that there is now."""
    writer = frame.writeStream.format("instar").options(**sink)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def gather(frame: DataFrame, checkpoint: Path) -> list[tuple[Any, ...]]:
    """Process all that there is now, and return the rows."""
    seen: list[tuple[Any, ...]] = []

    def keep(batch: DataFrame, _: int) -> None:
        seen.extend(tuple(row) for row in batch.collect())

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return sorted(seen)


def contents(table: Table) -> list[int]:
    """Return the keys that a table holds, in order."""
    return sorted(table.snapshot().to_arrow().column("k").to_pylist())


def test_a_stream_tells_every_update_once_with_time_and_diff(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """The first run tells all, the next goes on where it ended; nothing new means no row."""
    table = store.create_table("t", "k int, v string")
    first = table.append(rows(1, 2))
    second = retract(table, 1)
    frame = stream(spark, store, "t")
    assert frame.columns == ["k", "v", "_ts", "_diff"]
    told = gather(frame, tmp_path / "cp")
    assert told == [(1, "v1", first.ts, 1), (1, "v1", second.ts, -1), (2, "v2", first.ts, 1)]
    third = table.append(rows(3))
    assert gather(stream(spark, store, "t"), tmp_path / "cp") == [(3, "v3", third.ts, 1)]
    assert gather(stream(spark, store, "t"), tmp_path / "cp") == []


def test_a_stream_begins_after_a_time_and_has_only_the_columns_asked_for(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """`since` is the last time that is known already; `columns` are names."""
    table = store.create_table("t", "k int, v string")
    first = table.append(rows(1))
    second = table.append(rows(2))
    frame = stream(spark, store, "t", since=str(first.ts), columns="v")
    assert gather(frame, tmp_path / "cp") == [("v2", second.ts, 1)]


def test_many_small_parts_are_one_task(tmp_path: Path) -> None:
    """A task costs more than a small part does, so the first batch over a table has few of them."""
    with instar.open(tmp_path / "lake") as opened:
        table = opened.create_table("t", "k int, v string")
        for number in range(9):
            table.append(rows(number))
        options = {"store": opened.location, "table": "t", "changes": "true"}
        made = InstarSource(options)
        source = made.streamReader(made.schema())
        [task] = source.partitions({"upper": 0}, {"upper": table.upper})
        assert isinstance(task, ChangesTask)
        assert len(task.parts) == 9
        source.stop()


def test_a_stream_tells_what_was_retracted_by_position(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """With all values and a diff of -1; also after a compaction, by the same stream and by a new one."""
    table = store.create_table("t", "k int, v string", key=["k"], order_by=["k"])
    added = [table.append(rows(1, 2, 3)), table.append(rows(4, 5))]
    gone = table.delete("k in (1, 4)")
    retract(table, 5)
    replaced = table.upsert([{"k": 2, "v": "new"}])
    frame = stream(spark, store, "t")
    first = gather(frame, tmp_path / "same")
    assert {(1, "v1", gone.ts, -1), (2, "v2", replaced.ts, -1), (2, "new", replaced.ts, 1)} < {*first}
    assert len(first) == 5 + 2 + 1 + 2
    table.compact(spark, full=True)
    assert gather(frame, tmp_path / "same") == []
    assert gather(frame, tmp_path / "new") == first
    last = table.delete("k = 3", spark)
    table.compact(full=True)
    store.vacuum(grace_ms=0)
    assert gather(frame, tmp_path / "same") == [(3, "v3", last.ts, -1)]
    later = gather(stream(spark, store, "t", since=str(added[1].ts)), tmp_path / "later")
    assert later == sorted(row for row in [*first, (3, "v3", last.ts, -1)] if row[2] > added[1].ts)


def test_what_was_retracted_is_read_by_several_tasks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delete may take rows of every part of a large table."""
    monkeypatch.setattr("instar.spark.source.part_tasks._GROUP_PARTS", 2)
    table = store.create_table("t", "k int, v string")
    for part in range(5):
        table.append(rows(part, part + 10))
    since = table.delete("k >= 10").ts
    state = table.state
    plan = plan_changes(table._services.chunks, state, resolve_reader(state, None, None), since)
    tasks = changes_tasks(table._services.blob, plan)
    assert len(tasks) == 3
    told = pa.Table.from_batches(batch for task in tasks for batch in read_task(task))
    assert sorted(told["k"].to_pylist()) == list(range(10, 15))
    assert told["_diff"].to_pylist() == [-1] * 5


def test_a_fenced_stream_stops_with_the_reason(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    """A running stream is checked at each batch; opened again, it reads under the schema of then."""
    table = store.create_table("t", "k int, v string")
    table.append(rows(1))
    frame = stream(spark, store, "t")
    gather(frame, tmp_path / "cp")
    table.evolve().drop_column("v").commit()
    last = table.append(rows(2).select(["k"]))
    with pytest.raises(
        StreamingQueryException, match="ReaderFencedError: reader of `t` at schema 0 is fenced"
    ):
        gather(frame, tmp_path / "cp")
    assert gather(stream(spark, store, "t"), tmp_path / "cp") == [(2, last.ts, 1)]


def test_a_table_flows_into_another(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    """With `apply`, retractions of one table retract in the other; each run adds what is new."""
    origin = store.create_table("origin", "k int, v string")
    copy = store.create_table("copy", "k int, v string")
    sink = {"store": store.location, "table": "copy", "apply": "true"}
    origin.append(rows(1, 2, 3))
    retract(origin, 2)
    drain(stream(spark, store, "origin"), tmp_path / "cp", sink)
    assert contents(copy) == [1, 3]
    origin.append(rows(4))
    retract(origin, 1)
    drain(stream(spark, store, "origin"), tmp_path / "cp", sink)
    assert contents(copy) == [3, 4]
    assert list(list_leases(copy._services, copy.state.table_id)) == []


def test_a_batch_that_is_repeated_is_committed_once(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """Spark forgot that a batch was done, as in a crash after the commit: its repetition does nothing."""
    origin = store.create_table("origin", "k int, v string")
    copy = store.create_table("copy", "k int, v string")
    origin.append(rows(1, 2))
    frame = stream(spark, store, "origin").select("k", "v")
    sink = {"store": store.location, "table": "copy"}
    drain(frame, tmp_path / "cp", sink)
    commits = tmp_path / "cp" / "commits"
    for entry in [*commits.glob("0"), *commits.glob(".0.crc")]:
        entry.unlink()
    drain(frame, tmp_path / "cp", sink)
    origin.append(rows(3))
    drain(frame, tmp_path / "cp", sink)
    assert contents(copy) == [1, 2, 3]
    appended = [commit for commit in copy.history() if commit.what.startswith("appended")]
    assert len(appended) == 2


def test_a_new_checkpoint_is_a_new_stream(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    """Batches are told apart by the id that the checkpoint keeps, not by where it is."""
    origin = store.create_table("origin", "k int, v string")
    copy = store.create_table("copy", "k int, v string")
    origin.append(rows(1))
    frame = stream(spark, store, "origin").select("k", "v")
    sink = {"store": store.location, "table": "copy"}
    drain(frame, tmp_path / "cp", sink)
    (tmp_path / "cp").rename(tmp_path / "old")
    drain(frame, tmp_path / "cp", sink)
    assert contents(copy) == [1, 1]


def test_a_row_that_does_not_fit_stops_the_stream_and_nothing_is_committed(
    spark: SparkSession, store: Store, tmp_path: Path
) -> None:
    """The reason is in the query's exception; after the repair, the same checkpoint goes on."""
    origin = store.create_table("origin", "k int, v string")
    copy = store.create_table("copy", "k int not null, v string")
    origin.append(pa.table({"k": pa.array([1, None], pa.int32()), "v": ["a", "b"]}))
    frame = stream(spark, store, "origin").select("k", "v")
    sink = {"store": store.location, "table": "copy"}
    with pytest.raises(StreamingQueryException, match="column `k` of the data does not fit"):
        drain(frame, tmp_path / "cp", sink)
    assert contents(copy) == []
    copy.evolve().make_nullable("k").commit()
    drain(frame, tmp_path / "cp", sink)
    assert copy.snapshot().to_arrow().num_rows == 2


def test_new_columns_evolve_the_table_if_asked(spark: SparkSession, store: Store, tmp_path: Path) -> None:
    """With `evolve`, a column that the table has not is added in the commit of the first batch."""
    origin = store.create_table("origin", "k int, v string")
    copy = store.create_table("copy", "k int")
    origin.append(rows(1))
    frame = stream(spark, store, "origin").select("k", "v")
    sink = {"store": store.location, "table": "copy"}
    with pytest.raises(StreamingQueryException, match="`v`"):
        drain(frame, tmp_path / "cp", sink)
    drain(frame, tmp_path / "cp", {**sink, "evolve": "true"})
    assert copy.snapshot().to_arrow().to_pylist() == [{"k": 1, "v": "v1"}]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"tabel": "t"}, "there is no option 'tabel'"),
        ({"since": "yesterday"}, "must be a number"),
        ({"columns": "nope"}, "there is no column `nope`"),
        ({"changes": "false"}, "a stream reads the changes of a table"),
    ],
)
def test_wrong_options_are_named(
    spark: SparkSession, store: Store, tmp_path: Path, options: dict[str, str], why: str
) -> None:
    """A stream that cannot be says why, by the time that it is started."""
    store.create_table("t", "k int, v string")
    with pytest.raises(Exception, match=why):
        gather(stream(spark, store, "t", **options), tmp_path / "cp")
