"""How far Spark has come with what a thread asked it to do."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["watched"]

_EVERY: Final = 0.2


@contextmanager
def watched(spark: SparkSession, name: str, tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell again and again how many tasks are done, and how many there are, of the jobs started within."""
    context = spark.sparkContext
    tracker = context.statusTracker()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(name)]
            stages = [
                tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds
            ]
            known = [stage for stage in stages if stage is not None]
            tell(sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known))

    context.setJobGroup(name, name)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
