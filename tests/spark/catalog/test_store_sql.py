"""`store.sql`: statements by the names of tables alone, and those that Spark does not hand to catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import instar
from instar.errors import ColumnNotFoundError, TableNotFoundError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store


@pytest.fixture(autouse=True)
def events(store: Store) -> None:
    """One table."""
    table = store.create_table("events", "id long, n int, who string")
    table.append([{"id": number, "n": number, "who": "ada"} for number in range(4)])


@pytest.fixture
def own(spark: SparkSession) -> SparkSession:
    """Return a session of its own."""
    return spark.newSession()


def held(store: Store) -> list[tuple[object, ...]]:
    """Return what the table holds."""
    rows = store.table("events").snapshot().to_arrow().sort_by("id").to_pylist()
    return [tuple(row.values()) for row in rows]


def test_tables_need_no_prefix_and_the_session_stays_as_it_is(store: Store, own: SparkSession) -> None:
    """Whatever catalog is current before, it is after; other catalogs and views are there too."""
    own.sql("CREATE TEMP VIEW wanted AS SELECT 2 AS id")
    own.sql("CREATE DATABASE IF NOT EXISTS elsewhere")
    own.sql("USE elsewhere")
    found = store.sql(own, "SELECT n FROM events JOIN wanted USING (id)").collect()
    assert [tuple(row) for row in found] == [(2,)]
    store.sql(own, "ALTER TABLE events ADD COLUMN x int")
    assert store.table("events").schema.names == ("id", "n", "who", "x")
    with pytest.raises(TableNotFoundError):
        store.sql(own, "SELECT * FROM nobody")
    assert (own.catalog.currentCatalog(), own.catalog.currentDatabase()) == ("spark_catalog", "elsewhere")
    own.sql("DROP DATABASE elsewhere")
    store.sql(own, "USE instar")
    assert own.catalog.currentCatalog() == "instar"


def test_a_store_has_a_name_of_its_own_beside_others(
    store: Store, own: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One that was registered keeps its name, and others get one that is free."""
    instar.register(own, store, "lake")
    with instar.open(tmp_path_factory.mktemp("other") / "store") as other:
        other.create_table("others", "id long")
        assert store.sql(own, "SELECT count(*) FROM lake.events").collect()[0][0] == 4
        assert other.sql(own, "SELECT count(*) FROM others").collect()[0][0] == 0
        assert store.sql(own, "UPDATE lake.events SET n = 7 WHERE id = 0").collect()[0].updates == 2


def test_rows_are_updated(store: Store, own: SparkSession) -> None:
    """Values see the row as it was; the answer is the version that was made, and how many updates it has."""
    [done] = store.sql(own, "UPDATE events e SET e.n = e.n + 10, who = upper(e.who) WHERE e.id > 1").collect()
    assert (done.version, done.updates) == (2, 4)
    assert held(store)[1:3] == [(1, 1, "ada"), (2, 12, "ADA")]
    with pytest.raises(ColumnNotFoundError, match="nosuch"):
        store.sql(own, "UPDATE events SET nosuch = 1")


def test_rows_are_deleted_by_any_condition(store: Store, own: SparkSession) -> None:
    """With functions that Spark does not hand to sources, and with subqueries over tables of the store."""
    store.create_table("gone", "id long").append([{"id": 3}])
    store.sql(own, "DELETE FROM events WHERE id IN (SELECT id FROM gone) OR who RLIKE 'a$' AND n = 0")
    assert [row[0] for row in held(store)] == [1, 2]
    store.sql(own, "DELETE FROM events")
    assert held(store) == []


def test_rows_are_merged(store: Store, own: SparkSession) -> None:
    """From a query or a table, on columns of other names, with clauses of every sort."""
    source = "SELECT * FROM VALUES (0L, 100, 'eve'), (1L, NULL, 'eve'), (9L, 9, 'eve') AS v(k, n, who)"
    [done] = store.sql(
        own,
        f"""MERGE INTO events USING ({source}) s ON events.id = s.k
            WHEN MATCHED AND s.n IS NULL THEN DELETE
            WHEN MATCHED THEN UPDATE SET n = s.n + events.n
            WHEN NOT MATCHED THEN INSERT (id, who) VALUES (s.k, s.who)
            WHEN NOT MATCHED BY SOURCE AND events.id = 3 THEN DELETE""",
    ).collect()
    assert done.version == 2
    assert held(store) == [(0, 100, "ada"), (2, 2, "ada"), (9, None, "eve")]
    store.sql(own, "CREATE TABLE more AS SELECT id, 5 AS n, who FROM events WHERE id = 9")
    merge = "MERGE INTO events USING more ON events.id = more.id WHEN MATCHED THEN UPDATE SET *"
    store.sql(own, merge)
    assert held(store)[-1] == (9, 5, "eve")


def test_nulls_are_merged_only_as_sql_says(store: Store, own: SparkSession) -> None:
    """For `=`, a null matches nothing, which we do not do; `<=>` is what we do."""
    merge = "MERGE INTO events t USING (SELECT CAST(NULL AS long) AS id, 1 AS n) s ON t.id {} s.id"
    clause = "WHEN NOT MATCHED THEN INSERT *"
    with pytest.raises(UsageError, match="Write <=>"):
        store.sql(own, f"{merge.format('=')} {clause}")
    store.sql(own, f"{merge.format('<=>')} {clause}")
    assert len(held(store)) == 5
    with pytest.raises(UsageError, match="also has a column"):
        store.sql(own, f"MERGE INTO events t USING (SELECT 1L AS id, 1L AS k) s ON t.id = s.k {clause}")


def test_history_is_described(store: Store, own: SparkSession) -> None:
    """Versions are what `VERSION AS OF` takes."""
    found = store.sql(own, "DESCRIBE HISTORY events").collect()
    assert [(row.version, row.operation.split()[0]) for row in found] == [(1, "appended"), (0, "created")]
    assert len(store.sql(own, "DESCRIBE HISTORY events LIMIT 1").collect()) == 1
    with pytest.raises(TableNotFoundError):
        store.sql(own, "DESCRIBE HISTORY nobody")


def test_views_of_tables_are_out_of_the_way(store: Store, own: SparkSession) -> None:
    """After `register`, a name still means the table: it takes rows, and has a past; views are there again.

    A view that somebody else has made of that name is the one that is meant, as everywhere in Spark.
    """
    assert instar.register(own, store) == ["events"]
    store.sql(own, "INSERT INTO events (id) VALUES (9)")
    assert store.sql(own, "SELECT count(*) FROM events VERSION AS OF 1").collect() == [(4,)]
    with pytest.raises(AnalysisException):
        store.sql(own, "SELECT nothing FROM events")
    assert own.sql("SELECT count(*) FROM events").collect() == [(5,)]
    own.range(1).createOrReplaceTempView("events")
    assert store.sql(own, "SELECT count(*) FROM events").collect() == [(1,)]
    assert own.table("events").count() == 1


def test_statements_that_others_have_are_named(store: Store, own: SparkSession) -> None:
    """What there is instead is said; so is which table may be meant."""
    for text, instead in (
        ("optimize events", "table.compact"),
        ("VACUUM events RETAIN 0 HOURS", "store.vacuum"),
        ("RESTORE TABLE events TO VERSION AS OF 1", "table.restore"),
        ("DESCRIBE DETAIL events", "DESCRIBE EXTENDED"),
    ):
        with pytest.raises(UsageError, match=instead):
            store.sql(own, text)
    for text in ("SELECT * FROM event", "DESCRIBE HISTORY event", "EXPLAIN DELETE FROM event"):
        with pytest.raises(TableNotFoundError, match="Did you mean `events`"):
            store.sql(own, text)
