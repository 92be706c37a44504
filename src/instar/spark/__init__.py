"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.catalog.install import make_catalog
from instar.spark.catalog.run import run_sql
from instar.spark.frames import read_snapshot, read_table
from instar.spark.native.origins import find_origins
from instar.spark.native.plans import reports_of
from instar.spark.native.views import make_view, make_views
from instar.spark.source.data_source import register_source
from instar.spark.stream.read import range_frame
from instar.spark.stream.records import DecodedFrame
from instar.spark.stream.write import copy_on_spark, query_id, write_stream_frame
from instar.spark.write.compact import rewrite_on
from instar.spark.write.incoming import incoming_schema
from instar.spark.write.merge import merge_frame_into, update_rows
from instar.spark.write.retract import delete_rows, overwrite_frame, upsert_frame
from instar.spark.write.store import FrameRows

__all__ = [
    "DecodedFrame",
    "FrameRows",
    "copy_on_spark",
    "delete_rows",
    "find_origins",
    "incoming_schema",
    "make_catalog",
    "make_view",
    "make_views",
    "merge_frame_into",
    "overwrite_frame",
    "query_id",
    "range_frame",
    "read_snapshot",
    "read_table",
    "register_source",
    "reports_of",
    "rewrite_on",
    "run_sql",
    "update_rows",
    "upsert_frame",
    "write_stream_frame",
]
