"""What tests of the interpreter share: parts made of values, and whether a result was foreseen."""

from __future__ import annotations

import math
from decimal import Decimal as PyDecimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from instar.schema import Decimal, Primitive, Schema, Type, parse_schema_ddl
from instar.skipping import Decision, Expression, Session, decide, parse_filter
from instar.skipping.columns import held_value
from instar.skipping.interpret import evaluate
from instar.skipping.prune import make_scope
from instar.skipping.spans import Opaque, Real, Text, Truth, Whole
from instar.stats import FieldStats, bounds_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.skipping.results import Results

__all__ = ["FAIL", "allows", "bounds_of", "parts_read", "results_for", "stats_of"]

FAIL = object()
"""The outcome of an expression that raises an error."""


def stats_of(values: Sequence[Any], type_: Type) -> FieldStats:
    """Return exact statistics of values, which are given as they are stored."""
    present = [value for value in values if value is not None]
    numbers = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    store = str if isinstance(type_, Decimal) else lambda value: value
    key = (lambda value: value.encode()) if type_ == Primitive("string") else None
    low, high = (store(min(numbers, key=key)), store(max(numbers, key=key))) if numbers else (None, None)
    return FieldStats(len(values) - len(present), len(present) - len(numbers), low, high)


def bounds_of(
    parts: Sequence[Mapping[str, Sequence[Any]]], schema: Schema
) -> tuple[dict[int, Any], pa.Array]:
    """Lay out the statistics of parts, each given as columns of values, and their numbers of rows."""
    bounds = {
        leaf.id: bounds_columns([stats_of(part[".".join(path)], leaf.type) for part in parts], leaf.type)
        for path, leaf in schema.leaves()
        if all(".".join(path) in part for part in parts)
    }
    rows = pa.array([len(next(iter(part.values()))) for part in parts], pa.int64())
    return bounds, rows


def parts_read(
    text: str,
    columns: str,
    parts: Sequence[Mapping[str, Sequence[Any]]],
    session: Session | None = None,
    now: tuple[int, int] | None = None,
) -> list[int]:
    """Return which of the parts a filter reads."""
    schema = parse_schema_ddl(columns)
    bounds, rows = bounds_of(parts, schema)
    decision: Decision = decide(parse_filter(text, schema, session), bounds, rows, now)
    return [int(part) for part in np.flatnonzero(decision.read)]


def results_for(expression: Expression, bounds: Mapping[int, Any], rows: pa.Array) -> Results:
    """Evaluate an expression over statistics."""
    return evaluate(expression, make_scope(expression, bounds, rows, None))


def allows(results: Results, part: int, outcome: object, type_: Type) -> bool:
    """Tell whether the results of a part include an outcome."""

    def at(column: Any) -> Any:  # noqa: ANN401 -- a column of anything
        return column[part if len(column) > 1 else 0]

    if outcome is FAIL:
        return bool(at(results.fail))
    if outcome is None:
        return bool(at(results.null))
    assert isinstance(outcome, bool | int | float | str | bytes | PyDecimal)
    held = held_value(outcome, type_)
    for span in results.spans:
        match span:
            case Truth(true=true, false=false) if at(true if held else false):
                return True
            case Real(nan=nan) if math.isnan(held):
                if at(nan):
                    return True
            case Whole(lo=lo, hi=hi, some=some) | Real(lo=lo, hi=hi, some=some):
                if at(some) and at(lo) <= held <= at(hi):
                    return True
            case Text(lo=low, hi=high, some=some) if at(some):
                top = at(high).as_py()
                if at(low).as_py() <= held and (top is None or held <= top):
                    return True
            case Opaque(some=some) if at(some):
                return True
    return False
