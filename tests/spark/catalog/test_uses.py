"""Tables of a catalog in the uses that go wrong first: two stores, changes in between, frames that write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

import instar
from instar.errors import UsageError
from instar.spark.commands.examination import examine_spark
from instar.spark.native import java, stand_ins
from instar.table.housekeeping.examination import Health
from tests.spark.forgotten import forget_planner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from instar import Store

    Sql = Callable[[str], list[tuple[object, ...]]]


SOME = "SELECT * FROM instar.events WHERE k < 2"
PLACES = "SELECT row_number() OVER (PARTITION BY k ORDER BY id) AS place FROM instar.events"


@pytest.fixture(autouse=True)
def events(store: Store) -> None:
    """One table of three parts."""
    table = store.create_table("events", "id long, k int, s string")
    for part in range(3):
        table.append([{"id": part * 10 + at, "k": part, "s": f"s{part}"} for at in range(10)])


@pytest.fixture(params=["auto", "files"], autouse=True)
def way(session: SparkSession, request: pytest.FixtureRequest) -> str:
    """Run each test with Spark's planner and without."""
    session.conf.set("instar.planner", request.param)
    return str(request.param)


def test_two_stores_in_one_query(
    session: SparkSession, sql: Sql, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A name in front says which store a table is of, also where both have one of that name."""
    with instar.open(tmp_path_factory.mktemp("other") / "store") as other:
        other.create_table("events", "id long, name string").append([{"id": 12, "name": "twelve"}])
        instar.register(session, other, "lake")
        joined = "SELECT e.k, l.name FROM instar.events e JOIN lake.events l ON e.id = l.id"
        assert sql(f"{joined} WHERE l.name <> ''") == [(1, "twelve")]
        sql("INSERT INTO lake.events SELECT id, s FROM instar.events WHERE k = 2")
        assert other.table("events").count() == 11


def test_what_changes_between_planning_and_running_is_not_seen(session: SparkSession, store: Store) -> None:
    """A query reads the table of its moment, whatever is renamed, deleted, compacted or dropped meanwhile."""
    events = store.table("events")
    frame = session.sql("SELECT sum(id), max(s) FROM instar.events WHERE id > 5")
    planned = session.sql("SELECT s, count(*) FROM instar.events GROUP BY s")
    planned._jdf.queryExecution().executedPlan()
    events.delete("id = 29")
    events.evolve().rename_column("k", "kind").drop_column("s").commit()
    events.compact()
    store.drop_table("events")
    assert [tuple(row) for row in frame.collect()] == [(sum(range(6, 30)), "s2")]
    assert sorted(tuple(row) for row in planned.collect()) == [("s0", 10), ("s1", 10), ("s2", 10)]


def test_one_table_at_several_places(sql: Sql) -> None:
    """Self joins, a CTE that is used twice, subqueries and windows read one version, each its own parts."""
    for query, rows in (
        ("SELECT count(*) FROM instar.events a JOIN instar.events b ON a.id = b.id + 1 WHERE b.k = 1", 10),
        (f"WITH some AS ({SOME}) SELECT count(*) FROM some x JOIN some y USING (id) WHERE y.s = 's1'", 10),
        ("SELECT max((SELECT count(*) FROM instar.events i WHERE i.k = o.k)) FROM instar.events o", 10),
        ("SELECT count(*) FROM (SELECT id FROM instar.events UNION ALL SELECT k FROM instar.events)", 60),
        (f"SELECT max(place) FROM ({PLACES} WHERE EXISTS (SELECT 1 FROM instar.events WHERE id = 25))", 10),
    ):
        assert sql(query) == [(rows,)], query


def test_a_cached_frame_keeps_its_rows_and_a_query_does_not(session: SparkSession, sql: Sql) -> None:
    """What was cached stays as it was; whoever asks anew sees what was written since."""
    cached = session.table("instar.events").cache()
    assert cached.count() == 30
    sql("INSERT INTO instar.events SELECT * FROM instar.events WHERE id < 5")
    assert cached.count() == 30
    assert sql("SELECT count(*) FROM instar.events") == [(35,)]
    cached.unpersist()


def test_parameters_are_bound(session: SparkSession, sql: Sql) -> None:
    """Parameters of statements are values of filters and of rows, and names of tables."""
    named = session.sql("SELECT count(*) FROM instar.events WHERE k = :k AND id > :id", {"k": 1, "id": 12})
    assert [tuple(row) for row in named.collect()] == [(7,)]
    table = session.sql("SELECT count(*) FROM identifier(:t) WHERE k = 2", {"t": "instar.events"})
    assert [tuple(row) for row in table.collect()] == [(10,)]
    session.sql("INSERT INTO instar.events (id) VALUES (:id)", {"id": 99})
    session.sql("DELETE FROM instar.events WHERE id < :id", {"id": 10})
    assert sql("SELECT count(*), max(id) FROM instar.events") == [(21, 99)]


def test_frames_are_written_by_name(session: SparkSession, sql: Sql, store: Store) -> None:
    """`writeTo`, `saveAsTable` and `insertInto` create, append and overwrite."""
    one, two = (session.sql(f"SELECT {number}L AS id") for number in (1, 2))
    one.writeTo("instar.made").tableProperty("key", "id").create()
    assert store.table("made").state.key == (1,)
    two.writeTo("instar.made").append()
    session.sql("SELECT 3L AS id").writeTo("instar.made").overwrite(F.col("id") == 1)
    assert sorted(sql("SELECT * FROM instar.made")) == [(2,), (3,)]
    one.write.insertInto("instar.made", overwrite=True)
    assert sql("SELECT * FROM instar.made") == [(1,)]
    two.write.mode("append").saveAsTable("instar.made")
    one.write.format("instar").saveAsTable("instar.saved")
    both = "SELECT id FROM instar.made UNION ALL SELECT id FROM instar.saved"
    assert sorted(sql(both)) == [(1,), (1,), (2,)]
    with pytest.raises(UsageError, match=r"add format\('instar'\)"):
        one.write.saveAsTable("instar.other")


def test_a_spark_that_compiles_nothing_has_a_catalog(
    session: SparkSession, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Spark's compiler there are no views; tables are listed, read and written; `doctor` says so."""
    monkeypatch.setattr(java, "_COMPILER", "org.codehaus.janino.Nothing")
    monkeypatch.setattr(java, "_known", {})
    monkeypatch.setattr(stand_ins, "_ruled", set())
    forget_planner(monkeypatch)
    bare = session.newSession()
    bare.conf.set("instar.planner", "files")  # otherwise a warning says that it is not there
    with pytest.warns(RuntimeWarning, match="no views of tables: this Spark cannot compile"):
        assert instar.register(bare, store) == []
    assert [row.tableName for row in bare.sql("SHOW TABLES IN instar").collect()] == ["events"]
    bare.sql("INSERT INTO instar.events VALUES (100, 9, 'x')")
    assert bare.sql("SELECT id FROM instar.events WHERE k >= 2").count() == 11
    with pytest.raises(UsageError, match="in this process"):
        bare.sql("DELETE FROM instar.events WHERE id = 3")
    found = {finding.what: finding for finding in examine_spark(None)}
    assert (found["views"].health, found["catalog"].health) == (Health.WARNING, Health.FINE)
    assert "janino.Nothing" in found["planner"].found
