"""Python on Spark's workers, and what Spark complains about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError, WorkerVersionError
from instar.schema import as_schema
from instar.spark.greeting import greeted
from instar.spark.source.part_tasks import ScanTask, read_task
from instar.spark.workers import collect
from instar.storage import ObjectBlob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store


def test_workers_run_the_python_that_has_instar(
    store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an environment that was not activated, `python3` from the path is another one."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    table = store.create_table("workers", "k int, v int", key=["k"])
    assert table.append(spark.sql("select 1 as k, 2 as v")).rows == 1
    assert spark.sparkContext.pythonExec == sys.executable
    table.upsert(spark.sql("select 1 as k, 3 as v, 'x' as w"), evolve=True)
    assert table.to_pandas().to_dict("list") == {"k": [1], "v": [3], "w": ["x"]}


@pytest.mark.native
def test_a_wrong_condition_is_an_error_of_instar(store: Store, spark: SparkSession) -> None:
    """Whether Spark does not know a column, cannot read the text, or fails on a row."""
    table = store.create_table("conditions", "k int")
    table.append(spark.sql("select 1 as k"))
    for condition in ("nosuch = 1", "k =", "1 / (k - 1) > 0"):
        with pytest.raises(UsageError) as info:
            table.delete(condition, spark)
        assert "SQLSTATE" not in str(info.value)
        assert "JVM" not in str(info.value)
    with pytest.raises(UsageError, match="nosuch"):
        table.update({"k": "nosuch"}, spark=spark)


def test_workers_with_another_instar_are_an_error(
    store: Store, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is stored, it says which version is where, and what to install."""
    table = store.create_table("versions", "k int")
    with monkeypatch.context() as patched:
        patched.setattr("instar.spark.workers.version", lambda _: "99.0.0")
        with pytest.raises(WorkerVersionError, match=r"Install instar 99\.0\.0 for the Python"):
            table.append(spark.sql("select 1 as k"))
    assert table.count() == 0
    assert not list(Path(store.location).rglob("*.parquet"))


def test_workers_without_instar_are_an_error(spark: SparkSession) -> None:
    """What they run first does not need it."""
    frame = spark.range(1).mapInArrow(greeted(lambda batches: batches, "1.0", "no-such-package"), "id bigint")
    with pytest.raises(WorkerVersionError, match="workers have no instar"):
        collect(frame)


def test_a_task_of_another_version_is_not_run() -> None:
    """The format `instar` sends tasks, which say who planned them."""
    task = ScanTask(ObjectBlob.in_memory(), (), as_schema("k int"))
    task.planned_by = "0.0.1"
    with pytest.raises(WorkerVersionError, match=r"the driver has instar 0\.0\.1"):
        list(read_task(task))
