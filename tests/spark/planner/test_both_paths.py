"""Whatever is asked, planned scans, relations over files and scans that skip nothing give the same rows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.spark.skipping import oracle
from tests.spark.skipping.grammar import make_filter
from tests.spark.skipping.poison import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table

PARTS, ROWS, FILTERS = 8, 4, 10


@pytest.fixture
def poisoned(planned: SparkSession, store: Store) -> Table:
    """Return a table of values that go wrong, with a dropped column, and one by another name."""
    oracle.register(planned, oracle.make_parts(Random(19), PARTS, ROWS), "poisoned_rows")
    rows = planned.table("poisoned_rows").toArrow()
    then = {**COLUMNS, "i": "smallint", "gone": "int"}
    table = store.create_table("poisoned", ", ".join(f"then_{name} {type_}" for name, type_ in then.items()))
    table.append(
        pa.table({"then_gone": pa.array([1, 2], pa.int32()), "then_i": pa.array([3, None], pa.int16())})
    )
    update = table.evolve().drop_column("then_gone").widen_column("then_i", "int")
    for name in COLUMNS:
        update.rename_column(f"then_{name}", name)
    update.commit()
    for number in range(PARTS):
        table.append(rows.filter(pc.equal(rows.column("part"), number)).drop_columns(["part"]))
    return table


def outcome(frame: DataFrame, text: str) -> list[int] | None:
    """Return a hash of each row that a filter is true for, as dates may not be Python's; None if it fails."""
    try:
        return sorted(row[0] for row in frame.where(text).selectExpr("xxhash64(*)").collect())
    except (PySparkException, Py4JJavaError):
        return None


def frames_of(spark: SparkSession, table: Table) -> dict[str, DataFrame]:
    """Return the same rows on every path."""
    frames = {}
    for way in ("auto", "files"):
        spark.conf.set("instar.planner", way)
        frames[way] = table.read(spark)
    spark.conf.set("instar.planner", "auto")
    frames["all"] = table.snapshot(skipping="off").to_spark(spark)
    return frames


def test_random_filters_on_every_path(planned: SparkSession, poisoned: Table) -> None:
    """Random filters over random parts give the same rows, or fail, planned or not, skipping or not."""
    frames, luck = frames_of(planned, poisoned), Random(7)
    some = 0
    for _ in range(FILTERS):
        text = str(make_filter(luck, luck.choice((1, 2, 2))))
        expected, *others = (
            outcome(frame, text) for frame in (frames["all"], frames["auto"], frames["files"])
        )
        assert others == [expected, expected], text
        some += bool(expected)
    assert some


QUESTIONS = (
    "SELECT * FROM {0}",
    "SELECT s.a, l FROM {0} WHERE k > 2",
    "SELECT count(*), count(v), min(k), max(k) FROM {0}",
    "SELECT v, count(*), max(k) FROM {0} GROUP BY v",
    "SELECT a.k, b.v FROM {0} a JOIN {0} b ON a.k = b.k + 1 WHERE b.v = 'v2'",
    "SELECT k FROM {0} ORDER BY k DESC NULLS LAST LIMIT 3",
    "SELECT k FROM {0} WHERE k >= (SELECT max(k) - 3 FROM {0})",
)


def test_random_histories_on_every_path(planned: SparkSession, store: Store) -> None:
    """Tables that were changed in every way answer the same on every path, at every step."""
    luck = Random(1)
    table = store.create_table(
        "changed", "k int, v string, s struct<a int, b string>, l array<int>", key=["k"]
    )
    steps: list[Callable[[], object]] = [
        lambda: table.delete(f"k % {luck.randrange(3, 6)} = 1"),
        lambda: table.evolve().widen_column("k", "bigint").add_column("z", "double").commit(),
        lambda: table.upsert(pa.table({"k": [2, 77], "v": ["new", "v2"]})),
        lambda: [table.evolve().rename_column(*names).commit() for names in (("v", "w"), ("w", "v"))],
        table.compact,
        lambda: table.delete("k < 0"),
    ]
    luck.shuffle(steps)
    for number, step in enumerate(steps):
        keys = pa.array(range(number * 4, number * 4 + 4))
        nested = [{"a": number, "b": None}, None] * 2
        table.append(
            pa.table({"k": keys, "v": [f"v{number}"] * 4, "s": nested, "l": [[1], None, [], [2, 3]]})
        )
        step()
        frames = frames_of(planned, table)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(f"changed_{name}")
        for question in QUESTIONS if number % 2 else QUESTIONS[::2]:
            expected, *others = (
                sorted(map(str, planned.sql(question.format(f"changed_{name}")).collect()))
                for name in ("all", "auto", "files")
            )
            assert others == [expected, expected], question
