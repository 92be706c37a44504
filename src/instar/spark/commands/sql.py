"""A session for statements over one store: its tables need no prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.spark.catalog.run import use_catalog
from instar.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar.spark.catalog.contract import CatalogStore

__all__ = ["sql_session"]


def sql_session(store: CatalogStore) -> SparkSession:
    """Start Spark, and return a session in which the store is the current catalog."""
    session = local_session("instar sql").newSession()
    use_catalog(session, store)
    return session
