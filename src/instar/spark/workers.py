"""Python on Spark's workers: the same one as here, where they are on this machine, with the same instar.

PySpark lets workers run `python3` from the path, which is another one in an environment that was not
activated, and has no instar.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from pyspark import SparkContext
from pyspark.errors import PythonException

from instar.errors import (
    StorageDeniedError,
    StorageError,
    StorageTimeoutError,
    StorageUnsupportedError,
    WorkerVersionError,
)
from instar.spark.greeting import MISMATCH, greeted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

    from instar.errors import InstarError

__all__ = ["check_version", "collect", "map_in_arrow", "own_version", "use_own_python"]

_DEFAULT: Final = "python3"
_OF_STORAGE: Final = re.compile(r"instar\.errors\.(?:storage\.)?(\w+): (.+?) failed: (.+)")
_STORAGE: Final = {
    kind.__name__: kind
    for kind in (StorageError, StorageDeniedError, StorageTimeoutError, StorageUnsupportedError)
}


def map_in_arrow(
    frame: DataFrame,
    run: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: str | StructType,
) -> DataFrame:
    """Run a function over the batches of a frame, on workers that have the same instar."""
    use_own_python()
    return frame.mapInArrow(greeted(run, own_version()), schema)


def collect(frame: DataFrame) -> list[Row]:
    """Collect what workers answer; if they fail for a reason that we know, raise it without their stacks."""
    try:
        return frame.collect()
    except PythonException as error:
        found = _known(str(error))
        if found is None:
            raise
        raise found from error


def own_version() -> str:
    """Return the version of instar here."""
    return version("instar")


def check_version(planned_by: str) -> None:
    """Raise if a task was planned by another instar than this one."""
    if planned_by != own_version():
        raise WorkerVersionError(own_version(), planned_by)


def _known(text: str) -> InstarError | None:
    mismatch = MISMATCH.search(text)
    if mismatch:
        return WorkerVersionError(None if mismatch[1] == "none" else mismatch[1], own_version())
    failed = _OF_STORAGE.search(text)
    if failed and failed[1] in _STORAGE:
        return _STORAGE[failed[1]](failed[2], failed[3].strip())
    return None


def use_own_python() -> None:
    """Let workers on this machine run the Python that runs this, unless somebody has chosen another."""
    context = SparkContext._active_spark_context  # noqa: SLF001 -- a session of Spark Connect has none
    if context is not None and str(context.master).startswith("local") and context.pythonExec == _DEFAULT:
        context.pythonExec = sys.executable
