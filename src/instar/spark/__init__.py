"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.data_source import register_source
from instar.spark.incoming import incoming_schema
from instar.spark.reports import reports_of
from instar.spark.retract import delete_rows, upsert_rows
from instar.spark.scan import snapshot_frame
from instar.spark.store import store_frame
from instar.spark.views import following_frame, make_view, make_views

__all__ = [
    "delete_rows",
    "following_frame",
    "incoming_schema",
    "make_view",
    "make_views",
    "register_source",
    "reports_of",
    "snapshot_frame",
    "store_frame",
    "upsert_rows",
]
