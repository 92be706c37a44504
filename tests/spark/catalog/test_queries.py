"""Queries over tables of a catalog: which rows they read, what they show, and what is said if they cannot."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException

import instar
from instar.errors import TableNotFoundError, UsageError
from instar.spark.catalog.catalog import StoreCatalog
from instar.spark.catalog.relations import Relations
from instar.spark.native.gateway import gateway_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store

Sql = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture(autouse=True)
def tables(store: Store) -> None:
    """Two tables."""
    events = store.create_table("billing/events", "id long, who struct<name: string>, n string")
    events.append([{"id": number, "who": {"name": "ada"}, "n": str(number)} for number in range(10)])
    events.append([{"id": 100}])
    store.create_table("users", "id long").append([{"id": 3}])


@pytest.mark.native
def test_tables_are_read_by_name(session: SparkSession, sql: Sql) -> None:
    """A name with slashes is quoted, columns may be qualified, and filters skip parts."""
    assert sql("SELECT count(*), max(id) FROM instar.`billing/events` WHERE id > 3") == [(7, 100)]
    qualified = "SELECT `billing/events`.id, instar.`billing/events`.who.name FROM instar.`billing/events`"
    assert sql(f"{qualified} WHERE id = 3") == [(3, "ada")]
    frame = session.sql("SELECT * FROM instar.`billing/events` WHERE id = 100")
    assert [(report.total, report.read) for report in instar.scan_reports(frame)] == [(2, 1)]
    joined = "SELECT count(*) FROM instar.users JOIN instar.`billing/events` USING (id)"
    assert sql(f"{joined} JOIN instar.users u USING (id)") == [(1,)]


def test_a_query_reads_the_rows_and_the_schema_of_its_moment(
    session: SparkSession, sql: Sql, store: Store
) -> None:
    """What was committed before a query is analysed counts, and nothing that comes later."""
    before = session.sql("SELECT * FROM instar.users")
    users = store.table("users")
    users.evolve().rename_column("id", "number").commit()
    users.append([{"number": 4}])
    assert sorted(sql("SELECT number FROM instar.users")) == [(3,), (4,)]
    assert [tuple(row) for row in before.collect()] == [(3,)]
    assert sql("SELECT count(*) FROM instar.users a, instar.users b") == [(4,)]


def test_the_past_is_read_by_version_and_by_time(sql: Sql, store: Store) -> None:
    """`VERSION AS OF` is the number of a commit and `TIMESTAMP AS OF` a time, also side by side."""
    assert sql("SELECT count(*) FROM instar.`billing/events` VERSION AS OF 1") == [(10,)]
    moment = store.table("billing/events").history()[0].at.strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    assert sql(f"SELECT count(*) FROM instar.`billing/events` TIMESTAMP AS OF '{moment}'") == [(11,)]
    then = "SELECT count(*) FROM instar.`billing/events` VERSION AS OF 1"
    assert sql(f"SELECT ({then}) AS old, count(*) AS new FROM instar.`billing/events`") == [(10, 11)]
    with pytest.raises(UsageError, match="has no version 99: its versions are 0 to 2"):
        sql("SELECT * FROM instar.`billing/events` VERSION AS OF 99")
    with pytest.raises(UsageError, match="versions are numbers"):
        sql("SELECT * FROM instar.`billing/events` VERSION AS OF 'main'")
    with pytest.raises(UsageError, match="it was created at"):
        sql("SELECT * FROM instar.`billing/events` TIMESTAMP AS OF '2020-01-01'")


def test_threads_of_one_session_each_read_what_they_ask_for(session: SparkSession) -> None:
    """Plans that wait to be looked up at the same time are not taken for one another."""
    wanted = [("VERSION AS OF 1", 10), ("", 11), ("VERSION AS OF 0", 0)] * 4

    def count(travel: str) -> int:
        return session.sql(f"SELECT * FROM instar.`billing/events` {travel}").count()

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(count, [travel for travel, _ in wanted])) == [rows for _, rows in wanted]


@pytest.mark.native
def test_joins_prune_tables_of_a_catalog(session: SparkSession, sql: Sql) -> None:
    """Where Spark's planner knows our tables, a query by SQL has all that a frame has."""
    session.conf.set("instar.planner", "auto")
    joined = "SELECT n FROM instar.`billing/events` JOIN instar.users u USING (id) WHERE u.id % 2 = 1"
    frame = session.sql(joined)
    assert [tuple(row) for row in frame.collect()] == [("3",)]
    [events] = [report for report in instar.scan_reports(frame) if report.table == "billing/events"]
    assert (events.total, events.read) == (2, 1)
    then = "SELECT count(*) FROM instar.`billing/events` VERSION AS OF 1"
    assert sql(f"SELECT ({then}) AS old, count(*) AS new FROM instar.`billing/events`") == [(10, 11)]


def test_tables_are_listed_and_described(sql: Sql, store: Store) -> None:
    """`SHOW TABLES`, `DESCRIBE` and `SHOW CREATE TABLE` tell what there is, with comments and options."""
    assert sql("SHOW TABLES IN instar") == [("", "billing/events", False), ("", "users", False)]
    assert sql("SHOW TABLES IN instar LIKE 'u*'") == [("", "users", False)]
    users = store.table("users")
    users.comment("people")
    users.comment("who it is", "id")
    users.configure(retention="7d")
    assert sql("DESCRIBE instar.users") == [("id", "bigint", "who it is")]
    told = {row[0]: row[1] for row in sql("DESCRIBE EXTENDED instar.users")}
    assert (told["Comment"], told["Provider"], told["Location"]) == ("people", "instar", store.location)
    assert told["Table Properties"] == "[retention=7d]"
    [(created,)] = sql("SHOW CREATE TABLE instar.users")
    sql("DROP TABLE instar.users")
    sql(str(created))
    assert sql("SHOW CREATE TABLE instar.users") == [(created,)]
    [(created,)] = sql("SHOW CREATE TABLE instar.`billing/events`")  # which says how its strings compare
    store.drop_table("billing/events")
    sql(str(created))
    assert sql("SHOW CREATE TABLE instar.`billing/events`") == [(created,)]


def test_listing_takes_as_many_calls_for_many_tables(
    session: SparkSession, sql: Sql, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is made for each table, to the JVM or from it, however they are listed."""
    calls = 0
    send = ClientServerConnection.send_command

    def counted(*given: object) -> object:
        nonlocal calls
        calls += 1
        return send(*given)

    def named(_: StoreCatalog) -> str:
        nonlocal calls
        calls += 1
        return "instar"

    def shown() -> list[str]:
        return [str(row[1]) for row in sql("SHOW TABLES IN instar")]

    def summaries() -> list[str]:
        gateway = gateway_of(session)
        catalog = gateway.session.sessionState().catalogManager().catalog("instar")
        return gateway.lines(catalog.listTableSummaries(gateway.strings(())))

    for listing in (shown, summaries):
        made: dict[int, list[int]] = {1: [], 500: []}
        for count in (1, 500) * 3:  # the least counts: objects that are let go of take calls, too
            names = [f"a/b/{number:03}" for number in range(count)]
            with monkeypatch.context() as patched:
                patched.setattr(type(store), "tables", lambda *_, names=names: names)
                patched.setattr(ClientServerConnection, "send_command", counted)
                patched.setattr(StoreCatalog, "name", named)
                before = calls
                assert [name for name, line in zip(names, listing(), strict=True) if name not in line] == []
            made[count].append(calls - before)
        assert min(made[500]) < min(made[1]) + 50


def test_a_catalog_can_be_the_current_one(session: SparkSession, sql: Sql) -> None:
    """After `USE`, tables need no prefix; temporary views keep their names, and go on reading."""
    sql("CREATE TEMP VIEW few AS SELECT * FROM instar.`billing/events` WHERE id < 3")
    sql("USE instar")
    assert sql("SELECT count(*) FROM users") == [(1,)]
    sql("INSERT INTO instar.`billing/events` (id) VALUES (-1)")
    assert sql("SELECT count(*) FROM few") == [(4,)]
    assert session.catalog.tableExists("instar.users")
    assert not session.catalog.tableExists("instar.nobody")
    assert session.table("instar.users").count() == 1


def test_a_table_that_is_not_there_is_said_not_to_be(session: SparkSession, sql: Sql) -> None:
    """Our own error says so where rows are read or written, and Spark's in other statements."""
    for statement in (
        "SELECT * FROM instar.nobody",
        "DELETE FROM instar.nobody",
        "INSERT INTO instar.nobody VALUES (1)",
    ):
        with pytest.raises(TableNotFoundError, match="nobody"):
            sql(statement)
    with pytest.raises(TableNotFoundError, match="nobody"):
        session.range(1).write.insertInto("instar.nobody")
    for statement in ("DESCRIBE instar.nobody", "SELECT * FROM instar.billing.events"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(statement)


def test_a_catalog_is_for_one_session_under_any_name(session: SparkSession, store: Store) -> None:
    """A session knows nothing of the catalogs of another; a name that is taken is refused."""
    other = session.newSession()
    with pytest.raises(AnalysisException):
        other.sql("DESCRIBE instar.users")
    for _ in range(2):
        instar.register(other, store, "lake")
        assert other.sql("SELECT * FROM lake.users").count() == 1
    with pytest.raises(UsageError, match="has another catalog `spark_catalog`"):
        instar.register(other, store, "spark_catalog")


def test_a_session_that_keeps_no_plans_is_told_what_to_set(spark: SparkSession, store: Store) -> None:
    """Nothing else is read instead."""
    relations = Relations(gateway_of(spark))

    class Nothing:
        def cacheTable(self, key: object, plan: object) -> None:  # noqa: N802 -- Spark's names
            pass

        def getCachedTable(self, key: object) -> None:  # noqa: N802
            pass

    relations._plans = Nothing()
    with pytest.raises(UsageError, match="filesourceTableRelationCacheSize"):
        relations.table("instar", "users", store.table("users").read(spark))
