"""The Python data source `instar`, for sessions without a JVM at hand and for streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["InstarSource", "register_source"]


class InstarSource(DataSource):
    """Tables of a store, by the options `store` and `table`."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is told."""
        return "instar"


def register_source(spark: SparkSession) -> None:
    """Make the source and sink `instar` known to a session."""
    spark.dataSource.register(InstarSource)
