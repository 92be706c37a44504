"""The league's filters: what each is true for, and how engines with another dialect are asked the same.

The rows and the ideal numbers of parts are those that the tests hold instar to.
"""

# ruff: noqa: PLR2004 -- the filters' own numbers are best read in place

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from testbed.league import FILTERS, NOW, PARTS, ROWS, SCHEMA, part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["PARTS", "SCHEMA", "Filter", "league_filters", "league_rows"]

_ARROW: Final = pa.schema(
    {
        "id": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
        "d": pa.date32(),
        "a": pa.int32(),
        "b": pa.int32(),
        "n": pa.int64(),
        "s": pa.string(),
        "st": pa.struct({"x": pa.int64(), "y": pa.string()}),
        "f": pa.float64(),
    }
)

_DAY: Final = 86_400_000_000
_MARCH: Final = 20_148 * _DAY
_JANUARY_15: Final = 20_103 * _DAY
_YEAR_2025: Final = range(20_089 * _DAY, 20_454 * _DAY)

_HOUR: Final = 3_600_000_000
_FIXED_NOW: Final = "now() - interval 600 days"
_SINCE: Final = NOW - 600 * _DAY


@dataclass(frozen=True)
class Filter:
    """A filter in Spark SQL, how many parts hold a match, and the ids of the rows that it is true for."""

    sql: str
    ideal: int
    ids: frozenset[int]
    nan_ids: frozenset[int]
    """Those of them that an engine leaves out for which NaN is no number."""
    since: int
    """Since when `now()` in the filter lets rows be, in microseconds since 1970."""


def league_filters() -> list[Filter]:
    """Return all filters, for some minutes from now."""
    rows = [dict(zip(columns, row, strict=True)) for columns, row in _rows()]
    hours, since = _hours_back()
    filters = []
    for (text, ideal), true in zip(FILTERS.items(), _TRUE, strict=True):
        matches = [row for row in rows if true(row)]
        ids = frozenset(row["id"] for row in matches)
        assert len({id_ // ROWS for id_ in ids}) == ideal, f"{text} is true in other parts than it should"
        nans = frozenset(row["id"] for row in matches if math.isnan(row["f"]))
        sql = text.replace(_FIXED_NOW, f"now() - interval {hours} hours")
        filters.append(Filter(sql, ideal, ids, nans if text.startswith("f ") else frozenset(), since))
    return filters


def league_rows() -> Iterator[pa.Table]:
    """Yield the rows of each part."""
    for number in range(PARTS):
        columns = part(number)
        st = pa.StructArray.from_arrays(
            [pa.array(columns["st.x"]), pa.array(columns["st.y"])], fields=list(_ARROW.field("st").type)
        )
        yield pa.table(
            [st if field.name == "st" else pa.array(columns[field.name], field.type) for field in _ARROW],
            schema=_ARROW,
        )


def _rows() -> Iterator[tuple[list[str], tuple[Any, ...]]]:
    for number in range(PARTS):
        columns = part(number)
        names = list(columns)
        for row in zip(*columns.values(), strict=True):
            yield names, row


def _hours_back() -> tuple[int, int]:
    """Return how many hours ago the noon is that the filter with `now()` means, and that moment."""
    now = time.time_ns() // 1000
    hours = round((now - _SINCE) / _HOUR)
    return hours, now - hours * _HOUR


def _case(row: Mapping[str, Any]) -> bool:
    return not row["id"] < 100 and row["id"] > 19_800


_TRUE: Final[tuple[Callable[[Mapping[str, Any]], bool], ...]] = (
    lambda row: row["id"] >= 19_000,
    lambda row: row["ts"] >= _MARCH,
    lambda row: row["id"] > 18_999.5,
    lambda row: not row["id"] >= 100 or row["id"] > 19_900,
    lambda row: row["id"] + 1 > 19_000,
    lambda row: abs(row["id"] - 10_000) < 150,
    lambda row: row["ts"] // _DAY * _DAY == _JANUARY_15,
    lambda row: row["ts"] - row["ts"] % _DAY == _JANUARY_15,
    lambda row: row["ts"] in _YEAR_2025,
    lambda row: (-1 if row["n"] is None else row["n"]) > 16_500,
    _case,
    lambda row: row["id"] in {5, 10_050, 19_999},
    lambda row: row["s"].startswith("k00012"),
    lambda row: row["s"][:6] == "k00012",
    lambda row: row["n"] is None,
    lambda row: row["n"] is not None,
    lambda row: row["st.x"] > 19_000,
    lambda row: row["a"] < row["b"],
    lambda row: row["ts"] >= _SINCE + _HOUR,  # whenever it is asked
    lambda row: math.isnan(row["f"]) or row["f"] > 19_000,
)
"""What the filters say, in their order; NaN is the greatest number."""
