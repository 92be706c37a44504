"""Statements in SQL that are ours to run: what is taken from them, word for word, and what is refused."""

from __future__ import annotations

import pytest

from instar.errors import UsageError
from instar.spark.catalog.statements import (
    DeleteStatement,
    HistoryStatement,
    MergeStatement,
    SameColumns,
    UpdateStatement,
    check_elsewhere,
    parse_statement,
    split_statements,
)
from instar.table.write.merge import Clause, When


def test_updates_keep_their_expressions_as_they_are_written() -> None:
    """Only the name of the table in front of columns goes; texts, comments and numbers stay."""
    text = """update lake.`billing/events` as t set t.n = coalesce(t.n, 3L, 'it\\'s t.n') -- why, where
        , `a b` = case when t.x then 1 else 2 end where t.n <=> null and s.t.n > 1 ;"""
    assert parse_statement(text) == UpdateStatement(
        ("lake", "billing/events"),
        {"n": "coalesce(n, 3L, 'it\\'s t.n')", "`a b`": "case when x then 1 else 2 end"},
        "n <=> null and s.t.n > 1",
    )
    qualified = parse_statement("UPDATE a.b SET a.b.n = b.n + 1")
    assert qualified == UpdateStatement(("a", "b"), {"n": "n + 1"}, None)


def test_deletes_take_any_condition() -> None:
    """With subqueries too, or without a condition."""
    assert parse_statement("DELETE FROM t AS x WHERE x.id IN (SELECT u.id FROM u WHERE n > 1)") == (
        DeleteStatement(("t",), "id IN (SELECT u.id FROM u WHERE n > 1)")
    )
    assert parse_statement("delete from t") == DeleteStatement(("t",), None)


def test_merges_have_a_source_and_clauses() -> None:
    """Both tables get the names that conditions and values of ours have for them."""
    text = """MERGE INTO events USING (SELECT id AS k, (1) AS n FROM x) AS s
        ON s.k = events.id AND events.d <=> s.d
        WHEN MATCHED AND s.n IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET events.n = s.n + events.n, m = case when s.a then 'when' end
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, n) VALUES (s.k, greatest(s.n, 0))
        WHEN NOT MATCHED BY SOURCE AND events.n < 0 THEN DELETE"""
    assert parse_statement(text) == MergeStatement(
        ("events",),
        "(SELECT id AS k, (1) AS n FROM x)",
        (SameColumns("id", "k", nulls=False), SameColumns("d", "d", nulls=True)),
        (
            Clause(When.MATCHED_DELETE, "source.n IS NULL"),
            Clause(
                When.MATCHED_UPDATE,
                None,
                {"n": "source.n + target.n", "m": "case when source.a then 'when' end"},
            ),
            Clause(When.NOT_MATCHED_INSERT, None, {"id": "source.k", "n": "greatest(source.n, 0)"}),
            Clause(When.NOT_MATCHED_BY_SOURCE_DELETE, "target.n < 0"),
        ),
    )
    clauses = "when matched then update set * when not matched then insert *"
    assert parse_statement(f"merge into a.t x using b.s on x.id = s.id {clauses}") == MergeStatement(
        ("a", "t"),
        "b.s",
        (SameColumns("id", "id", nulls=False),),
        (Clause(When.MATCHED_UPDATE), Clause(When.NOT_MATCHED_INSERT)),
    )


def test_histories_are_described() -> None:
    """All of one, or its end."""
    assert parse_statement("DESCRIBE HISTORY a.`b/c` LIMIT 3") == HistoryStatement(("a", "b/c"), 3)
    assert parse_statement("desc history t") == HistoryStatement(("t",), None)


def test_statements_are_taken_apart_at_their_semicolons() -> None:
    """Not at those in texts and comments; what is empty, or only a comment, is none."""
    text = "select ';' -- a; b\n ; ;\nupdate t set n = 1;\n-- the end;"
    assert split_statements(text) == ["select ';' -- a; b", "update t set n = 1"]
    assert split_statements("select 'open; ") == ["select 'open; "]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select 1",
        "alter table t add column x int",
        "with a as (select 1) select 1",
        "describe t",
        "'",
    ],
)
def test_all_else_is_for_spark(text: str) -> None:
    """Also what is no SQL at all, of which Spark says what is wrong."""
    assert parse_statement(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("update t", "expected SET, found the end"),
        ("update t set", "expected a name, found the end"),
        ("update t set n", "expected =, found the end"),
        ("update t set n = where x", "expected an expression, found `where`"),
        ("update t set n = 1, n = 2", "set twice"),
        ("update 't' set n = 1", "expected"),
        ("delete from t where", "expected an expression"),
        ("delete from t where exists (select 1 from u where u.id = t.id)", "subquery names `t`"),
        ("describe history t limit x", "expected a number"),
        ("merge into t using s on t.id = s.id", "expected WHEN"),
        ("merge into t using s on t.id > s.id when matched then delete", "= or <=>"),
        ("merge into t using s on id = s.id when matched then delete", "name of its table in front"),
        ("merge into t using t on t.id = t.id when matched then delete", "one name"),
        ("merge into t using (select 1 on t.id = s.id when matched then delete", "not closed"),
        ("merge into t using s on t.id = s.id when matched then insert *", "DELETE or UPDATE SET"),
        ("merge into t using s on t.id = s.id when not matched by source then update set n = 1", "DELETE"),
        ("merge into t using s on t.id = s.id when not matched then insert (a, b) values (1)", "2 columns"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, why: str) -> None:
    """By what was expected, and what stands there."""
    with pytest.raises(UsageError, match=why):
        parse_statement(text)


def test_words_of_other_formats_may_be_names() -> None:
    """Only a statement that begins with them is one of theirs."""
    for text in ("", "DESCRIBE detail;", "SELECT * FROM optimize", "describe extended events"):
        check_elsewhere(text)
    for text in ("optimize t", "describe detail t", "VACUUM"):
        with pytest.raises(UsageError, match="no statement"):
            check_elsewhere(text)
