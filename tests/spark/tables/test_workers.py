"""Python on Spark's workers, and what Spark complains about."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from instar.errors import UsageError

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
