"""A snapshot as a lazy frame of Polars: the filters and columns of a query decide which parts are opened.

Polars gives its predicate; the conditions in it that SQL can express become an instar filter, for skipping.
Polars still applies the whole predicate to the rows, so a condition that is not understood costs time, never
rows.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from instar.errors import UsageError
from instar.schema import arrow_schema, format_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from instar.api.snapshot import Snapshot

__all__ = ["batches_for", "lazy_frame", "sql_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COMPARISONS: Final = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_CLOSED: Final = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_MICROSECONDS: Final = {"Microseconds": 1, "Milliseconds": 1000}


def lazy_frame(snapshot: Snapshot) -> pl.LazyFrame:
    """Return the rows as a frame that reads only what the query built on it needs."""
    import polars as pl  # noqa: PLC0415 -- only who has Polars asks for its frames
    from polars.io.plugins import register_io_source  # noqa: PLC0415

    empty = pl.DataFrame(arrow_schema(snapshot.schema).empty_table())

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = columns if columns is not None else empty.columns
        looked_at = predicate.meta.root_names() if predicate is not None else []
        names = list(dict.fromkeys([*wanted, *looked_at])) or empty.columns[:1]
        left = rows
        for batch in batches_for(snapshot, None if predicate is None else sql_of(predicate), names):
            frame = pl.DataFrame(pa.Table.from_batches([batch]))
            frame = (frame if predicate is None else frame.filter(predicate)).select(wanted)
            frame = frame if left is None else frame.head(left)
            left = None if left is None else left - frame.height
            yield frame
            if left == 0:
                return

    return register_io_source(read, schema=empty.schema)


def batches_for(snapshot: Snapshot, where: str | None, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the batches that may have rows for a condition; if it cannot be decided without Spark, all."""
    if where is None:
        return snapshot.to_batches(columns=names)
    try:
        snapshot.explain(where)
    except UsageError:
        return snapshot.to_batches(columns=names)
    return snapshot.to_batches(where, names)


def sql_of(predicate: pl.Expr) -> str | None:
    """Return those conditions of a predicate that Spark SQL can say with the same meaning, if any."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:  # noqa: BLE001 -- Polars promises nothing about this form; then there is no filter
        return None
    return _conditions(tree)


def _conditions(tree: Any) -> str | None:  # noqa: ANN401 -- JSON
    """Return what is understood of conditions that are joined by AND: each of them may be left out."""
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            known = [sql for side in (left, right) if (sql := _conditions(side)) is not None]
            return " AND ".join(known) or None
    return _condition(tree)


def _condition(tree: Any) -> str | None:  # noqa: ANN401 -- one line for each form
    """Return a condition that is understood as a whole."""
    match tree:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            return _joined(_condition(left), "AND", _condition(right))
        case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
            return _joined(_condition(left), "OR", _condition(right))
        case {"BinaryExpr": {"left": left, "op": op, "right": right}} if op in _COMPARISONS:
            return _joined(_value(left), _COMPARISONS[op], _value(right))
        case {"Function": {"input": [one], "function": {"Boolean": "IsNull"}}}:
            return _suffixed(_value(one), "IS NULL")
        case {"Function": {"input": [one], "function": {"Boolean": "IsNotNull"}}}:
            return _suffixed(_value(one), "IS NOT NULL")
        case {"Function": {"input": [one, many], "function": {"Boolean": {"IsIn": {"nulls_equal": False}}}}}:
            values = _values(many)
            return None if values is None else _suffixed(_value(one), f"IN ({', '.join(values)})")
        case {
            "Function": {"input": [one, low, high], "function": {"Boolean": {"IsBetween": {"closed": ends}}}}
        }:
            above, below = _CLOSED[ends]
            value = _value(one)
            return _joined(_joined(value, above, _value(low)), "AND", _joined(value, below, _value(high)))
    return None


def _value(tree: Any) -> str | None:  # noqa: ANN401 -- JSON
    match tree:
        case {"Column": str(name)}:
            return format_path((name,))
        case {"Literal": {"Dyn": dict(literal)} | {"Scalar": dict(literal)}} if len(literal) == 1:
            return _literal(*next(iter(literal.items())))
    return None


def _values(tree: Any) -> list[str] | None:  # noqa: ANN401 -- JSON
    """Return the values of a list, which is a stream of Arrow's, byte by byte."""
    match tree:
        case {"Literal": {"Scalar": {"List": [*data]}}}:
            values = pa.ipc.open_stream(bytes(data)).read_all().column(0)
            return _literals(values) if len(values) else None
    return None


def _literals(values: pa.ChunkedArray) -> list[str] | None:
    if pa.types.is_integer(values.type):
        return [f"cast('{value}' as bigint)" for value in values.drop_null().to_pylist()]
    if pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        found = [_literal("String", value) for value in values.drop_null().to_pylist()]
        return [text for text in found if text is not None] or None
    return None


def _literal(kind: str, value: Any) -> str | None:  # noqa: ANN401 -- one line for each type
    match kind, value:
        case "Boolean", bool():
            return str(value).lower()
        case (("String" | "StringOwned"), str()):
            quoted = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{quoted}'"
        case (("Int" | "Int8" | "Int16" | "Int32" | "Int64"), int()):
            return f"cast('{value}' as bigint)" if abs(value) < 2**63 else None
        case (("Float" | "Float32" | "Float64"), float() | int()):
            return f"cast('{value!r}' as double)"
        case "Date", int():
            return _moment("date", timedelta(days=value))
        case "Datetime", [int(count), str(unit), zone] if unit in _MICROSECONDS:
            since = timedelta(microseconds=count * _MICROSECONDS[unit])
            return _moment("timestamp_ntz" if zone is None else "timestamp", since)
        case "Decimal", [int(digits), int(), int(scale)]:
            return f"{Decimal(digits).scaleb(-scale):f}BD"
    return None


def _moment(kind: str, since: timedelta) -> str | None:
    """Return a literal for a moment, if it is of a year that text can say."""
    try:
        moment = _EPOCH + since
    except OverflowError:
        return None
    if kind == "date":
        return f"date'{moment:%Y-%m-%d}'" if moment.year >= 1000 else None  # noqa: PLR2004 -- four digits
    zone = "" if kind == "timestamp_ntz" else "+00:00"
    return f"{kind}'{moment:%Y-%m-%d %H:%M:%S.%f}{zone}'" if moment.year >= 1000 else None  # noqa: PLR2004


def _joined(left: str | None, by: str, right: str | None) -> str | None:
    return None if left is None or right is None else f"({left} {by} {right})"


def _suffixed(value: str | None, by: str) -> str | None:
    return None if value is None else f"({value} {by})"
