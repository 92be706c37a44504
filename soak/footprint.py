"""What a session takes of a machine: threads, descriptors, leases and memory, here and in the JVM."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.java_gateway import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Footprint", "measure"]

_ANSWERS_SECONDS: Final = 2.2
"""How long to wait at first: longer than answers are kept for the JVM."""
_MOMENT_SECONDS: Final = 0.3
_MOST_MOMENTS: Final = 20
_CALM_MOMENTS: Final = 4
"""For so long nothing may be let go of: what Spark's own cleaner frees meanwhile cannot be seen."""
_MEGABYTE: Final = 1 << 20


class Footprint(NamedTuple):
    """How much there is of everything that could be left behind."""

    threads: int
    descriptors: int
    jvm_threads: int
    jvm_descriptors: int
    leases: int
    proxies: int
    """Objects of ours that the JVM holds."""
    bindings: int
    """Objects of the JVM that we hold."""
    memory_mb: int
    jvm_memory_mb: int

    def grown_since(self, before: Footprint) -> dict[str, int]:
        """Return by how much each has grown."""
        return {
            name: now - then for name, now, then in zip(self._fields, self, before, strict=True) if now > then
        }


def measure(spark: SparkSession, place: Path) -> Footprint:
    """Measure what is left after both sides have thrown away what they can, however slow the machine is."""
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    held: list[tuple[int, int]] = []
    seconds = _ANSWERS_SECONDS
    for _ in range(_MOST_MOMENTS):  # what one side lets go of, the other can let go of after
        gc.collect()
        jvm.java.lang.System.gc()
        time.sleep(seconds)
        held.append((_count_leases(place), len(gateway.gateway_property.pool)))
        if held[-_CALM_MOMENTS:] == [held[-1]] * _CALM_MOMENTS:
            break
        seconds = _MOMENT_SECONDS
    runtime = jvm.java.lang.Runtime.getRuntime()
    process = jvm.java.lang.ProcessHandle.current().pid()
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    return Footprint(
        threads=threading.active_count(),
        descriptors=_entries("self", "fd"),
        jvm_threads=_entries(process, "task"),
        jvm_descriptors=_entries(process, "fd"),
        leases=_count_leases(place),
        proxies=len(gateway.gateway_property.pool),
        bindings=server.getGateway().getBindings().size(),
        memory_mb=int(Path("/proc/self/statm").read_text().split()[1])
        * os.sysconf("SC_PAGESIZE")
        // _MEGABYTE,
        jvm_memory_mb=(runtime.totalMemory() - runtime.freeMemory()) // _MEGABYTE,
    )


def _count_leases(place: Path) -> int:
    return sum(1 for _ in place.glob("tables/*/leases/*"))


def _entries(process: int | str, what: str) -> int:
    return sum(1 for _ in Path(f"/proc/{process}/{what}").iterdir())
