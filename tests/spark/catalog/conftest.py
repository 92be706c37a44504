"""What tests of a catalog share: a session of their own that runs statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import instar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from instar import Store


@pytest.fixture
def session(spark: SparkSession, store: Store) -> SparkSession:
    """Return a session in which the store is the catalog `instar`."""
    made = spark.newSession()
    instar.register(made, store)
    return made


@pytest.fixture
def sql(session: SparkSession) -> Callable[[str], list[tuple[object, ...]]]:
    """Return what runs a statement and collects its rows."""
    return lambda text: [tuple(row) for row in session.sql(text).collect()]
