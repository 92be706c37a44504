"""Analysis: adopted files are read once, and get the statistics that other parts have from the start.

The files stay as they are. Their parts are swapped for parts of the same files that know more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from instar.errors import PartsGoneError
from instar.parts import STATS_BUDGET, compute_stats, encode_limits, fit_budget
from instar.state import NewBatch
from instar.state.chunk import FILES, PLACES, TIMES
from instar.stats import bounds_columns, unite_bounds
from instar.table.log.manifest import load_parts
from instar.table.log.sheets import load_retractions
from instar.table.read.rows import read_written
from instar.table.write.append import Gone, begin_write
from instar.table.write.rows import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from instar.schema import Schema
    from instar.state import Part, Place, TableState
    from instar.stats import FieldStats
    from instar.table.log.part_set import WrittenPart
    from instar.table.log.table_log import TableLog
    from instar.table.services import Services

__all__ = ["AnalysisReport", "analyze_table"]


class AnalysisReport(NamedTuple):
    """The result of an analysis."""

    files: int = 0
    """How many adopted files were read."""
    rows: int = 0
    bytes: int = 0
    overtaken: int = 0
    """How many files others have replaced meanwhile."""


class _Unknown(NamedTuple):
    """An adopted file that was not read yet."""

    place: Place
    schema_id: int
    written: WrittenPart


def analyze_table(
    services: Services, log: TableLog, *, tell: Callable[[int, int], None] | None = None
) -> AnalysisReport:
    """Give the adopted files of a table statistics, in one commit for each schema that they came under."""
    ready: dict[int, dict[Place, Part]] = {}
    with log.pinned() as state:
        unknown = list(_unknown(services, state))
        size = sum(one.written.part.size for one in unknown)
        done = 0
        for place, schema_id, written in unknown:
            ready.setdefault(schema_id, {})[place] = _analyzed(services, state, written)
            done += written.part.size
            if tell is not None:
                tell(done, size)
    taken = [part for schema_id, parts in ready.items() for part in _swap(services, log, schema_id, parts)]
    return AnalysisReport(
        len(taken),
        sum(part.rows for part in taken),
        sum(part.size for part in taken),
        len(unknown) - len(taken),
    )


def _unknown(services: Services, state: TableState) -> Iterator[_Unknown]:
    """Yield the adopted files whose statistics do not come from their rows."""
    live = load_parts(services.chunks, state, (), (PLACES, TIMES, FILES))
    chosen = np.zeros(len(live), dtype=bool)
    chosen[[at for at, adopted in live.adopted.items() if not adopted.analyzed]] = True
    mine = live.keep(chosen)
    ids = mine.columns[TIMES].column("schema_id").to_pylist()
    for at, written in enumerate(mine.written(state.history)):
        yield _Unknown(mine.place(at), ids[at], written)


def _analyzed(services: Services, state: TableState, written: WrittenPart) -> Part:
    """Read a file, and return its part with statistics; times are its own now: its batch will be another."""
    schema, rows = written.schema, written.part.rows
    pieces: list[dict[int, FieldStats]] = []
    counts: list[int] = []
    whole = written._replace(taken=None)  # earlier times have all of its rows
    for batch in read_written(services.blob, whole, schema):
        pieces.append(
            compute_stats(pa.Table.from_batches([batch]), schema, budget=batch.nbytes + STATS_BUDGET)
        )
        counts.append(batch.num_rows)
    stats = fit_budget(_united(pieces, counts, schema), schema, state.bounded, STATS_BUDGET)
    first, last = encode_limits(stats, rows, schema, state.order_by)
    part = written.part
    assert part.adopted is not None  # noqa: S101 -- for the type checker
    return replace(
        part,
        ordered=False,
        ts_min=written.ts if part.ts_min is None else part.ts_min,
        ts_max=written.ts if part.ts_max is None else part.ts_max,
        first_row=first,
        last_row=last,
        stats=stats,
        adopted=replace(part.adopted, analyzed=True),
    )


def _united(pieces: list[dict[int, FieldStats]], counts: list[int], schema: Schema) -> dict[int, FieldStats]:
    types = {leaf.id: leaf.type for _, leaf in schema.leaves()}
    rows = pa.array(counts, pa.int64())
    return {
        field_id: unite_bounds(bounds_columns([piece[field_id] for piece in pieces], types[field_id]), rows)
        for field_id in (pieces[0] if pieces else ())
    }


def _swap(services: Services, log: TableLog, schema_id: int, parts: dict[Place, Part]) -> list[Part]:
    """Swap parts for others of the same files. What is retracted of them stays so, by the same positions."""
    for _ in range(ATTEMPTS):
        with log.pinned() as state, begin_write(services, log, state) as writer:
            live = load_parts(services.chunks, state, (), (PLACES,))
            here = {live.place(at) for at in range(len(live))}.intersection(parts)
            if not here:
                return []
            places = sorted(here)
            retractions = load_retractions(services.chunks.sheets, state)
            wanted = [found for place in places for found in retractions.by_place.get(place, ())]
            gone = [
                Gone(places.index(found.place), found.ts, positions)
                for found, positions in retractions.read(wanted)
            ]
            chosen = tuple(replace(parts[place], run=run) for run, place in enumerate(places))
            size = sum(part.rows for part in chosen), sum(part.size for part in chosen)
            batch = NewBatch(0, state.upper, schema_id, chosen)
            try:
                writer.replace(
                    state.seqno, places, size, batch, gone, sum(len(one.positions) for one in gone)
                )
            except PartsGoneError:
                continue  # others have replaced some, or retracted rows of them
            return list(chosen)
    raise PartsGoneError(log.name, planned_at=state.seqno, why="others kept changing them")
