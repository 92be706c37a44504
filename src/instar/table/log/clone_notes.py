"""Notes of clones: a table's objects may be those of another table too, and a vacuum of it has to know.

A note is put before the clone begins, into the table that owns the objects, and says where the log of the
clone is. What the clone refers to is read from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from instar.storage.frame import decode_record, encode_record
from instar.table.layout import clone_key

if TYPE_CHECKING:
    from instar.table.services import Services

__all__ = ["CloneNote", "find_clone_note", "put_clone_note"]


class CloneNote(msgspec.Struct, frozen=True, array_like=True):
    """Which table is a clone, and the key of its log."""

    clone_id: str
    log: str


def put_clone_note(services: Services, table_id: str, note: CloneNote) -> None:
    """Say that a clone refers to objects of a table."""
    data = encode_record("clone", note.clone_id, note)
    services.blob.put(clone_key(table_id, note.clone_id), data)


def find_clone_note(services: Services, key: str) -> CloneNote | None:
    """Read a note, if it is still there."""
    data = services.blob.find(key)
    if data is None:
        return None
    what = f"clone note {key}"
    return decode_record(data, "clone", key.rpartition("/")[2], CloneNote, what=what)
