"""What the tests of tables on Spark share: settings that are taken back."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession


@pytest.fixture
def with_settings(spark: SparkSession) -> Callable[[dict[str, str]], AbstractContextManager[None]]:
    """Return what changes settings of the session for a while."""

    @contextmanager
    def changed(settings: dict[str, str]) -> Iterator[None]:
        for name, value in settings.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in settings:
                spark.conf.unset(name)

    return changed
