"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.native.reports import reports_of
from instar.spark.native.scan import snapshot_frame
from instar.spark.native.views import following_frame, make_view, make_views
from instar.spark.source.data_source import register_source
from instar.spark.write.retract import delete_rows, upsert_frame
from instar.spark.write.store import FrameRows

__all__ = [
    "FrameRows",
    "delete_rows",
    "following_frame",
    "make_view",
    "make_views",
    "register_source",
    "reports_of",
    "snapshot_frame",
    "upsert_frame",
]
