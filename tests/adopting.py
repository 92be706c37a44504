"""What tests of adopted files share: the same rows, written by different libraries in their own ways."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ROWS", "WRITERS", "rows_of"]

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "big": pa.array([2**40, None, -(2**40), 0], pa.int64()),
        "name": pa.array(["ä", None, "", "z" * 100]),
        "ok": pa.array([True, False, None, True]),
        "x": pa.array([1.5, float("nan"), None, -0.0]),
        "day": pa.array([date(2026, 11, 15), None, date(1969, 1, 1), date(2000, 2, 29)]),
        "at": pa.array(
            [datetime(2026, 11, 15, 1, 2, 3, 4, tzinfo=UTC), None, datetime(1969, 1, 1, tzinfo=UTC), None],
            pa.timestamp("us", "UTC"),
        ),
        "price": pa.array([Decimal("1.25"), None, Decimal("-99.99"), Decimal("0.00")], pa.decimal128(9, 2)),
        "tags": pa.array([["a", None], [], None, ["b"]], pa.list_(pa.string())),
        "who": pa.array([{"n": 1, "m": "x"}, None, {"n": 3, "m": None}, {"n": 4, "m": ""}]),
    }
)
"""Four rows of every kind that the libraries have in common."""


def _pyarrow(path: Path) -> None:
    pq.write_table(ROWS, path, row_group_size=3)


def _old_arrow(path: Path) -> None:
    pq.write_table(ROWS, path, version="1.0", use_deprecated_int96_timestamps=True, use_dictionary=False)


def _nanoseconds(path: Path) -> None:
    at = ROWS.schema.get_field_index("at")
    nanos = ROWS.column("at").cast(pa.timestamp("ns", "UTC"))
    pq.write_table(ROWS.set_column(at, "at", nanos), path)


def _integer_decimals(path: Path) -> None:
    pq.write_table(ROWS, path, store_decimal_as_integer=True, use_compliant_nested_type=False)


def _pandas(path: Path) -> None:
    # Pandas takes NaN for a null, unless it is told that the two differ.
    own = {
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.float64(): pd.ArrowDtype(pa.float64()),
    }
    ROWS.to_pandas(types_mapper=own.get).to_parquet(path, index=False)


def _duckdb(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("rows", ROWS)
        connection.execute(f"copy (select * from rows) to '{path}' (format parquet)")


def _polars(path: Path) -> None:
    pl.DataFrame(pl.from_arrow(ROWS)).write_parquet(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "pyarrow": _pyarrow,
    "int96": _old_arrow,
    "nanoseconds": _nanoseconds,
    "integer decimals": _integer_decimals,
    "pandas": _pandas,
    "duckdb": _duckdb,
    "polars": _polars,
}


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows in an order and a form in which they can be compared: NaN equals NaN."""
    rows = table.sort_by([("id", "ascending")]).to_pylist()
    return [{name: "NaN" if value != value else value for name, value in row.items()} for row in rows]  # noqa: PLR0124
