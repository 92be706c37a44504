"""From a location to the services of a store that exists, or that will be created."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from instar.errors import StoreNotFoundError, UsageError
from instar.storage import consensus_kind, open_blob, open_consensus
from instar.table.layout import MARKER
from instar.table.marker import StoreMarker, check_consensus, find_marker
from instar.table.services import Services

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from instar.state import ConfigValue
    from instar.storage import Blob

__all__ = ["open_services"]


def open_services(
    location: str | os.PathLike[str],
    *,
    consensus: str | None = None,
    options: Mapping[str, str] | None = None,
    defaults: Mapping[str, ConfigValue] | None = None,
    create: bool = False,
) -> tuple[Services, StoreMarker | None]:
    """Open the services of a store; the caller closes them.

    With `create`, the location may also be empty: then the marker that would make it a store comes along.
    """
    blob = open_blob(location, options)
    marker = _find_store(blob, create=create)
    kind, logs = consensus_kind(consensus), open_consensus(consensus, blob, options)
    services = Services(blob, logs, defaults=defaults or {})
    if marker is None:
        marker = StoreMarker(services.new_id(), kind, services.clock())
        return services.with_prefix(marker.log_prefix), marker
    with ExitStack() as undo:
        undo.callback(logs.close)
        check_consensus(marker, kind, logs, blob.url)
        undo.pop_all()
    return services.with_prefix(marker.log_prefix), None


def _find_store(blob: Blob, *, create: bool) -> StoreMarker | None:
    """Find the marker of a store; where there is none, raise if none may be made there."""
    marker = find_marker(blob)
    if marker is not None:
        return marker
    if not create:
        raise StoreNotFoundError(blob.url)
    if next(iter(blob.list()), None) is None:
        _check_outside(blob.url)
        return None
    marker = find_marker(blob)  # the first thing that a store has: perhaps it came just now
    if marker is None:
        raise UsageError(f"{blob.url} holds something that is not an instar store: choose an empty location")
    return marker


def _check_outside(location: str) -> None:
    """Raise if a directory that would become a store is a file, or inside another store."""
    if "://" in location:
        return
    if Path(location).is_file():
        raise UsageError(f"{location} is a file, and a store is a directory: choose another place")
    outer = next((parent for parent in Path(location).parents if (parent / MARKER).is_file()), None)
    if outer is not None:
        raise UsageError(f"{location} is inside the store at {outer}: choose a place outside of it")
