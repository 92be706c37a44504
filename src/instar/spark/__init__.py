"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.retract import delete_rows, upsert_rows
from instar.spark.scan import snapshot_frame
from instar.spark.store import arrow_frame, incoming_schema, store_frame

__all__ = ["arrow_frame", "delete_rows", "incoming_schema", "snapshot_frame", "store_frame", "upsert_rows"]
