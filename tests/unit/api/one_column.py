"""Rows of one column, for tests in which it only matters which rows a table has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from instar.api.table import Table

__all__ = ["held", "rows"]


def rows(*values: int) -> pa.Table:
    """Return rows of one column."""
    return pa.table({"k": pa.array(values, pa.int32())})


def held(table: Table, version: int | None = None) -> list[int]:
    """Return what a table holds."""
    found: list[int] = table.snapshot(version=version).to_arrow().column("k").to_pylist()
    return sorted(found)
