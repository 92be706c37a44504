"""The league: one data set, twenty filters, and for each the ideal number of parts.

200 parts, one a day from 2024-09-01, 100 rows each, in the order of time. Ideal is to read the parts that
hold at least one row for which the filter is true, NaN being the greatest number.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from instar.schema import parse_schema_ddl

__all__ = ["FILTERS", "NOW", "PARTS", "SCHEMA", "part"]

PARTS, ROWS = 200, 100
_DAY = 86_400_000_000
_START = (dt.date(2024, 9, 1) - dt.date(1970, 1, 1)).days
NOW = (_START + 190 + 600) * _DAY + _DAY // 2
"""Some noon, 600 days after that of day 190."""

SCHEMA = parse_schema_ddl(
    "id bigint, ts timestamp, d date, a int, b int, n bigint, s string, "
    "st struct<x: bigint, y: string>, f double"
)

FILTERS = {
    "id >= 19000": 10,
    "ts >= timestamp'2025-03-01'": 19,
    "id > 18999.5": 10,
    "not (id >= 100) or id > 19900": 2,
    "id + 1 > 19000": 10,
    "abs(id - 10000) < 150": 4,
    "cast(ts as date) = date'2025-01-15'": 1,
    "date_trunc('day', ts) = timestamp'2025-01-15'": 1,
    "year(ts) = 2025": 78,
    "coalesce(n, -1) > 16500": 15,
    "case when id < 100 then 'a' when id > 19800 then 'b' else 'c' end = 'b'": 2,
    "id in (5, 10050, 19999)": 3,
    "s like 'k00012%'": 10,
    "substring(s, 1, 6) = 'k00012'": 10,
    "n is null": 30,
    "n is not null": 180,
    "st.x > 19000": 10,
    "a < b": 50,
    "ts >= now() - interval 600 days": 10,
    "f > 19000": 20,
}
"""Spark SQL in UTC, and the parts that it needs."""


def part(number: int) -> dict[str, list[Any]]:
    """Return the columns of a part by path, with values as statistics store them."""
    ids = [number * ROWS + row for row in range(ROWS)]
    days = _START + number
    values = list(map(float, ids))
    if number < 10:
        values[50] = math.nan
    if number < 170:
        n: list[int | None] = list(ids)
    elif number < 180:
        n = [key if key % 2 else None for key in ids]
    else:
        n = [None] * ROWS
    return {
        "id": ids,
        "ts": [days * _DAY + row * 864_000_000 for row in range(ROWS)],
        "d": [days] * ROWS,
        "a": ids,
        "b": [key - 1000 if number < 150 else key + 1000 for key in ids],
        "n": n,
        "s": [f"k{key:08d}" for key in ids],
        "st.x": ids,
        "st.y": [f"y{key}" for key in ids],
        "f": values,
    }
