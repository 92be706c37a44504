"""Scans that Spark's planner knows give the same rows as relations over files, and skip the same parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import instar
from instar.errors import UsageError
from instar.spark.commands.examination import examine_planner
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import widened_decimals
from instar.spark.native.origins import find_origins
from instar.spark.native.scan_source import Branch, SnapshotSource
from instar.spark.planner import guards, interfaces
from instar.spark.planner.interfaces import Feature, Interfaces
from instar.spark.planner.objects import PlannerObject
from instar.spark.planner.table import named_columns, planned_frame, planned_table, why_not_planned
from instar.table.housekeeping.examination import Health
from instar.table.metrics import PLANNER_FALLBACKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

QUERIES = (
    "SELECT * FROM t",
    "SELECT k FROM t WHERE k > 4 AND s.a < 4",
    "SELECT s.l.y, s.f1 FROM t WHERE s.f1 = 'x'",
    "SELECT s.l[0].x, k FROM t WHERE w LIKE 'v%' OR z > 0",
    "SELECT count(*) FROM t",
    "SELECT a.k, b.s.a FROM t a JOIN t b ON a.k = b.k + 1",
)


def rows_of(frame: DataFrame) -> list[str]:
    """Return rows in an order that does not depend on the plan."""
    return sorted(map(str, frame.collect()))


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the session be looked at as if it were new."""
    monkeypatch.setattr(interfaces, "_interfaces", {})
    monkeypatch.setattr(guards, "_found", {})
    monkeypatch.setattr(guards, "_warned", {})


def is_planned(frame: DataFrame) -> bool:
    """Whether a scan of the frame is one of Spark's DataSource V2."""
    return "BatchScan" in frame._jdf.queryExecution().toString()


def named_frame(spark: SparkSession, table: Table) -> DataFrame:
    """Return a frame over a table whose columns Spark knows as people do, as in a catalog."""
    snapshot = table.snapshot()
    plan = snapshot._plan
    fields = plan.reader.schema.fields
    source = SnapshotSource(
        gateway_of(spark), table._services, Branch.SCAN, fields, {}, plan, snapshot._open_pin()
    )
    columns = named_columns(fields, widened_decimals(plan.state.history, fields))
    return planned_frame(spark, planned_table(spark, source, columns, "instar:/events"))


def answers(spark: SparkSession, frame: DataFrame) -> list[list[str]]:
    """Return what all queries say of a frame."""
    frame.createOrReplaceTempView("t")
    return [rows_of(spark.sql(query)) for query in QUERIES]


def test_the_same_rows_on_both_paths(planned: SparkSession, events: Table) -> None:
    """Columns that are pruned, nested, widened, renamed or missing read the same, under any names."""
    found = answers(planned, events.read(planned))
    named = answers(planned, named_frame(planned, events))
    assert is_planned(events.read(planned))
    planned.conf.set("instar.planner", "files")
    assert not is_planned(events.read(planned))
    assert found == named == answers(planned, events.read(planned))
    assert len(found[0]) == 11


@pytest.mark.parametrize("name", ["physical", "named"])
def test_filters_skip_parts(planned: SparkSession, events: Table, name: str) -> None:
    """A filter skips the parts that its bounds exclude, and the report says so.

    A struct with a member that looks like a name in files is cast under physical names, and not seen through.
    """
    frame = events.read(planned) if name == "physical" else named_frame(planned, events)
    (report,) = instar.scan_reports(frame.where("k + 1 > 9 AND s.a < 9"))
    assert (report.total, report.read) == (6, 1 if name == "named" else 2)
    assert rows_of(frame.where("k + 1 > 9 AND s.a < 9").select("k")) == []
    (everything,) = instar.scan_reports(frame)
    assert everything.read == 6


def test_equal_scans_are_read_once(planned: SparkSession, events: Table) -> None:
    """Two scans of one state with the same columns and filters are equal to Spark, which reads them once."""
    planned.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        one, other = (events.read(planned).where("k > 3").groupBy("w").count() for _ in range(2))
        united = one.union(other)
        assert "ReusedExchange" in united._jdf.queryExecution().toString()
        different = one.union(events.read(planned).where("k > 2").groupBy("w").count())
        assert "ReusedExchange" not in different._jdf.queryExecution().toString()
    finally:
        planned.conf.unset("spark.sql.adaptive.enabled")


def test_lineage_knows_planned_scans(planned: SparkSession, events: Table) -> None:
    """Where the columns of a frame come from is known for planned scans too."""
    for frame in (events.read(planned), named_frame(planned, events)):
        (origin,) = find_origins(frame.selectExpr("k AS key", "upper(w) AS big"))
        assert origin.name == "events"
        assert [(own.column, own.source) for own in origin.columns] == [("big", "w"), ("key", "k")]


def test_a_setting_that_is_no_choice(planned: SparkSession, events: Table) -> None:
    """`instar.planner` is `auto` or `files`, and nothing else."""
    planned.conf.set("instar.planner", "fast")
    with pytest.raises(UsageError, match="setting instar"):
        events.read(planned)


def test_a_spark_that_lacks_an_interface(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an interface, or with one that asks for more, tables are read over files."""
    assert why_not_planned(gateway_of(planned)) is None
    forget(monkeypatch)
    original = Interfaces._methods

    def methods(self: Interfaces, name: str) -> set[str] | None:
        found = original(self, name)
        return (
            found if found is None or not name.endswith("SupportsReportStatistics") else found | {"novelty"}
        )

    monkeypatch.setattr(Interfaces, "_methods", methods)
    assert "novelty" in str(why_not_planned(gateway_of(planned)))
    fallbacks = PLANNER_FALLBACKS._value.get()
    with pytest.warns(UserWarning, match="novelty"):
        assert not is_planned(events.read(planned))
    assert not is_planned(events.read(planned))  # said once, and counted twice
    assert PLANNER_FALLBACKS._value.get() == fallbacks + 2
    finding = examine_planner(gateway_of(planned))
    assert finding.health is Health.WARNING
    assert "novelty" in finding.found
    forget(monkeypatch)
    monkeypatch.setattr(Interfaces, "find_class", lambda *_: None)
    assert Feature.SCAN.interfaces[0] in str(why_not_planned(gateway_of(planned)))


def test_a_listing_that_is_lost_is_noticed(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan never reads fewer files than it was told to: what Spark holds is counted."""
    statuses = gateway_of(planned).statuses

    def fewer(files: list[Any]) -> object:
        return statuses(files[1:])

    frame = events.read(planned)
    forget(monkeypatch)
    monkeypatch.setattr(gateway_of(planned), "statuses", fewer)
    with (
        pytest.raises(UsageError, match="Spark holds 5 of 6 files"),
        pytest.warns(UserWarning, match="5 of 6"),
    ):
        frame.collect()
    monkeypatch.setattr(gateway_of(planned), "statuses", statuses)


def test_guards_are_tried_out_first(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session in which Spark loses files, or does not see that scans are equal, is read over files."""
    assert examine_planner(gateway_of(planned)).health is Health.FINE
    statuses = gateway_of(planned).statuses
    for broken in ("statuses", "equals"):
        forget(monkeypatch)
        with monkeypatch.context() as patch:
            if broken == "statuses":
                patch.setattr(gateway_of(planned), "statuses", lambda files: statuses(files[1:]))
            else:
                patch.setattr(PlannerObject, "equals", lambda self, other: self is other)
            with pytest.warns(UserWarning, match="without Spark's planner"):
                assert not is_planned(events.read(planned))
            assert examine_planner(gateway_of(planned)).health is Health.WARNING
    forget(monkeypatch)
    assert is_planned(events.read(planned))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.hive.manageFilesourcePartitions", "false"),
        ("spark.sql.hive.filesourcePartitionFileCacheSize", "0"),
        ("spark.sql.files.ignoredPathSegmentRegex", "nothing"),
    ],
)
def test_no_setting_loses_the_listing(planned: SparkSession, events: Table, name: str, value: str) -> None:
    """Spark's own cache of listings may be off: the files are handed over all the same."""
    before = planned.conf.get(name)
    planned.conf.set(name, value)
    try:
        assert events.read(planned).count() == 11
    finally:
        planned.conf.set(name, str(before))
