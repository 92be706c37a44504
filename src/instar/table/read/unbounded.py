"""Columns without statistics: filters on them open every part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from instar.schema import format_path
from instar.schema.types import List, Map
from instar.table.log.manifest import load_parts

if TYPE_CHECKING:
    from instar.state import TableState
    from instar.table.log.manifest import ChunkReader

__all__ = ["find_unbounded"]


def find_unbounded(chunks: ChunkReader, state: TableState) -> list[str]:
    """Return the paths of columns that have values, but no bounds, in some part; not lists and maps."""
    leaves = [
        (path, leaf) for path, leaf in state.history.latest.leaves() if not isinstance(leaf.type, List | Map)
    ]
    known = load_parts(chunks, state, [leaf for _, leaf in leaves], ())
    by_field, found = known.bounds, []
    for path, leaf in leaves:
        bounds = by_field[leaf.id]
        values = pc.subtract(known.rows, pc.add(bounds.column("nulls"), bounds.column("nans")))
        has_values = pc.fill_null(pc.greater(values, 0), True)  # noqa: FBT003 -- unknown: there may be some
        if pc.any(pc.and_(has_values, bounds.column("min").is_null())).as_py():
            found.append(format_path(path))
    return found
