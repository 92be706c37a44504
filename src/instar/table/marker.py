"""The marker: the object that makes a location a store, and says where its logs are kept.

A store whose logs are looked for in the wrong place would seem empty, so the marker names the kind of
consensus, and a foreign consensus service is asked whether it knows the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from instar.errors import CorruptTableError, StorageUnsupportedError, UsageError
from instar.storage import creates_twice, put_if_missing
from instar.storage.frame import decode_frame, encode_frame
from instar.table.layout import MARKER

if TYPE_CHECKING:
    from instar.storage import Blob, Consensus

__all__ = ["StoreMarker", "check_consensus", "find_marker", "write_marker"]

_REGISTRATION: Final = "@store"
"""The key of a log that says whose logs these are: no table can have this name."""


class StoreMarker(msgspec.Struct, frozen=True):
    """The description of a store. `consensus` is `blob`, or the kind of the service that has its logs."""

    store_id: str
    consensus: str
    created_at: int

    @property
    def log_prefix(self) -> str:
        """What the keys of this store's logs begin with, so that several stores may share a service."""
        return "" if self.consensus == "blob" else f"{self.store_id}/"


def find_marker(blob: Blob) -> StoreMarker | None:
    """Read the marker of a location, or None if it has none."""
    data = blob.find(MARKER)
    if data is None:
        return None
    what = f"the marker {blob.location(MARKER)}"
    payload = decode_frame(data, "store", MARKER, what=what)
    try:
        return msgspec.json.decode(payload, type=StoreMarker)
    except msgspec.MsgspecError as error:
        raise CorruptTableError(what, f"its content does not decode ({error})") from None


def write_marker(blob: Blob, consensus: Consensus, marker: StoreMarker) -> StoreMarker:
    """Make a location a store, unless somebody else has just done so; return its marker."""
    if marker.consensus != "blob":
        consensus.append(f"{marker.log_prefix}{_REGISTRATION}", None, msgspec.json.encode(marker))
    data = encode_frame("store", MARKER, msgspec.json.encode(marker))
    if marker.consensus != "blob":
        put_if_missing(blob, MARKER, data)
    elif not _creates_once(blob, data):
        raise UsageError(
            f"{blob.url} cannot keep the logs of a store: it lets two writers create the same object because "
            "it does not honour conditional writes (If-None-Match). Keep the logs in PostgreSQL, with "
            "`consensus='postgresql://…'`, or choose a service that does"
        )
    found = find_marker(blob)
    return marker if found is None else found


def _creates_once(blob: Blob, data: bytes) -> bool:
    """Create the marker unless it exists; say whether the store would not have created it twice."""
    try:
        is_new = blob.put_if_absent(MARKER, data)
    except StorageUnsupportedError:
        return False
    if is_new and creates_twice(blob, MARKER, data):
        blob.delete([MARKER])
        return False
    return True


def check_consensus(marker: StoreMarker, kind: str, consensus: Consensus, location: str) -> None:
    """Raise unless this is the consensus service that has the store's logs."""
    if marker.consensus != kind:
        there = "in the store itself" if marker.consensus == "blob" else f"in {marker.consensus}"
        how = (
            "without `consensus=`"
            if marker.consensus == "blob"
            else f"with `consensus='{marker.consensus}://…'`"
        )
        raise UsageError(f"the store at {location} keeps its logs {there}: open it {how}")
    if kind != "blob" and consensus.head(f"{marker.log_prefix}{_REGISTRATION}") is None:
        raise UsageError(
            f"the store at {location} keeps its logs in {kind}, but not in the one given: "
            "open it with the consensus location that it was created with"
        )
