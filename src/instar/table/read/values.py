"""Expressions in process: the value of each, row by row, if it can be computed without Spark.

The interpreter of filters sees every row as a part of one row. Its answer has all values that an expression
may have; if that is one value, or only null, this is the result. Everything else is refused. A number for a
column of other numbers is cast, as SQL does when it assigns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from instar.errors import InstarError, UsageError
from instar.schema import Decimal, Primitive, arrow_type
from instar.schema.paths import parse_path
from instar.schema.rules import can_widen
from instar.schema.text import format_type
from instar.skipping import Session, parse_filter
from instar.skipping.expression import Anything
from instar.skipping.spans import Real, Span, Text, Truth, Whole, single
from instar.table.read.filter import outcomes_of_rows
from instar.table.read.undecided import undecided

if TYPE_CHECKING:
    from instar.schema import Schema, Type
    from instar.skipping import Expression
    from instar.table.log.part_set import Mask

__all__ = ["Value", "is_cast_into"]

_WHOLE: Final = {"tinyint", "smallint", "int", "bigint"}
_REAL: Final = {"float", "double"}
_LITERALS: Final = {"true", "false", "null"}
"""Words that name a column only in backticks."""


@dataclass(frozen=True)
class Value:
    """An expression in Spark SQL over the columns of a schema, asked at one moment."""

    text: str
    schema: Schema
    expression: Expression | None
    """None if it only names a column, of whatever type."""
    path: tuple[str, ...] = ()
    now: int = 0

    @staticmethod
    def parse(text: str, schema: Schema, now_ms: int, into: Type | None = None) -> Value:
        """Read an expression, as Spark does in UTC and ANSI mode; `into` is the type of what it is set to."""
        path, given = _path(text, schema)
        expression = None
        if not path:
            expression = parse_filter(text, schema, Session())
            given = expression.type
        if into is not None and is_cast_into(given, into):
            cast = Value.parse(f"CAST((\n{text}\n) AS {format_type(into)})", schema, now_ms)
            return replace(cast, text=text)
        return Value(text, schema, expression, path, now_ms * 1000)

    def of(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the values for the rows of a batch, whose columns are those of the schema."""
        if self.expression is None:
            column = batch.column(self.path[0])
            for name in self.path[1:]:
                at = column.type.get_field_index(name)
                column = column.flatten()[at]
            return column
        results = outcomes_of_rows(self.expression, batch, self.schema, self.now)
        rows = batch.num_rows
        null, fail = (np.broadcast_to(mask, rows) for mask in (results.null, results.fail))
        some = np.broadcast_to(results.some, rows)
        if self.expression.type is None or not results.spans:
            if null.all() and not fail.any() and not some.any():
                return pa.nulls(rows)
            raise self._undecided(batch, fail | some)
        span = results.whole
        exact = np.broadcast_to(single(span), rows)
        open_ = fail | (some & null) | (some & ~exact)
        if open_.any():
            raise self._undecided(batch, open_)
        return _array(span, self.expression.type, some, rows)

    def _undecided(self, batch: pa.RecordBatch, rows: Mask) -> UsageError:
        row = batch.slice(int(rows.argmax()), 1)
        return undecided(
            f"the value of {self.text!r} for a row",
            self.expression or Anything(self.text),
            lambda piece: outcomes_of_rows(piece, row, self.schema, self.now),
            "Give a Spark session or frame, or write it with simpler functions",
        )


def is_cast_into(given: Type | None, into: Type) -> bool:
    """Whether a value is a number that takes a cast: to widen is no cast, and whole numbers have to fit."""
    if given is None or given == into or can_widen(given, into):
        return False
    kinds = {_kind(given), _kind(into)}
    return None not in kinds and kinds != {"whole"}


def _kind(type_: Type) -> str | None:
    match type_:
        case Decimal():
            return "decimal"
        case Primitive(name=name) if name in _WHOLE:
            return "whole"
        case Primitive(name=name) if name in _REAL:
            return "real"
    return None


def _path(text: str, schema: Schema) -> tuple[tuple[str, ...], Type | None]:
    """Return the way to the column that a text names, if it only does that, and the column's type."""
    text = text.strip()
    try:
        names = parse_path(text)
    except InstarError:
        return (), None
    if not text.startswith("`") and (not names[0].isidentifier() or names[0].lower() in _LITERALS):
        return (), None  # a literal, whatever columns are called
    fields, type_ = schema.fields, None
    found: list[str] = []
    for name in names:
        field = next((it for it in fields if it.name.lower() == name.lower()), None)
        if field is None:
            return (), None
        found.append(field.name)
        type_ = field.type
        fields = getattr(field.type, "fields", ())
    return tuple(found), type_


def _array(span: Span, type_: Type, some: np.ndarray, rows: int) -> pa.Array:
    """Return the single values of a span, with null where there is none."""
    target = arrow_type(type_)
    missing = pa.array(~some)
    match span:
        case Truth(true=true):
            values = pa.array(np.broadcast_to(true, rows))
        case Real(lo=lo):
            values = pa.array(np.broadcast_to(lo, rows)).cast(target)
        case Text(lo=lo):
            values = lo if len(lo) == rows else pa.concat_arrays([lo] * rows)
            values = values.cast(pa.binary()).cast(target)
        case Whole(lo=lo):
            numbers = np.broadcast_to(lo, rows)
            if isinstance(type_, Decimal):
                shown = [
                    PyDecimal(int(n)).scaleb(-type_.scale) if ok else None
                    for n, ok in zip(numbers, some, strict=True)
                ]
                values = pa.array(shown, target)
            else:
                width = pa.int64() if target.bit_width == 64 else pa.int32()  # noqa: PLR2004 -- bits
                whole = pa.array(np.where(some, numbers, 0).astype(np.int64))
                values = whole.cast(target) if pa.types.is_integer(target) else whole.cast(width).view(target)
        case _:
            raise UsageError(f"values of type {type_} cannot be computed without Spark")
    return pc.if_else(missing, pa.scalar(None, values.type), values)
