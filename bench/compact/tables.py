"""Tables to compact: many parts that overlap, and the same rows for peers."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from instar.schema import arrow_schema
from instar.table.write.append import begin_write
from instar.table.write.store import store_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from instar import Table

__all__ = ["DDL", "fill", "fresh", "rows_of"]

DDL: Final = "id bigint, price double, quantity int, note string, at timestamp_ntz, flag string"
_WRITERS: Final = 8


def rows_of(rows: int, parts: int, part: int) -> pa.Table:
    """Return the rows of one part: ids of the whole range, so that all parts overlap."""
    count = rows // parts
    random = np.random.default_rng(part)
    ids = np.arange(part, part + count * parts, parts)
    return pa.table(
        {
            "id": ids,
            "price": random.random(count) * 1000,
            "quantity": random.integers(0, 50, count, dtype=np.int32),
            "note": pa.array(random.integers(0, 1 << 40, count)).cast(pa.string()),
            "at": pa.array(ids * 1_000_000).cast(pa.timestamp("us")),
            "flag": pa.array(np.array(["A", "N", "R"])[random.integers(0, 3, count)]),
        }
    )


def fill(table: Table, parts: int, rows: Callable[[int], pa.Table]) -> None:
    """Add parts, each of its own rows, in one commit: by several threads, for a disk takes its time."""
    with begin_write(table._services, table._log) as write:  # noqa: SLF001 -- as many parts as are wanted
        plan = write.plan(table.schema)
        layout = arrow_schema(table.schema)

        def store(part: int) -> list[object]:
            (batch,) = rows(part).cast(layout).combine_chunks().to_batches()
            return list(store_parts(plan, [batch], str(part)))

        with ThreadPoolExecutor(_WRITERS) as pool:
            stored = [one for some in pool.map(store, range(parts)) for one in some]
        write.commit(stored, table.state.history.latest_id)  # type: ignore[arg-type]


def fresh(template: Path, where: Path) -> Path:
    """Return a copy of a directory, in place of an earlier one."""
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(template, where)
    return where
