"""`instar compact`: what would be done, what was done, and that it is told to people and to programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import instar as library
from tests.unit.cli.command import instar

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> str:
    """Make a store with a table of eight small, overlapping parts, half of them under an old schema."""
    with library.open(tmp_path / "lake") as opened:
        table = opened.create_table("t", "a bigint, b string", order_by=["a"])
        for part in range(8):
            if part == 4:
                table.evolve().drop_column("b").commit()
            table.append(pa.table({"a": [part, part + 100]}))
    return str(tmp_path / "lake")


def test_a_table_is_compacted(store: str) -> None:
    """First it is said what would happen, then it happens, and then there is nothing left to do."""
    planned = instar("compact", "t", "--dry-run", "--store", store)
    assert "overlap" in planned.stdout
    assert json.loads(instar("compact", "t", "--dry-run", "--json", "--store", store).stdout)[0]["parts"] == 8
    done = instar("compact", "t", "--store", store)
    assert done.stdout.startswith("Rewrote 8 parts")
    with library.open(store) as opened:
        table = opened.table("t")
        assert table.state.totals.parts == 1
        assert table.snapshot().to_arrow()["a"].to_pylist() == [*range(8), *range(100, 108)]
        assert table.history()[0].what == "compacted 8 parts into 1"
    assert instar("compact", "t", "--store", store).stdout == "Nothing to do.\n"
    assert instar("compact", "t", "--dry-run", "--store", store).stdout == "Nothing to do.\n"
    report = json.loads(instar("compact", "t", "--full", "--json", "--store", store).stdout)
    assert report["jobs"] == 0


def test_a_table_that_is_not_there_is_an_error(store: str) -> None:
    """As everywhere."""
    done = instar("compact", "nothing", "--store", store)
    assert done.returncode != 0
    assert "nothing" in done.stderr
