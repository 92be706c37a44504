"""Dropping a stream with all its tables, and bringing it back.

First, no write may begin any more, and what was begun is finished. Then the stream is gone, and after that
its tables. If the process is killed in between, another drop, or a new stream, drops the tables that are
left.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from instar.errors import StreamExistsError, StreamNotFoundError, TableExistsError, TableNotFoundError
from instar.state.commands import drop
from instar.stream.batches import close_batches
from instar.stream.catalog import StreamDropped, StreamUndropped, TableForgotten
from instar.stream.stamp import find_stamp
from instar.stream.writing import finish_pending, run_side_by_side
from instar.table.log.tables import find_log, undrop_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from instar.state import Step, TableState
    from instar.stream.catalog import Catalog, CatalogChange
    from instar.stream.handle import StreamHandle
    from instar.table import Services

__all__ = ["drop_leftovers", "drop_stream", "undrop_stream"]


def drop_stream(handle: StreamHandle) -> int:
    """End a stream, and drop its tables; return how many. Repeated, it drops those that were left."""
    catalog = handle.journal.refresh()
    if catalog is None or catalog.dropped_at is None:
        _end(handle)
        return drop_leftovers(handle)
    dropped = drop_leftovers(handle)
    if not dropped:
        raise StreamNotFoundError(handle.name, dropped=True)
    return dropped


def _end(handle: StreamHandle) -> None:
    catalog = handle.load()
    handle.batches.commit(lambda batches: close_batches(batches, closed=True))
    finish_pending(handle)
    # Tables that were dropped before are not to come back with the stream.
    gone = {
        name for name, state in _states(handle.services, catalog) if state is None or not state.is_at(name)
    }
    now = handle.services.clock()

    def end(catalog: Catalog | None) -> Sequence[CatalogChange]:
        if catalog is None or catalog.dropped_at is not None:
            raise StreamNotFoundError(handle.name, dropped=catalog is not None)
        return (
            *(TableForgotten(name) for name in sorted(gone.intersection(catalog.tables))),
            StreamDropped(now),
        )

    handle.journal.commit(end)


def drop_leftovers(handle: StreamHandle) -> int:
    """Drop the tables of a stream that is gone, and return how many were there."""
    catalog = handle.journal.refresh()
    if catalog is None or catalog.dropped_at is None:
        return 0
    ended = catalog

    def end(name: str) -> bool:
        log, _ = find_log(handle.services, name)

        def decide(state: TableState | None) -> tuple[Step, ...]:
            return drop(state) if state is not None and _is_of(state, ended) else ()

        with suppress(TableNotFoundError):  # it is gone already
            return log.commit(decide).entry is not None
        return False

    return sum(run_side_by_side(end, sorted(ended.tables))) if ended.tables else 0


def undrop_stream(handle: StreamHandle) -> None:
    """Bring a stream back with the tables that it was dropped with, as long as no vacuum has taken any.

    A stream that somebody began to drop, and did not come to, takes writes again.
    """
    catalog = handle.journal.refresh()
    if catalog is None:
        raise StreamNotFoundError(handle.name)
    if catalog.dropped_at is not None:
        _bring_back(handle, catalog)
    batches = handle.batches.refresh()
    if batches is None or not batches.closed:
        raise StreamExistsError(handle.name)
    handle.batches.commit(lambda batches: close_batches(batches, closed=False))


def _bring_back(handle: StreamHandle, dropped: Catalog) -> None:
    names = _coming_back(handle.services, dropped)
    if names:
        run_side_by_side(lambda name: undrop_table(handle.services, name, with_stream=True), names)

    def back(catalog: Catalog | None) -> Sequence[CatalogChange]:
        if catalog is None or catalog.stream_id != dropped.stream_id:
            raise StreamExistsError(handle.name)
        return () if catalog.dropped_at is None else (StreamUndropped(),)

    handle.journal.commit(back)


def _coming_back(services: Services, catalog: Catalog) -> list[str]:
    """Return the tables that have to be brought back.

    A name that another table has by now, or a table that is lost, is found out before anything is done.
    """
    found = []
    for name, state in _states(services, catalog):
        is_own = state is not None and _is_of(state, catalog)
        if state is not None and state.is_at(name) and not is_own:
            raise TableExistsError(name)
        if state is None or state.removed or not is_own:
            raise StreamNotFoundError(catalog.name, lost=name)
        if state.dropped:
            found.append(name)
    return found


def _states(services: Services, catalog: Catalog) -> list[tuple[str, TableState | None]]:
    """Load what has the names of a stream's tables."""
    names = sorted(catalog.tables)
    states = run_side_by_side(lambda name: find_log(services, name)[1], names) if names else []
    return list(zip(names, states, strict=True))


def _is_of(state: TableState, catalog: Catalog) -> bool:
    stamp = find_stamp(state)
    return stamp is not None and stamp.stream_id == catalog.stream_id
