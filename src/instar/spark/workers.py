"""Python on Spark's workers: the same one as here, where they are on this machine.

PySpark lets workers run `python3` from the path, which is another one in an environment that was not
activated, and has no instar.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["map_in_arrow", "use_own_python"]

_DEFAULT = "python3"


def map_in_arrow(
    frame: DataFrame,
    run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str | StructType,
) -> DataFrame:
    """Run a function over the batches of a frame, on workers that have instar."""
    use_own_python()
    return frame.mapInArrow(run, schema)


def use_own_python() -> None:
    """Let workers on this machine run the Python that runs this, unless somebody has chosen another."""
    context = SparkContext._active_spark_context  # noqa: SLF001 -- a session of Spark Connect has none
    if context is not None and str(context.master).startswith("local") and context.pythonExec == _DEFAULT:
        context.pythonExec = sys.executable
