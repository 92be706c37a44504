"""A Spark session of our own, for commands that have none to use."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from instar.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["local_session"]

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}


def local_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session that is there, or start one on this machine, quiet and without a web page."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[*]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise UsageError(
            "Spark did not start, which needs Java 17 or newer: install it, or set JAVA_HOME "
            f"({str(error).splitlines()[0]})"
        ) from None
