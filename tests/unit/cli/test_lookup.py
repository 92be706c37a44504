"""`instar lookup`: rows by the values of columns, for people and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

import instar as library
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_are_looked_up(tmp_path: Path) -> None:
    """Values are text that is read as the type of their column."""
    store = str(tmp_path / "lake")
    with library.open(store) as opened:
        table = opened.create_table("t", "id bigint, day date, at timestamp, x double", order_by=["id"])
        table.append(
            pa.table(
                {
                    "id": [1, 2],
                    "day": pa.array([0, 1], pa.date32()),
                    "at": pa.array([0, 10**6], pa.timestamp("us", "UTC")),
                    "x": [0.5, float("nan")],
                }
            )
        )
    found = json.loads(instar("lookup", "t", "id=2", "--store", store, "--json").stdout)
    assert found == [{"id": 2, "day": "1970-01-02", "at": "1970-01-01T00:00:01Z", "x": "NaN"}]
    for key in ("day=1970-01-02", "at=1970-01-01T00:00:01", "at=1970-01-01T01:00:01+01:00", "x=nan"):
        shown = instar("lookup", "t", key, "--column", "id", "--store", store, "--json")
        assert json.loads(shown.stdout) == [{"id": 2}], shown
    assert "1970-01-01" in instar("lookup", "t", "x=0.5", "--store", store).stdout
    wrong = instar("lookup", "t", "id", "--store", store)
    assert wrong.returncode == 2
    assert "COLUMN=VALUE" in wrong.stderr
    assert "`id` is bigint" in instar("lookup", "t", "id=x", "--store", store).stderr
