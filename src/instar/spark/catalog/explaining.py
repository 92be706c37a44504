"""`EXPLAIN` of statements that change rows: what they would look at and change, from metadata alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from instar.amounts import format_bytes, format_count
from instar.errors import UsageError
from instar.spark.catalog.statements import DeleteStatement, MergeStatement, UpdateStatement
from instar.table.write.merge import When

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from instar.spark.catalog.contract import StoredTable
    from instar.spark.catalog.statements import RowStatement
    from instar.table.write.merge import Clause

__all__ = ["explain_change"]

_WHEN: Final = {
    When.MATCHED_UPDATE: "matched: update",
    When.MATCHED_DELETE: "matched: delete",
    When.NOT_MATCHED_INSERT: "not matched: insert",
    When.NOT_MATCHED_BY_SOURCE_DELETE: "not matched by source: delete",
}


def explain_change(statement: RowStatement, table: StoredTable) -> str:
    """Say what a statement would do to a table as it is now. Nothing is changed, and no data is read."""
    return "\n".join(_lines(statement, table))


def _lines(statement: RowStatement, table: StoredTable) -> Iterator[str]:
    at = f"`{table.name}`, version {table.state.seqno}"
    match statement:
        case UpdateStatement(values=values, where=where):
            yield f"Update of {at}"
            yield f"  sets {_set(table, values)}"
            yield f"  {_opened(table, where)}"
        case DeleteStatement(where=None):
            yield f"Delete of {at}"
            yield "  all rows; opens no file"
        case DeleteStatement(where=where):
            yield f"Delete of {at}"
            yield f"  {_opened(table, where)}"
        case MergeStatement(source=source, on=on, clauses=clauses):
            yield f"Merge of {at}"
            yield f"  from {source}"
            for same in on:
                table.schema.load_column(same.target)
            yield "  on " + " AND ".join(
                f"{same.target} {'<=>' if same.nulls else '='} {same.source}" for same in on
            )
            yield from (f"  {_clause(table, clause)}" for clause in clauses)
            whole = any(clause.when is When.NOT_MATCHED_BY_SOURCE_DELETE for clause in clauses)
            which = "all" if whole else "those whose bounds meet keys of the source"
            yield f"  opens, of {format_count(table.explain('true').total, 'part')}, {which}"


def _clause(table: StoredTable, clause: Clause) -> str:
    condition = "" if clause.condition is None else f", if {clause.condition}"
    if clause.when in {When.MATCHED_DELETE, When.NOT_MATCHED_BY_SOURCE_DELETE}:
        return _WHEN[clause.when] + condition
    values = "all columns" if clause.values is None else _set(table, clause.values)
    return f"{_WHEN[clause.when]} {values}{condition}"


def _set(table: StoredTable, values: Mapping[str, str]) -> str:
    for column in values:
        table.schema.load_column(column)
    return ", ".join(f"{column} = {value}" for column, value in values.items())


def _opened(table: StoredTable, where: str | None) -> str:
    """Say which parts are opened to find the rows."""
    try:
        report = table.explain(where or "true")
    except UsageError:  # a subquery, or what only Spark understands
        return f"where {where}; opens any of {format_count(table.explain('true').total, 'part')}"
    parts = f"at most {report.read:,} of {format_count(report.total, 'part')}"
    size = f"{format_bytes(report.bytes_read)} of {format_bytes(report.bytes_total)}"
    return f"{'all rows' if where is None else f'where {where}'}; opens {parts}, {size}"
