"""Parameters of statements: values are bound as Spark binds them, and are never read as SQL."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.errors import ColumnNotFoundError, UsageError
from instar.spark.catalog.parameters import literal
from instar.spark.catalog.statements import DeleteStatement, UpdateStatement, parse_statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store


class Colour(Enum):
    """A value with a name."""

    RED = 3


VALUES = [
    None, True, 5, -5, 2**31, -(2**31), -(2**63), 2**63 - 1, Colour.RED,
    1.5, -0.0, 1e300, -1e-300, float("nan"), float("-inf"),
    Decimal("1.50"), Decimal("-1E+3"), Decimal("1E-10"),
    "it's", "a\\b", "x\ny", "${spark.app.name}", "$", "\\u0041", "%\\_", "-- no",
    "'); DROP", "", "\U0001f600",
    b"\x00\xff", bytearray(b"ab"),
    date(2020, 2, 29), datetime(2020, 1, 1, 12, 0, 0, 123456, UTC), datetime(1900, 1, 1, tzinfo=UTC),
    datetime.fromisoformat("2020-07-01"), datetime(2020, 7, 1, tzinfo=timezone(timedelta(hours=2))),
    time(12, 30, 1, 5), timedelta(days=-1, seconds=5), timedelta(days=400, microseconds=1), [1, 2],
    ["a'b"], [],
]  # fmt: skip


def test_values_are_what_spark_takes_them_for(spark: SparkSession) -> None:
    """Each has the type and the value that Spark itself would bind."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    names = {f"v{at}": value for at, value in enumerate(VALUES)}
    bound = session.sql(f"SELECT {', '.join(f'typeof(:{n}), :{n}' for n in names)}", args=names)
    texts = [literal(value) for value in VALUES]
    written = session.sql(f"SELECT {', '.join(f'typeof({text}), {text}' for text in texts)}")
    assert repr(tuple(written.collect()[0])) == repr(tuple(bound.collect()[0]))


@given(st.text(st.sampled_from("'\\\\${}\"`-/*;:? a\n") | st.characters()))
def test_a_text_is_one_text_whatever_it_says(value: str) -> None:
    """Nothing in it ends it, or becomes a part of the statement."""
    statement = parse_statement("DELETE FROM t WHERE a = :v AND b = ':v' -- :v", {"v": value})
    assert isinstance(statement, DeleteStatement)
    assert statement.where == f"a = {literal(value)} AND b = ':v'"
    again = parse_statement(f"UPDATE t SET a = {literal(value)}, b = 1")
    assert isinstance(again, UpdateStatement)
    assert again.values == {"a": literal(value), "b": "1"}


def test_parameters_stand_where_values_may() -> None:
    """Members of a variant, casts, texts and quoted names are none; a minus before one makes no comment."""
    text = (
        "UPDATE IDENTIFIER(:t) SET n = 3 -:n, `:n` = v:n, s = ':n ?', c = :n::int WHERE m = map(:n, :n)[:n]"
    )
    found = parse_statement(text, {"n": -2, "t": "lake.`a/b`", "unused": object()})
    assert found == UpdateStatement(
        ("lake", "a/b"),
        {"n": "3 -(-2)", "`:n`": "v:n", "s": "':n ?'", "c": "(-2)::int"},
        "m = map((-2), (-2))[(-2)]",
    )
    found = parse_statement("DELETE FROM t WHERE a IN (?, ?) AND b = '?'", [1, "x"])
    assert found == DeleteStatement(("t",), "a IN (1, 'x') AND b = '?'")


@pytest.mark.parametrize(
    ("where", "args", "why"),
    [
        ("a = :x", {}, "no value for the parameter `:x`"),
        ("a = :x", {"X": 1}, "no value for the parameter `:x`"),
        ("a = ? or b = ?", [1], "no value for parameter 2"),
        ("a = ?", {"x": 1}, "from a list"),
        ("a = :x", [1], "from a dict"),
        ("a = :x", {"x": {1}}, "set"),
        ("a = :x", {"x": 2**70}, "int"),
        ("a = :x", {"x": Decimal("NaN")}, "Decimal"),
    ],
)
def test_what_cannot_be_bound(where: str, args: dict[str, object] | list[object], why: str) -> None:
    """The error says which parameter, and what to give."""
    with pytest.raises(UsageError, match=why):
        parse_statement(f"DELETE FROM t WHERE {where}", args)


def test_statements_take_parameters(store: Store, spark: SparkSession) -> None:
    """Those that we run, those of Spark, and what they say if they are explained."""
    own = spark.newSession()
    store.create_table("events", "id long, who string", data=[{"id": at, "who": "ada"} for at in range(4)])
    evil = "' OR ${spark.app.name} \\' --"
    store.sql(own, "UPDATE events SET who = :who WHERE id = :id", args={"who": evil, "id": 1})
    assert store.sql(own, "SELECT id FROM events WHERE who = ?", args=[evil]).collect() == [(1,)]
    store.sql(own, "DELETE FROM IDENTIFIER(?) WHERE who = ?", ["events", evil])
    store.sql(
        own,
        "MERGE INTO events USING (SELECT :id AS id) s ON events.id = s.id "
        "WHEN MATCHED THEN UPDATE SET who = :who WHEN NOT MATCHED THEN INSERT (id, who) VALUES (s.id, :who)",
        {"id": 9, "who": evil},
    )
    rows = store.table("events").to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["who"]) for row in rows] == [(0, "ada"), (2, "ada"), (3, "ada"), (9, evil)]
    assert store.sql(own, "DESCRIBE HISTORY events LIMIT :n", {"n": 2}).count() == 2
    with pytest.raises(UsageError, match="dict"):
        store.sql(own, "SELECT ?", args=(1,))  # type: ignore[arg-type]
    own.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    with pytest.raises(UsageError, match="escapedStringLiterals"):
        store.sql(own, "DELETE FROM events WHERE who = :who", {"who": evil})
    store.sql(own, "DELETE FROM events WHERE who = :who", {"who": "ada"})
    assert store.table("events").count() == 1


def test_changes_of_rows_are_explained(store: Store, spark: SparkSession) -> None:
    """`EXPLAIN` says which parts would be opened, and which columns set; nothing is changed."""
    table = store.create_table("events", "id long, who string")
    for start in (0, 10, 20):
        table.append([{"id": start + at, "who": "ada"} for at in range(3)])
    own = spark.newSession()

    def plan(text: str, **args: object) -> str:
        ((told,),) = store.sql(own, text, args or None).collect()
        return str(told)

    told = plan("EXPLAIN UPDATE events SET who = upper(who) WHERE id > :id", id=15)
    assert "`events`, version 3" in told
    assert "who = upper(who)" in told
    assert "at most 1 of 3 parts" in told
    assert "at most 2 of 3 parts" in plan("EXPLAIN EXTENDED DELETE FROM events WHERE id in (1, 11)")
    assert "opens no file" in plan("explain delete from events")
    assert "any of 3 parts" in plan("EXPLAIN DELETE FROM events WHERE id IN (SELECT k FROM x)")
    told = plan(
        "EXPLAIN FORMATTED MERGE INTO events USING (SELECT 1L AS id, 'x' AS who) s ON events.id = s.id "
        "WHEN MATCHED AND s.who IS NULL THEN DELETE WHEN NOT MATCHED THEN INSERT *"
    )
    for words in ("id = id", "matched: delete, if", "not matched: insert all columns", "of 3 parts, those"):
        assert words in told
    for text in ("UPDATE events SET colour = 'red'", "DELETE FROM events WHERE colour = 'red'"):
        with pytest.raises(ColumnNotFoundError, match="colour"):
            plan(f"EXPLAIN {text}")
    assert "Relation" in plan("EXPLAIN EXTENDED SELECT * FROM events")
    assert table.history()[0].seqno == 3
