"""Tables on Spark: the only place that imports pyspark."""

from instar.spark.scan import snapshot_frame

__all__ = ["snapshot_frame"]
