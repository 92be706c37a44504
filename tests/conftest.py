"""What all tests share: how hard Hypothesis searches, and the one Spark session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from testbed.s3a import S3A_ENVIRONMENT, s3a_settings
from tests.servers import s3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["PLACE", "s3"]

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


PLACE = "INSTAR_TEST_STORE"
"""Where tests of Spark have their stores: `s3a` is S3 with Hadoop's file system, `s3` without any."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Return a small local Spark in UTC; nothing of it listens beyond this machine."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - tests without Spark must not pay for it

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    more: dict[str, str] = {}
    if os.environ.get(PLACE):
        os.environ.update(request.getfixturevalue("s3").options)  # before the JVM, whose workers have it too
        more = {**s3a_settings(), **S3A_ENVIRONMENT} if os.environ[PLACE] == "s3a" else {}
    session = (
        SparkSession.builder.master("local[2]")
        .appName("instar tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("instar.planner", os.environ.get("INSTAR_PLANNER", "auto"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config(map={**more})
        .getOrCreate()
    )
    yield session
    session.stop()
