"""Explaining a decision: what each conjunct does alone, and why one part is read or skipped, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from instar.skipping.expression import Column, Expression, conjuncts, walk
from instar.skipping.prune import Verdict, decide, make_scope, outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

__all__ = ["Conjunct", "Explanation", "Reason", "explain", "explain_conjuncts", "explain_part"]


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One of the conditions that a filter joins by AND, and how many parts it excludes alone."""

    text: str
    excludes: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """How many parts a filter reads and skips, and what each of its conjuncts has to do with it."""

    total: int
    read: int
    conjuncts: tuple[Conjunct, ...]

    @property
    def skipped(self) -> int:
        """How many parts are skipped."""
        return self.total - self.read


@dataclass(frozen=True, slots=True)
class Reason:
    """The verdict for one part, and the bounds that decided it."""

    verdict: Verdict
    text: str


def explain(
    expression: Expression,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    now: tuple[int, int] | None = None,
) -> Explanation:
    """Explain a decision over all parts. Takes the same arguments as `decide`."""
    decision = decide(expression, bounds, rows, now)
    return Explanation(
        len(rows), len(rows) - decision.skipped, explain_conjuncts(expression, bounds, rows, now)
    )


def explain_conjuncts(
    expression: Expression,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    now: tuple[int, int] | None = None,
) -> tuple[Conjunct, ...]:
    """Count what each conjunct excludes alone. Takes the same arguments as `decide`."""
    return tuple(
        Conjunct(str(part), decide(part, bounds, rows, now).skipped) for part in conjuncts(expression)
    )


def explain_part(
    expression: Expression,
    bounds: Mapping[int, pa.RecordBatch],
    rows: pa.Array,
    part: int,
    now: tuple[int, int] | None = None,
) -> Reason:
    """Explain the verdict for one part: the first conjunct that excludes it, and the bounds it looked at."""
    one = {field_id: batch.slice(part, 1) for field_id, batch in bounds.items()}
    count = rows.slice(part, 1)
    verdict = decide(expression, one, count, now).verdict(0)
    for condition in conjuncts(expression):
        if decide(condition, one, count, now).verdict(0) is Verdict.SKIP:
            return Reason(verdict, f"{condition} is never true: {_facts(condition, one)}")
    if verdict is Verdict.SKIP:
        return Reason(verdict, f"{expression} is never true: {_facts(expression, one)}")
    found = outcomes(expression, make_scope(expression, one, count, now))
    may = "may be true" if bool(np.any(found.true)) else "may fail"
    return Reason(verdict, f"{expression} {may}: {_facts(expression, one)}")


def _facts(expression: Expression, bounds: Mapping[int, pa.RecordBatch]) -> str:
    columns = {node.field_id: node for node in walk(expression) if isinstance(node, Column)}
    facts = [_fact(column, bounds.get(field_id)) for field_id, column in columns.items()]
    return "; ".join(facts) or "it mentions no column"


def _fact(column: Column, bounds: pa.RecordBatch | None) -> str:
    """Say what is known of a column in one part."""
    if bounds is None:
        return f"nothing is known of {column}"
    nulls, nans, low, high = (_value(bounds.column(name)[0]) for name in ("nulls", "nans", "min", "max"))
    if low is None and high is None:
        text = f"{column} has no known bounds" if nulls is None or nulls == 0 else f"{column} has only null"
    else:
        text = f"{column} is between {low} and {high}"
    notes = [
        note
        for note, said in ((f"{nulls} null", nulls), (f"{nans} NaN", nans), ("nulls unknown", nulls is None))
        if said
    ]
    return f"{text} ({', '.join(notes)})" if notes else text


def _value(scalar: pa.Scalar) -> Any:  # noqa: ANN401 -- a bound of any type
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        # Outside of Python's calendar.
        return scalar.value
