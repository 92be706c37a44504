"""Writes from Spark are reported with the tables that they read, column by column as far as the plan says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

import instar
from instar.spark.source.data_source import InstarSource
from tests.reporting import Endpoint, column_sources, endpoint, own_sender

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from instar import Store

__all__ = ["endpoint", "own_sender"]

pytestmark = pytest.mark.spark


@pytest.mark.native
def test_columns_are_followed_through_the_plan(store: Store, spark: SparkSession, endpoint: Endpoint) -> None:
    """Joins, unions, views, windows and aggregates name the columns that values are made from."""
    orders = store.create_table("orders", "id long, customer long, price double")
    orders.append(pa.table({"id": [1], "customer": [7], "price": [2.5]}))
    orders.delete("id = 99")
    people = store.create_table("people", "customer long, name string, tags array<string>")
    people.append(pa.table({"customer": [7], "name": ["ann"], "tags": [["x"]]}))
    instar.register(spark, store)
    joined = orders.read(spark).join(people.read(spark), "customer")
    spent = joined.groupBy("name").agg(F.sum("price").alias("spent"), F.lit(1).alias("one"))
    united = spent.unionAll(spark.sql("SELECT upper(name), customer / 2.0, 1 FROM people"))
    wanted = store.create_table("spent", "name string, spent double, one int")
    wanted.append(united)
    complete = endpoint.completed("spent.append")
    assert [one["name"] for one in complete["inputs"]] == ["orders", "people"]
    assert column_sources(complete) == {
        "name": {("people", "name", "IDENTITY"), ("people", "name", "TRANSFORMATION")},
        "spent": {("orders", "price", "AGGREGATION"), ("people", "customer", "TRANSFORMATION")},
    }
    query = """
        WITH known AS (SELECT customer, explode(tags) AS tag FROM people)
        SELECT tag AS name, rank() OVER (ORDER BY customer) AS spent, 2 AS one FROM known
        WHERE customer IN (SELECT customer FROM orders)
    """
    wanted.append(spark.sql(query).selectExpr("name", "CAST(spent AS double) AS spent", "one"))
    complete = endpoint.completed("spent.append")
    assert [one["name"] for one in complete["inputs"]] == ["orders", "people"]
    assert column_sources(complete) == {
        "name": {("people", "tags", "TRANSFORMATION")},
        "spent": {("people", "customer", "TRANSFORMATION")},
    }
    wanted.append(spark.range(1).selectExpr("'x' AS name", "1.0D AS spent", "1 AS one"))
    complete = endpoint.completed("spent.append")
    assert "columnLineage" not in complete["outputs"][0]["facets"]


def test_a_write_by_format_is_reported_by_the_process_that_commits_it(
    store: Store, spark: SparkSession, endpoint: Endpoint
) -> None:
    """`df.write.format("instar")` reports its commit, though no Python of the caller takes part in it."""
    store.create_table("events", "n long")

    class Reporting(InstarSource):
        @classmethod
        def name(cls) -> str:
            return "instar-reporting"

    environment = spark.sparkContext.environment
    environment["OPENLINEAGE_URL"] = endpoint.url
    try:
        spark.dataSource.register(Reporting)
    finally:
        del environment["OPENLINEAGE_URL"]
    frame = spark.range(5).withColumnRenamed("id", "n")
    writer = frame.write.format("instar-reporting").mode("append")
    writer.options(store=store.location, table="events").save()
    endpoint.wait(2)
    complete = endpoint.completed("events.append")
    (output,) = complete["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 5
    assert json.dumps(output["facets"]["schema"]["fields"]).count('"name"') == 1
