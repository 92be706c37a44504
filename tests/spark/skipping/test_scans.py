"""Skipping inside Spark's own queries: fewer parts, the same rows, in every mode and any query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import instar
from instar.errors import UsageError
from instar.schema import arrow_type
from instar.table.metrics import PARTS_SKIPPED
from tests.spark.skipping.grammar import make_filter
from tests.spark.skipping.poison import COLUMNS, SCHEMA, make_part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from instar import Store, Table
    from instar.schema import Type

DAY = datetime(2026, 1, 1, tzinfo=UTC)
PARTS, ROWS = 12, 10


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session of its own, with settings of its own."""
    own = spark.newSession()
    own.conf.set("spark.sql.session.timeZone", "UTC")
    yield own
    own.catalog.clearCache()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store for all tests here."""
    with instar.open(tmp_path_factory.mktemp("skipping") / "lake") as opened:
        yield opened


@pytest.fixture(scope="module")
def table(store: Store) -> Table:
    """Return a table of 12 parts with 10 rows each, in the order of all its columns."""
    made = store.create_table(
        "t", "id bigint, s string, at timestamp, raw binary, price decimal(10,2), n struct<x: int, y: string>"
    )
    for part in range(PARTS):
        made.append(numbers(range(part * ROWS, part * ROWS + ROWS)))
    return made


def numbers(ids: range) -> pa.Table:
    """Return rows that all say their number."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [f"k{number:04d}" for number in ids],
            "at": pa.array([DAY + timedelta(hours=3 * number) for number in ids], pa.timestamp("us", "UTC")),
            "raw": [number.to_bytes(2) for number in ids],
            "price": pa.array([Decimal(number) for number in ids], pa.decimal128(10, 2)),
            "n": [{"x": number, "y": f"y{number % 3}"} for number in ids],
        }
    )


def parts_read(frame: DataFrame) -> list[int]:
    """Return how many parts each scan of a frame reads."""
    return [report.read for report in instar.scan_reports(frame)]


def ids(frame: DataFrame) -> list[int]:
    """Return the numbers of the rows."""
    return sorted(row["id"] for row in frame.select("id").collect())


MANY = ", ".join(str(number) for number in (3, 4, *range(41, 60)))
DATES = ", ".join(f"date'2026-01-{day:02d}'" for day in range(5, 20))
FILTERS = {
    "id = 55": 1,
    "id + 1 = 56": 1,
    "id / 10 > 11": 1,
    "-id > -5": 1,
    "abs(id - 50) < 3": 2,
    "s like 'k005%'": 1,
    "s like 'k005!_' escape '!'": 0,
    "date_trunc('day', at) = '2026-01-05'": 1,
    "year(at) = 2025": 0,
    "dateadd(hour, 48, at) < '2026-01-03 02:00'": 1,
    "timestampadd(month, 1, at) < '2026-01-31'": 0,
    "unix_timestamp(date(at)) = 1767225600": 1,
    "cast(at as timestamp_ntz) < timestamp_ntz'2026-01-01 03:00:00'": 1,
    "n.x between 100 and 105": 1,
    "n.x = 7 or n.x = 77": 2,
    "raw = X'0037'": 1,
    "price > 110.5": 1,
    f"id in ({MANY})": 3,
    f"date(at) in ({DATES})": 9,
    "case when id < 60 then 'low' else 'high' end = 'high'": 6,
    "try_cast(s as int) is null and id > 115": 1,
    "coalesce(n.x, -1) = -1": 0,
    "id = 55 and soundex(s) = 'K000'": 1,
    "soundex(s) = 'x'": PARTS,
}


def test_a_query_reads_the_parts_that_its_filter_needs(session: SparkSession, table: Table) -> None:
    """The whole filter reaches the proof: modes, escapes, sets, bytes and members of structs included."""
    frame, everything = table.read(session), table.snapshot(skipping="off").to_spark(session).cache()
    wrong = {}
    for text, ideal in FILTERS.items():
        found = frame.where(text)
        (read,) = parts_read(found)
        if read != ideal or ids(found) != ids(everything.where(text)):
            wrong[text] = read
    assert wrong == {}


def test_legacy_sessions_and_other_zones_are_taken_as_they_are(session: SparkSession, table: Table) -> None:
    """A setting that changes what a filter means is the one of the session that asks."""
    session.conf.set("spark.sql.ansi.enabled", "false")
    frame = table.read(session)
    # Without ANSI an addition wraps, so the largest number plus something may be small.
    assert parts_read(frame.where("id + 9223372036854775807 < 0")) == [PARTS]
    assert parts_read(frame.where("id + 100 < 105")) == [1]
    session.conf.set("spark.sql.session.timeZone", "Pacific/Apia")
    text = "at < timestamp'2026-01-02 00:00:00'"
    assert ids(frame.where(text)) == [0, 1, 2, 3]
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    assert ids(frame.where(text)) == list(range(10))
    assert parts_read(frame.where(text)) == [1]


def test_decimals_that_may_keep_more_digits_are_not_guessed(session: SparkSession, store: Store) -> None:
    """How many digits a product keeps is a setting; a product of another type may be anything."""
    made = store.create_table("digits", "id bigint, g decimal(38,18)")
    made.append(pa.table({"id": [1], "g": pa.array([Decimal("0.00001")], pa.decimal128(38, 18))}))
    text = "cast(g * g as double) > 0.00000000001D"
    assert parts_read(made.read(session).where(text)) == [0]
    session.conf.set("spark.sql.decimalOperations.allowPrecisionLoss", "false")
    assert ids(made.read(session).where(text)) == [1]


def test_bytes_that_are_no_text_are_not_guessed(session: SparkSession, store: Store) -> None:
    """A literal that Spark cannot print reads the part."""
    made = store.create_table("bytes", "id bigint, s string")
    made.append(pa.table({"id": [1, 2], "s": ["\U0001f600", "\u00e9"]}))
    frame = made.read(session)
    assert ids(frame.where("s < cast(x'FF' as string)")) == [1, 2]
    assert ids(frame.where("s >= cast(x'80' as string)")) == [1, 2]
    assert parts_read(frame.where("s < 'a'")) == [0]


def test_every_scan_of_a_query_is_reported(session: SparkSession, store: Store, table: Table) -> None:
    """Joins, unions and subqueries have a report for each scan, whatever else is in the plan."""
    session.conf.set("instar.planner", "files")  # what a join prunes when it runs is told elsewhere
    instar.register(session, store)
    joined = session.sql(
        "select a.id from t a join t b on a.id = b.id where a.id < 15 and b.s >= 'k0110' "
        "union all select id from t where id = (select max(id) from t where id < 40)"
    )
    # What is known of one side of a join is known of the other.
    assert parts_read(joined)[:2] == [2, 0]
    assert 4 in parts_read(joined)
    assert instar.scan_reports(session.range(3)) == []
    (report,) = instar.scan_reports(table.read(session).where("id = 7 and s > 'k'"))
    assert (report.table, report.seqno, report.total, report.skipped) == ("t", table.state.seqno, PARTS, 11)
    assert report.bytes_read < report.bytes_total
    excludes = {own.text: own.excludes for own in report.conjuncts}
    assert excludes["(id = 7)"] == 11
    assert excludes["(s > 'k')"] == 0


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_subquery_is_reported_once(session: SparkSession, table: Table, adaptive: str) -> None:
    """However many conditions mention it; what is compared with its result is shown in words."""
    session.conf.set("instar.planner", "files")  # what a join prunes when it runs is told elsewhere
    session.conf.set("spark.sql.adaptive.enabled", adaptive)
    table.read(session).createOrReplaceTempView("fact")
    table.read(session).createOrReplaceTempView("dim")
    found = session.sql("select * from fact where id = (select max(id) from dim where s = 'k0030')")
    for _ in range(2):
        fact, dim = instar.scan_reports(found)
        assert (fact.read, dim.read) == (PARTS, 1)
        assert fact.condition == "((id is not null) and (id = (a subquery)))"
        assert ids(found) == [30]
    found = session.sql(
        "select * from fact where id = (select max(id) from dim group by s having s = 'k0030')"
    )
    for _ in range(2):
        assert parts_read(found) == [PARTS, 1]
        assert [row["id"] for row in found.collect()] == [30]


@pytest.mark.parametrize("mode", ["on", "off", "audit"])
def test_a_report_says_what_is_read_in_the_mode_of_the_scan(
    session: SparkSession, store: Store, mode: str
) -> None:
    """Whoever has chosen the mode: one query, the session or the table; and so does `explain`."""
    made = store.create_table(f"mode-{mode}", "id bigint")
    for number in range(3):
        made.append(pa.table({"id": [number]}))
    wanted = [(mode, 1 if mode == "on" else 3)]

    def reported(frame: DataFrame) -> list[tuple[str, int]]:
        return [(scan.skipping, scan.read) for scan in instar.scan_reports(frame.where("id = 1"))]

    assert reported(made.snapshot(skipping=mode).to_spark(session)) == wanted
    session.conf.set("instar.skipping", mode)
    assert reported(made.read(session)) == wanted
    session.conf.unset("instar.skipping")
    made.configure(skipping=mode)
    assert reported(made.read(session)) == wanted
    assert reported(made.follow(session))[:1] == wanted
    report = made.explain("id = 1", parts=True)
    assert (report.skipping, report.read) == wanted[0]
    assert sum(part.read for part in report.parts) == report.read
    assert report.bytes_read == sum(part.size for part in report.parts if part.read)


def test_what_is_consolidated_is_skipped_too(session: SparkSession, store: Store) -> None:
    """Rows that are retracted by value are left out of the same scan, which skips as ever."""
    made = store.create_table("retracted", "id bigint, s string")
    for part in range(4):
        made.append(numbers(range(part * ROWS, part * ROWS + ROWS)).select(["id", "s"]))
    gone = numbers(range(3, 40, 10)).select(["id", "s"])
    made.apply(gone.append_column("_diff", pa.array([-1] * gone.num_rows)))
    frame = made.read(session)
    assert ids(frame) == [number for number in range(40) if number % 10 != 3]
    some = frame.where("id between 12 and 14")
    assert ids(some) == [12, 14]
    (scan,) = instar.scan_reports(some)
    assert scan.read == 1 < scan.total


def test_parts_with_deleted_rows_are_skipped_as_others_are(session: SparkSession, store: Store) -> None:
    """Rows that are retracted by position are taken out of the same scan, and cost no second one."""
    made = store.create_table("deleted", "id bigint, s string")
    for part in range(4):
        made.append(numbers(range(part * ROWS, part * ROWS + ROWS)).select(["id", "s"]))
    made.delete("id % 10 = 3", session)
    some = made.read(session).where("id between 12 and 14")
    assert ids(some) == [12, 14]
    (scan,) = instar.scan_reports(some)
    assert (scan.total, scan.read) == (4, 1)


def test_a_query_that_has_run_is_reported_all_the_same(session: SparkSession, table: Table) -> None:
    """Also where it was run in stages, each of which hides its scans."""
    session.conf.set("instar.planner", "files")  # what a join prunes when it runs is told elsewhere
    few = table.read(session).where("id < 15")
    joined = few.groupBy("s").count().join(few.where("id < 5"), "s")
    before = instar.scan_reports(joined)
    joined.collect()
    assert sorted(report.read for report in instar.scan_reports(joined)) == [1, 2]
    assert sorted(report.read for report in before) == [1, 2]


def test_fields_younger_or_wider_than_a_part_are_understood(session: SparkSession, store: Store) -> None:
    """A field that a part lacks is null there, and old bounds are taken in the type of today."""
    made = store.create_table("evolving", "id int, n struct<x: int>")
    made.append(pa.table({"id": pa.array([1, 2], pa.int32()), "n": [{"x": 1}, {"x": 2}]}))
    made.evolve().add_column("c", "string").add_column("n.z", "double").widen_column("id", "bigint").commit()
    made.append(pa.table({"id": [10, 20], "n": [{"x": 3, "z": 1.5}, None], "c": ["a", "b"]}))
    frame = made.read(session)
    reads = {"c = 'a'": 1, "c is null": 1, "n.z > 1": 1, "id = 2": 1, "id > 3000000000": 0, "n.x = 3": 1}
    assert {text: parts_read(frame.where(text))[0] for text in reads} == reads
    assert ids(frame.where("c is null")) == [1, 2]


def test_modes_are_chosen_for_a_query_a_session_a_table_or_a_store(
    session: SparkSession, tmp_path: Path
) -> None:
    """The nearest choice counts, and one that does not exist is refused."""
    session.conf.set("instar.planner", "files")
    with instar.open(tmp_path / "lake", defaults={"skipping": "off"}) as store:
        made = store.create_table("m", "id bigint")
        for number in range(3):
            made.append(pa.table({"id": [number]}))

        def files(skipping: str | None = None) -> int:
            frame = made.snapshot(skipping=skipping).to_spark(session).where("id = 1")
            scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
            return int(scan.selectedPartitions().totalNumberOfFiles())

        assert files() == 3
        made.configure(skipping="on", skipping_sample=0)
        assert files() == 1
        session.conf.set("instar.skipping", "off")
        assert files() == 3
        assert files(skipping="on") == 1
        assert files(skipping="audit") == 3
        session.conf.set("instar.skipping", "sometimes")
        with pytest.raises(UsageError, match="one of off, audit, on"):
            files()
        session.conf.unset("instar.skipping")
        session.conf.set("instar.skipping.sample", "many")
        with pytest.raises(UsageError, match=r"instar\.skipping\.sample"):
            files()


def outcome(frame: DataFrame) -> list[int] | None:
    """Return the numbers of the rows, or None for an error."""
    try:
        return ids(frame)
    except (PySparkException, Py4JJavaError):  # some errors of Java have no class in Python
        return None


@pytest.mark.timeout(600)
def test_random_queries_find_the_same_with_and_without(session: SparkSession, store: Store) -> None:
    """Whatever the filter, skipping changes no answer, and checking all that was skipped finds nothing."""
    random = Random(2026)
    made = store.create_table("poison", _poison_ddl())
    for part in range(20):
        values = make_part(random, 4)
        made.append(
            pa.table(
                {"id": pa.array(range(part * 4, part * 4 + 4), pa.int64())}
                | {leaf.name: _arrow(values[leaf.name], leaf.type) for leaf in SCHEMA.fields}
            )
        )
    plain = made.snapshot(skipping="off").to_spark(session)
    skipping = made.snapshot(skipping="on").to_spark(session)
    session.conf.set("instar.skipping.sample", "100")
    session.conf.set("instar.skipping.budget", str(1 << 40))
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    before = PARTS_SKIPPED._value.get()
    for number in range(40):
        session.conf.set("spark.sql.ansi.enabled", str(number % 3 != 1).lower())
        session.conf.set("spark.sql.session.timeZone", ("UTC", "Europe/Berlin", "Pacific/Apia")[number % 3])
        text = str(make_filter(random, random.choice((1, 2, 3))))
        expected = outcome(plain.where(text))
        if expected is not None:
            assert outcome(skipping.where(text)) == expected, text
    assert PARTS_SKIPPED._value.get() - before > 100


def _poison_ddl() -> str:
    return ", ".join(["id bigint", *(f"{name} {type_}" for name, type_ in COLUMNS.items())])


def _arrow(values: list[Any], type_: Type) -> pa.Array:
    target = arrow_type(type_)
    if pa.types.is_decimal(target):
        return pa.array(values, pa.string()).cast(target)
    if pa.types.is_date(target):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_timestamp(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_filter_may_be_nested_at_will(session: SparkSession, table: Table, mode: str) -> None:
    """Hundreds of nested additions are read by Spark, and are no error here; other conditions still skip."""
    session.conf.set("instar.skipping", mode)
    deep = " + ".join(["id"] * 350) + " >= 0"
    frame = table.read(session).where(f"{deep} and id < 10")
    assert frame.count() == ROWS
    assert parts_read(frame) == [1 if mode == "on" else PARTS]
