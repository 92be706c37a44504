"""Checking what was skipped: a proof that is wrong is found out, in every mode, and told in full."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import instar
from instar.errors import SkippingViolationError
from instar.table.metrics import PARTS_AUDITED, VIOLATIONS
from instar.table.read import pruning, selection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store, Table
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader
    from instar.table.read.pruning import Condition, Needed

EVERYTHING = {"skipping_sample": 100, "skipping_budget": 1 << 40}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store in which all that is skipped is checked."""
    with instar.open(tmp_path / "lake", defaults=EVERYTHING) as opened:
        yield opened


@pytest.fixture
def table(store: Store) -> Table:
    """Return a table with five parts."""
    made = store.create_table("t", "id bigint, s string")
    for part in range(5):
        made.append(pa.table({"id": [part * 10, part * 10 + 9], "s": [str(part), f"{part}9"]}))
    return made


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the proof leave out the third part, whatever is asked."""
    honest = pruning.needed_parts

    def lie(chunks: ChunkReader, state: TableState, condition: Condition) -> Needed:
        needed = honest(chunks, state, condition)
        return needed._replace(read=needed.read & (np.arange(len(needed.read)) != 2))

    monkeypatch.setattr(selection, "needed_parts", lie)


@pytest.mark.usefixtures("liar")
@pytest.mark.parametrize("mode", ["on", "audit"])
def test_a_row_that_was_skipped_is_found(
    spark: SparkSession, table: Table, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names part, filter, bounds and row, is counted and logged, on Spark and in process."""
    before = VIOLATIONS._value.get()
    snapshot = table.snapshot(skipping=mode)
    part = table.explain("id = 29", parts=True).parts[2].key
    with caplog.at_level(logging.CRITICAL, "instar.skipping"):
        with pytest.raises(SkippingViolationError) as caught:
            snapshot.to_spark(spark).where("id = 29 and s like '2%'").collect()
        with pytest.raises(SkippingViolationError):
            snapshot.to_arrow("id = 29")
    error = caught.value
    assert (error.table, error.part) == ("t", part)
    assert "id = 29" in error.condition
    assert "id is between 20 and 29" in error.bounds
    assert "'id': 29" in error.row
    assert VIOLATIONS._value.get() - before == 2
    assert part in caplog.text


@pytest.mark.usefixtures("liar")
def test_a_row_that_fails_is_found_too(spark: SparkSession, table: Table) -> None:
    """A part on which a filter fails must not be skipped: without it, the query would not fail."""
    frame = table.snapshot(skipping="audit").to_spark(spark)
    with pytest.raises(SkippingViolationError, match="DIVIDE_BY_ZERO"):
        frame.where("1 / (id - 20) = 7").collect()


@pytest.mark.usefixtures("liar")
def test_without_checks_nothing_is_found(spark: SparkSession, table: Table) -> None:
    """The tests above fail for the right reason: a proof that lies does lose rows."""
    table.configure(skipping_sample=0)
    assert table.read(spark).where("id = 29").count() == 0
    assert table.snapshot(skipping="off").to_spark(spark).where("id = 29").count() == 1


def test_an_honest_proof_passes_every_check(spark: SparkSession, table: Table) -> None:
    """Checks run and find nothing; the same check is not made twice unless everything is checked."""
    table.delete("id = 19", spark)
    before = PARTS_AUDITED._value.get()
    for _ in range(2):
        assert table.read(spark).where("id > 35").count() == 3
    once = PARTS_AUDITED._value.get() - before
    assert once > 0
    assert table.snapshot(skipping="audit").to_spark(spark).where("id > 35").count() == 3
    assert PARTS_AUDITED._value.get() - before == 2 * once
