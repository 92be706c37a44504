"""What tests of tables on Spark share: a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

import instar
from instar.errors import FileSystemMissingError
from tests.conftest import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store


NATIVE = ("native", "planner", "skipping", "soak")
"""Folders of tests about Spark's own reader, its planner and views that follow, which need a file system."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On S3, run what uses a store and does not look behind it; without a file system, what needs none."""
    place = os.environ.get(PLACE)
    if place:
        for item in items:
            if item.path.parent.name in NATIVE:
                item.add_marker("native")
        names = {"directory"} if place == "s3a" else {"directory", "native"}
        chosen = [
            item
            for item in items
            if "store" in getattr(item, "fixturenames", ())
            and not any(item.get_closest_marker(name) for name in names)
        ]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        for item in chosen:
            item.add_marker(pytest.mark.filterwarnings("ignore:Spark cannot open"))
        items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Leave out what Spark cannot do without a file system, where it is to have none."""
    try:
        return (yield)
    except FileSystemMissingError as error:
        if os.environ.get(PLACE) == "s3":
            pytest.skip(f"{item.name} needs a file system: {error.code}")
        raise


@pytest.fixture
def store(tmp_path: Path, spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[Store]:
    """Return a store, in a directory or on S3; its views are dropped after the test."""
    place = request.getfixturevalue("s3").url() if os.environ.get(PLACE) else tmp_path / "lake"
    with instar.open(place) as opened:
        yield opened
        for view in spark.catalog.listTables():
            spark.catalog.dropTempView(view.name)
