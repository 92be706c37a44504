"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.native.reports import reports_of
from instar.spark.native.scan import snapshot_frame
from instar.spark.native.views import following_frame, make_view, make_views
from instar.spark.source.data_source import register_source
from instar.spark.write.incoming import incoming_schema
from instar.spark.write.retract import delete_rows, upsert_rows
from instar.spark.write.store import store_frame

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
