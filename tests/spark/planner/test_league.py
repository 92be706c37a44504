"""The league on both paths: each of its filters reads the ideal number of parts, and loses no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.skipping.contenders import Field
from bench.skipping.filters import league_filters
from bench.skipping.ours import Ours, OursOnSpark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def field(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Return where the table of the league is."""
    directory: Path = tmp_path_factory.mktemp("league")
    made = Field(directory, directory, spark)
    Ours(made)
    return made


@pytest.mark.parametrize("way", ["auto", "files"])
def test_every_filter_reads_the_ideal_number_of_parts(planned: SparkSession, field: Field, way: str) -> None:
    """Planned or over files, a query reads the parts that have a match, no others, and finds every row."""
    planned.conf.set("instar.planner", way)
    league = OursOnSpark(field)
    wrong = {}
    for condition in league_filters():
        found, read = league.find(condition).ids, league.explain(condition)
        if "now()" in condition.sql:  # which rows are later than that depends on the minute
            found &= condition.ids
        if found != set(condition.ids) or read != condition.ideal:
            wrong[condition.sql] = (len(found), len(condition.ids), read, condition.ideal)
    assert wrong == {}
