"""What tests of tables on Spark share: a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import instar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store


@pytest.fixture
def store(tmp_path: Path, spark: SparkSession) -> Iterator[Store]:
    """Return a store; its views are dropped after the test."""
    with instar.open(tmp_path / "lake") as opened:
        yield opened
        for view in spark.catalog.listTables():
            spark.catalog.dropTempView(view.name)
