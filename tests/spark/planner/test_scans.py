"""Scans that Spark's planner knows give the same rows as relations over files, and skip the same parts."""

from __future__ import annotations

from importlib.resources import files
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import instar
from instar.errors import UsageError
from instar.spark.commands.examination import examine_planner
from instar.spark.native.gateway import Gateway, gateway_of
from instar.spark.native.origins import find_origins
from instar.spark.planner import compiled, guards
from instar.table.housekeeping.examination import Health
from instar.table.metrics import PLANNER_FALLBACKS
from tests.spark.forgotten import forget_planner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from instar import Table

QUERIES = (
    "SELECT * FROM t",
    "SELECT k FROM t WHERE k > 4 AND s.a < 4",
    "SELECT s.l.y, s.f1 FROM t WHERE s.f1 = 'x'",
    "SELECT s.l[0].x, k FROM t WHERE w LIKE 'v%' OR z > 0",
    "SELECT w, s.f1 FROM t WHERE k >= 0",  # true for every row, so `k` is not read
    "SELECT count(*) FROM t",
    "SELECT a.k, b.s.a FROM t a JOIN t b ON a.k = b.k + 1",
)


def rows_of(frame: DataFrame) -> list[str]:
    """Return rows in an order that does not depend on the plan."""
    return sorted(map(str, frame.collect()))


def forget(monkeypatch: pytest.MonkeyPatch, broken: Mapping[str, str] | None = None) -> None:
    """Let the session be looked at as if it were new, with other classes if some of their text is broken."""
    forget_planner(monkeypatch)
    text = original = files(compiled.__package__).joinpath("planner.java").read_text()
    for right, wrong in (broken or {}).items():
        assert right in text
        text = text.replace(right, wrong)
    source = SimpleNamespace(joinpath=lambda _: SimpleNamespace(read_text=lambda: text))
    monkeypatch.setattr(
        compiled, "files", lambda _: source if text != original else files(compiled.__package__)
    )


def is_planned(frame: DataFrame) -> bool:
    """Whether a scan of the frame is one of Spark's DataSource V2."""
    return "BatchScan" in frame._jdf.queryExecution().toString()


def answers(spark: SparkSession, frame: DataFrame) -> list[list[str]]:
    """Return what all queries say of a frame."""
    frame.createOrReplaceTempView("t")
    return [rows_of(spark.sql(query)) for query in QUERIES]


def test_the_same_rows_on_both_paths(planned: SparkSession, events: Table) -> None:
    """Columns that are pruned, nested, widened, renamed or missing read the same."""
    found = answers(planned, events.read(planned))
    assert is_planned(events.read(planned))
    planned.conf.set("instar.planner", "files")
    assert not is_planned(events.read(planned))
    assert found == answers(planned, events.read(planned))
    assert len(found[0]) == 11


def test_filters_skip_parts(planned: SparkSession, events: Table) -> None:
    """A filter skips the parts that its bounds exclude, and the report says so.

    A struct with a member that looks like a name in files is cast under physical names, and not seen through.
    """
    frame = events.read(planned)
    (report,) = instar.scan_reports(frame.where("k + 1 > 9 AND s.a < 9"))
    assert (report.total, report.read) == (6, 2)
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
    (origin,) = find_origins(events.read(planned).selectExpr("k AS key", "upper(w) AS big"))
    assert origin.name == "events"
    assert [(own.column, own.source) for own in origin.columns] == [("big", "w"), ("key", "k")]


def test_a_setting_that_is_no_choice(planned: SparkSession, events: Table) -> None:
    """`instar.planner` is `auto` or `files`, and nothing else."""
    planned.conf.set("instar.planner", "fast")
    with pytest.raises(UsageError, match="setting instar"):
        events.read(planned)


LOST = {"asList((Object[]) files)": "asList(Arrays.copyOf((Object[]) files, files.length - 1))"}
BROKEN = {
    "files": LOST,
    "retractions": {"said.put(TAKEN, ": 'said.put("other", '},
    "ids": {"own.nullable(), own.metadata()": "own.nullable(), asked.metadata()"},
    "classes": {"new ParquetScan(": "new ParquetScan(1, "},
}


def test_a_spark_that_lacks_an_interface(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an interface its feature is off, and `doctor` says so; some of them are needed for any."""
    original = compiled.find_class

    def find(gateway: Gateway, name: str) -> object | None:
        return None if name.endswith(lacking) else original(gateway, name)

    lacking = "SupportsPushDownAggregates"
    forget(monkeypatch)
    monkeypatch.setattr(compiled, "find_class", find)
    assert is_planned(events.read(planned).groupBy().count())
    assert events.read(planned).count() == 11
    finding = examine_planner(gateway_of(planned))
    assert finding.health is Health.WARNING
    assert "no answers from metadata: it has no org.apache" in finding.found
    lacking = "SupportsPushDownCatalystFilters"
    forget(monkeypatch)
    fallbacks = PLANNER_FALLBACKS._value.get()
    with pytest.warns(UserWarning, match="SupportsPushDownCatalystFilters"):
        assert not is_planned(events.read(planned))
    assert not is_planned(events.read(planned))  # said once, and counted twice
    assert PLANNER_FALLBACKS._value.get() == fallbacks + 2
    assert "no scans" in examine_planner(gateway_of(planned)).found


def test_a_listing_that_is_lost_is_noticed(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scan never reads fewer files than it was told to: what Spark holds is counted."""
    forget(monkeypatch, LOST)
    monkeypatch.setattr(guards, "_try_out", lambda _: None)
    frame = events.read(planned)
    with (
        pytest.raises(UsageError, match="Spark holds 5 of 6 files"),
        pytest.warns(UserWarning, match="5 of 6"),
    ):
        frame.collect()
    assert not is_planned(events.read(planned))


@pytest.mark.parametrize("broken", BROKEN)
def test_guards_are_tried_out_first(
    planned: SparkSession, events: Table, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """A session in which Spark loses files or ids, or has other classes, is read over files."""
    assert examine_planner(gateway_of(planned)).health is Health.FINE
    forget(monkeypatch, BROKEN[broken])
    with pytest.warns(UserWarning, match="without Spark's planner"):
        assert not is_planned(events.read(planned))
    assert examine_planner(gateway_of(planned)).health is Health.WARNING
    forget(monkeypatch)
    assert is_planned(events.read(planned))


def test_a_scan_is_no_stream(planned: SparkSession, events: Table) -> None:
    """Spark itself refuses to stream what is no stream, and says so."""
    with pytest.raises(Exception, match=r"(?i)stream"):
        events.read(planned).writeStream.format("noop").start()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.hive.manageFilesourcePartitions", "false"),
        ("spark.sql.hive.filesourcePartitionFileCacheSize", "0"),
        ("spark.sql.files.ignoredPathSegmentRegex", "nothing"),
    ],
)
def test_no_setting_loses_the_listing(planned: SparkSession, events: Table, name: str, value: str) -> None:
    """Whatever a session says of listings, the files are handed over all the same."""
    before = planned.conf.get(name)
    planned.conf.set(name, value)
    try:
        assert events.read(planned).count() == 11
    finally:
        planned.conf.set(name, str(before))


def test_a_narrow_scan_says_to_be_as_large_as_one_of_files(planned: SparkSession, events: Table) -> None:
    """So that Spark broadcasts the same side of a join, and not a large table for its one column."""
    sizes = {}
    for way in ("files", "auto"):
        planned.conf.set("instar.planner", way)
        plan = events.read(planned).select("k")._jdf.queryExecution().optimizedPlan()
        sizes[way] = int(str(plan.stats().sizeInBytes()))
    assert sizes["auto"] == pytest.approx(sizes["files"], rel=0.02)
