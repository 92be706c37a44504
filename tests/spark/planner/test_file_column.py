"""Frames that Spark's planner knows have the column `_metadata` too: what reads it is read over files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import instar
from instar.spark.native.gateway import gateway_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table


def places(frame: DataFrame) -> DataFrame:
    """Return all that Spark tells of where rows are, of some of them."""
    return frame.where("k > 2").selectExpr("k", "s.a", "_metadata.file_path", "_metadata.row_index")


QUESTIONS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "places": places,
    "whole": lambda frame: frame.select("_metadata"),
    "counts": lambda frame: frame.groupBy("_metadata.file_name").count(),
    "ends": lambda frame: frame.selectExpr("count(*)", "max(_metadata.file_size)", "min(z)"),
    "filters": lambda frame: frame.where("_metadata.row_index = 1 AND k < 9").select("k", "w"),
    "joins": lambda frame: frame.selectExpr("k", "_metadata.file_name AS name").join(
        frame.selectExpr("k + 1 AS k", "s.f1 AS f"), "k"
    ),
    "firsts": lambda frame: frame.selectExpr("z", "_metadata.row_index i", "k").orderBy("i", "k").limit(3),
}


def rows_of(frame: DataFrame) -> list[str]:
    """Return rows in an order that does not depend on the plan."""
    return sorted(map(str, frame.collect()))


@pytest.mark.parametrize("question", QUESTIONS)
def test_where_rows_are_is_told_on_both_paths(planned: SparkSession, events: Table, question: str) -> None:
    """Whatever is asked of `_metadata`, the answer is that of Spark's own relation over files."""
    found = rows_of(QUESTIONS[question](events.read(planned)))
    planned.conf.set("instar.planner", "files")
    assert found == rows_of(QUESTIONS[question](events.read(planned)))
    assert found


def test_only_what_reads_it_is_read_over_files(planned: SparkSession, events: Table) -> None:
    """A query that asks for `_metadata` skips parts as any does; one that drops it again is planned."""
    frame = events.read(planned)
    (report,) = instar.scan_reports(places(frame))
    assert (report.read, report.total) == (5, 6)
    assert "BatchScan" not in places(frame)._jdf.queryExecution().toString()
    dropped = frame.selectExpr("k", "_metadata AS place").select("k")
    assert "BatchScan" in dropped._jdf.queryExecution().toString()
    assert len(dropped.collect()) == 11
    assert "_metadata" not in frame.columns


def test_retracted_rows_leave_the_names_of_files(planned: SparkSession, store: Store) -> None:
    """Beside parts with retracted rows, the file of each row is told; positions are in use, and refused."""
    table = store.create_table("numbers", "n int")
    for first in (0, 10):
        table.append(pa.table({"n": pa.array(range(first, first + 10), pa.int32())}))
    table.delete("n = 4")
    frame = table.read(planned)
    assert sorted(row["count"] for row in frame.groupBy("_metadata.file_name").count().collect()) == [9, 10]
    assert frame.selectExpr("n", "_metadata AS place").select("n").count() == 19
    with pytest.raises(AnalysisException, match="reserved column name"):
        frame.select("n", "_metadata.row_index").collect()


def test_without_the_setting_tables_are_planned(planned: SparkSession, events: Table) -> None:
    """A session that says nothing has tables that Spark's planner knows."""
    planned.conf.unset("instar.planner")
    assert not gateway_of(planned).settings(["instar.planner"])
    assert "BatchScan" in events.read(planned)._jdf.queryExecution().toString()
