"""What all tests share: how hard Hypothesis searches, and the one Spark session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

# `ci` repeats the same examples every time, so a red build is red again; `soak` looks for new ones.
# Neither has a deadline for one example: machines differ, and pytest-timeout bounds the whole test.
SLOW_IS_FINE = [HealthCheck.too_slow]
settings.register_profile(
    "ci", derandomize=True, max_examples=100, deadline=None, suppress_health_check=SLOW_IS_FINE
)
settings.register_profile("soak", max_examples=20_000, deadline=None, suppress_health_check=SLOW_IS_FINE)
settings.load_profile(os.environ.get("INSTAR_HYPOTHESIS", "ci"))


# Queries here are many and small: translating them once and quickly takes less time than translating well.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses Spark."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a small local Spark in UTC; nothing of it listens beyond this machine."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - tests without Spark must not pay for it

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("instar tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("instar.planner", os.environ.get("INSTAR_PLANNER", "files"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
