"""Statements that change tables of a catalog: each does what our own call does, under the same rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from instar.errors import IncompatibleSchemaError, TableNotFoundError, UsageError
from instar.table import TableLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store

Sql = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture(autouse=True)
def events(store: Store) -> None:
    """One table."""
    table = store.create_table("events", "id long not null, who struct<name: string>, n int")
    table.append([{"id": number, "who": {"name": "ada"}, "n": number} for number in range(5)])


def test_tables_are_altered_under_our_rules(sql: Sql, store: Store) -> None:
    """Columns are added anywhere, dropped, renamed, widened, made nullable and commented; no data changes."""
    events = store.table("events")
    sql("ALTER TABLE instar.events ADD COLUMNS (who.age int COMMENT 'in years', at timestamp AFTER id)")
    sql("ALTER TABLE instar.events RENAME COLUMN n TO amount")
    sql("ALTER TABLE instar.events ALTER COLUMN amount TYPE bigint")
    sql("ALTER TABLE instar.events ALTER COLUMN id DROP NOT NULL")
    sql("ALTER TABLE instar.events ALTER COLUMN id COMMENT 'number'")
    sql("ALTER TABLE instar.events DROP COLUMN at")
    sql("ALTER TABLE instar.events DROP COLUMN IF EXISTS at")
    assert str(events.schema) == "id bigint, who struct<name: string, age: int>, amount bigint"
    assert events.comments == {"id": "number", "who.age": "in years"}
    assert sql("SELECT id, who.age, amount FROM instar.events WHERE id = 3") == [(3, None, 3)]
    with pytest.raises(IncompatibleSchemaError, match="cannot change from bigint to string"):
        sql("ALTER TABLE instar.events ALTER COLUMN amount TYPE string")
    with pytest.raises(UsageError, match="not null"):
        sql("ALTER TABLE instar.events ADD COLUMN x int NOT NULL")
    with pytest.raises((UsageError, AnalysisException), match=r"(?i)nullable|not null"):
        sql("ALTER TABLE instar.events ALTER COLUMN id SET NOT NULL")
    with pytest.raises(UsageError, match="orders of columns"):
        sql("ALTER TABLE instar.events ALTER COLUMN amount FIRST")
    with pytest.raises(UsageError, match="cannot all be replaced"):
        sql("ALTER TABLE instar.events REPLACE COLUMNS (id bigint, other int)")


def test_options_and_comments_are_properties(sql: Sql, store: Store) -> None:
    """Properties are the table's options; others are refused by name."""
    events = store.table("events")
    sql("ALTER TABLE instar.events SET TBLPROPERTIES ('retention' = '7d', 'skipping_sample' = '2.5')")
    sql("ALTER TABLE instar.events CLUSTER BY (id, n)")
    sql("COMMENT ON TABLE instar.events IS 'what happened'")
    assert events.state.options == {"retention": "7d", "skipping_sample": 2.5, "cluster_by": "1,4"}
    assert events.comments == {None: "what happened"}
    sql("ALTER TABLE instar.events UNSET TBLPROPERTIES ('retention')")
    assert "retention" not in events.state.options
    for name in ("key", "colour"):
        with pytest.raises(UsageError, match=name):
            sql(f"ALTER TABLE instar.events SET TBLPROPERTIES ('{name}' = 'id')")


def test_tables_are_created_with_all_that_they_can_have(sql: Sql, store: Store) -> None:
    """Key, order, clustering, options and comments come with the first commit."""
    sql(
        "CREATE TABLE instar.`a/b` (id int NOT NULL COMMENT 'number', s struct<x: int COMMENT 'deep'>) "
        "USING instar CLUSTER BY (id) COMMENT 'mine' TBLPROPERTIES ('key' = 'id', 'order_by' = 's.x, id')"
    )
    table = store.table("a/b")
    assert str(table.schema) == "id int not null, s struct<x: int>"
    assert (table.state.key, table.state.order_by, table.state.cluster_by) == ((1,), (3, 1), (1,))
    assert table.comments == {None: "mine", "id": "number", "s.x": "deep"}
    assert len(table.history()) == 1
    sql("CREATE TABLE IF NOT EXISTS instar.`a/b` (x int)")
    with pytest.raises(AnalysisException, match="already exists"):
        sql("CREATE TABLE instar.`a/b` (x int)")
    for text, why in (
        ("(x int, y int) PARTITIONED BY (y)", "no partitions"),
        ("(x int) USING parquet", "USING parquet"),
        ("(x int) LOCATION '/elsewhere'", "LOCATION"),
        ("(x int) TBLPROPERTIES ('colour' = 'red')", "colour"),
        ("(x string COLLATE UTF8_LCASE)", "compare by their bytes"),
    ):
        with pytest.raises(UsageError, match=why):
            sql(f"CREATE TABLE instar.other {text}")
    with pytest.raises(UsageError, match="`a/c`"):
        sql("CREATE TABLE instar.a.c (x int)")
    assert store.tables() == ["a/b", "events"]


def test_tables_are_created_from_queries(sql: Sql, store: Store) -> None:
    """`CREATE TABLE AS` takes rows of the same catalog too, in one commit; one that fails leaves no table."""
    sql("CREATE TABLE instar.few AS SELECT id, n * 2 AS twice FROM instar.events WHERE id < 3")
    assert sql("SELECT sum(twice) FROM instar.few") == [(6,)]
    assert len(store.table("few").history()) == 1
    assert str(store.table("few").schema) == "id bigint, twice int"
    with pytest.raises(UsageError, match="DIVIDE_BY_ZERO"):
        sql("CREATE TABLE instar.bad AS SELECT 1 / n AS x FROM instar.events")
    assert store.tables() == ["events", "few"]


def test_tables_are_replaced_or_stay_as_they_are(
    sql: Sql, store: Store, session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query may read what it replaces; if it fails, nothing has happened; the name always means a table."""
    before = store.table("events")
    for text in ("CREATE OR REPLACE TABLE", "REPLACE TABLE"):
        with pytest.raises(UsageError, match="DIVIDE_BY_ZERO"):
            sql(f"{text} instar.events AS SELECT 1 / n AS x FROM instar.events")
        with pytest.raises(UsageError, match="colour"):
            sql(f"{text} instar.events (x int) TBLPROPERTIES ('colour' = 'red')")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("REPLACE TABLE instar.missing AS SELECT 1 AS x")
    assert (store.tables(), before.count(), len(before.history())) == (["events"], 5, 2)

    seen = []
    kept = TableLog.commit

    def commit(log: TableLog, *given: object) -> object:
        seen.append([store.table("events").count()])
        answer = kept(log, *given)  # type: ignore[arg-type]
        seen[-1].append(store.table("events").count())
        return answer

    monkeypatch.setattr(TableLog, "commit", commit)
    sql(
        "CREATE OR REPLACE TABLE instar.events TBLPROPERTIES ('key' = 'id') COMMENT 'new' AS "
        "SELECT id, n + 10L AS more FROM instar.events WHERE n > 1"
    )
    monkeypatch.undo()
    assert seen == [[5, 3]]
    assert sql("SELECT * FROM instar.events ORDER BY id") == [(2, 12), (3, 13), (4, 14)]
    after = store.table("events")
    assert (after.comments, after.state.key, len(after.history())) == ({None: "new"}, (1,), 1)
    with pytest.raises(TableNotFoundError):
        before.count()
    sql("REPLACE TABLE instar.events (x int)")
    sql("CREATE OR REPLACE TABLE instar.fresh (x int)")
    session.range(3).writeTo("instar.fresh").createOrReplace()
    session.table("instar.fresh").write.format("instar").mode("overwrite").saveAsTable("instar.fresh")
    assert sql("SELECT count(*), (SELECT count(*) FROM instar.events) FROM instar.fresh") == [(3, 0)]


def test_tables_are_renamed_and_dropped(sql: Sql, store: Store) -> None:
    """A rename moves nothing, with the catalog in front of the new name or without; tables can come back."""
    sql("ALTER TABLE instar.events RENAME TO instar.past")
    assert store.tables() == ["past"]
    with pytest.raises(UsageError, match="`other/past`"):
        sql("ALTER TABLE instar.past RENAME TO other.past")
    sql("ALTER TABLE instar.past RENAME TO `old/events`")
    assert store.tables() == ["old/events"]
    sql("DROP TABLE instar.`old/events`")
    assert store.tables() == []
    sql("DROP TABLE IF EXISTS instar.`old/events`")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("DROP TABLE instar.`old/events`")
    store.undrop_table("old/events")
    with pytest.raises(UsageError, match="vacuum"):
        sql("DROP TABLE instar.`old/events` PURGE")


def test_rows_are_inserted(sql: Sql, store: Store) -> None:
    """What is left out is null, rows of a query come in one commit, and what does not fit is refused."""
    versions = len(store.table("events").history())
    sql("INSERT INTO instar.events (id) VALUES (10), (11)")
    sql("INSERT INTO instar.events SELECT id + 20, who, n FROM instar.events WHERE id < 2")
    assert sql("SELECT id, who.name, n FROM instar.events WHERE id > 9 ORDER BY id") == [
        (10, None, None),
        (11, None, None),
        (20, "ada", 0),
        (21, "ada", 1),
    ]
    assert len(store.table("events").history()) == versions + 2
    with pytest.raises(AnalysisException, match="CANNOT_SAFELY_CAST"):
        sql("INSERT INTO instar.events (id) VALUES ('abc')")
    with pytest.raises(AnalysisException, match="the output column `id`"):
        sql("INSERT INTO instar.events (n) VALUES (1)")


def test_rows_are_overwritten_in_one_commit(sql: Sql, store: Store) -> None:
    """`INSERT OVERWRITE` may read what it overwrites, `REPLACE WHERE` takes some rows, and the past stays."""
    events = store.table("events")
    sql("DELETE FROM instar.events WHERE id = 4")
    versions = len(events.history())
    sql("INSERT OVERWRITE instar.events SELECT id, who, n + 100 FROM instar.events WHERE id > 1")
    assert sql("SELECT id, n FROM instar.events ORDER BY id") == [(2, 102), (3, 103)]
    sql("INSERT INTO instar.events REPLACE WHERE n = 102 SELECT 7L, null, 7")
    assert sql("SELECT id, n FROM instar.events ORDER BY id") == [(3, 103), (7, 7)]
    assert len(events.history()) == versions + 2
    assert sql("SELECT count(*) FROM instar.events VERSION AS OF 1") == [(5,)]


def test_rows_are_deleted_by_what_spark_can_hand_over(sql: Sql, store: Store) -> None:
    """The condition that reaches the table is the one in the statement."""
    for condition, left in (
        ("id < 2", [2, 3, 4]),
        ("who.name = 'ada' AND n IN (1, 2)", [0, 3, 4]),
        ("upper(who.name) LIKE 'A%A' AND n % 2 = 0", [1, 3]),
        ("NOT (n BETWEEN 1 AND 3) OR substring(who.name, 1, 1) = 'x'", [1, 2, 3]),
        ("coalesce(n, 7) = 7 OR cast(id AS string) = '3'", [0, 1, 2, 4]),
        ("n IS NULL", [0, 1, 2, 3, 4]),
    ):
        sql(f"DELETE FROM instar.events WHERE {condition}")
        assert [row[0] for row in sql("SELECT id FROM instar.events ORDER BY id")] == left, condition
        store.table("events").restore(version=1)


def test_all_rows_are_deleted(sql: Sql, store: Store) -> None:
    """`DELETE` without a condition and `TRUNCATE` take all rows, which can be restored."""
    for statement in ("DELETE FROM instar.events", "TRUNCATE TABLE instar.events"):
        sql(statement)
        assert store.table("events").count() == 0
        store.table("events").restore(version=1)
    assert store.table("events").count() == 5


def test_updates_are_refused_with_the_way_to_have_them(sql: Sql) -> None:
    """Spark has no way to hand an update over; what there is instead is named."""
    merge = "MERGE INTO instar.events t USING (SELECT 1L AS k) s ON t.id = s.k WHEN MATCHED THEN"
    inserts = "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.k)"
    for statement in (
        "UPDATE instar.events SET n = 0 WHERE id = 1",
        f"{merge} UPDATE SET n = 0",
        f"/* why */ {merge} DELETE",
        merge.replace("WHEN MATCHED THEN", inserts),
    ):
        with pytest.raises(UsageError, match=r"store\.sql"):
            sql(statement)
    sql("INSERT INTO instar.events (id, who) VALUES (9, named_struct('name', 'merge into'))")
