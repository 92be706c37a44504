"""The interpreter never loops over parts: twenty times as many parts take no more steps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from instar.schema import parse_schema_ddl
from instar.skipping import Session, decide, parse_filter
from instar.stats import FieldStats, bounds_columns

if TYPE_CHECKING:
    from types import FrameType

SCHEMA = parse_schema_ddl("id bigint, ts timestamp, s string, f double, dc decimal(10,2), d date")
HOUR = 3_600_000_000


def steps(text: str, parts: int) -> int:
    """Count the Python lines that one decision takes."""
    stats = {
        "id": [FieldStats(0, 0, n, n + 9) for n in range(parts)],
        "ts": [FieldStats(0, 0, n * HOUR, (n + 1) * HOUR) for n in range(parts)],
        "s": [FieldStats(0, 0, f"k{n:05}", f"k{n + 1:05}") for n in range(parts)],
        "f": [FieldStats(0, n % 2, float(n), n + 1.0) for n in range(parts)],
        "dc": [FieldStats(1, 0, f"{n}.00", f"{n + 1}.00") for n in range(parts)],
        "d": [FieldStats(0, 0, n, n + 1) for n in range(parts)],
    }
    bounds = {field.id: bounds_columns(stats[field.name], field.type) for field in SCHEMA.fields}
    rows = pa.array([10] * parts, pa.int64())
    expression = parse_filter(text, SCHEMA, Session("Europe/Berlin"))
    decide(expression, bounds, rows)  # zones are read once
    count = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:  # noqa: ANN401 -- as sys.settrace has it
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        decide(expression, bounds, rows)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "text",
    [
        "id + 1 > 19000 and date_trunc('day', ts) = timestamp'2025-01-15' and s like 'k00012%'",
        "case when id < 100 then 'a' when id > 19800 then 'b' else 'c' end = 'b' and hour(ts) = 3",
        "abs(id - 100) < 15 and coalesce(f, -1D) > 5 and dc * 2 > 3 and id in (5, 10050, 19999)",
        "year(d) = 2025 and add_months(d, 1) > date'2025-01-31' and f / 3 > 1 and round(f, 1) = 0.5D",
    ],
)
def test_the_steps_do_not_grow_with_the_parts(text: str) -> None:
    """As many lines of Python run for 800 parts as for 100, of which some are left to the last condition."""
    assert steps(text, 800) <= steps(text, 100) * 1.2
