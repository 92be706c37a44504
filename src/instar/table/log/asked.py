"""`Asked`: the conditions that were asked of tables last, so that it can be said what would help them.

They are kept in memory, and in the store when it is closed, or once a minute: a few small objects for each
table, however many readers there are. No reader waits for it or fails because of it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from instar.errors import CorruptTableError, InstarError
from instar.storage.frame import decode_record, encode_record
from instar.table.layout import query_key, recorded_queries

if TYPE_CHECKING:
    from collections.abc import Iterable

    from instar.state import TableState
    from instar.table.services import Services

__all__ = ["Asked"]

_NOTED: Final = 16
"""How many conditions are remembered of each table, by each of the writers below."""
_WRITERS: Final = 16
"""How many objects a table has at most: readers share them by their names."""
_LONGEST: Final = 2000
"""Longer conditions are made by programs, and say little to people."""
_EVERY_MS: Final = 60_000


class _Question(NamedTuple):
    text: str
    at: int


class Asked:
    """Remembers the conditions that a process has asked, by the id of the table."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, int]] = {}
        self._unsaved: set[str] = set()
        self._saved_at: int | None = None

    def note(self, state: TableState, text: str) -> None:
        """Remember a condition that was asked; the oldest is forgotten."""
        if not text or len(text) > _LONGEST:
            return
        services, table_id = self._services, state.table_id
        now = services.clock()
        with self._lock:
            known = self._known.setdefault(table_id, {})
            known.pop(text, None)
            known[text] = now
            while len(known) > _NOTED:
                del known[next(iter(known))]
            if {**services.defaults, **state.options}.get("queries") == "off":
                return
            self._unsaved.add(table_id)
            self._saved_at = now if self._saved_at is None else self._saved_at
            due = now - self._saved_at >= _EVERY_MS
            self._saved_at = now if due else self._saved_at
        if due:
            with suppress(RuntimeError):  # the process is about to end, and starts no more threads
                services.start(self.save)

    def find(self, table_id: str) -> list[str]:
        """Return the conditions that were asked last by anybody, the latest first."""
        with self._lock:
            own = [_Question(*item) for item in self._known.get(table_id, {}).items()]
        blob = self._services.blob
        stored = [stored.key for stored in blob.list(recorded_queries(table_id))]
        return [one.text for one in _latest([*own, *(it for key in stored for it in self._load(key))])]

    def save(self) -> None:
        """Put into the store what is not there yet; if that fails, it is not worth an error."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, set()
            known = {it: [_Question(*one) for one in self._known.get(it, {}).items()] for it in unsaved}
        writer = crc32(self._services.author().encode()) % _WRITERS
        for table_id, questions in known.items():
            key = query_key(table_id, writer)
            with suppress(InstarError):
                latest = _latest([*questions, *self._load(key)])
                self._services.blob.put(key, encode_record("queries", key, latest))

    def forget(self, table_id: str) -> None:
        """Forget what was asked of a table, here and in the store: conditions may name what was purged."""
        with self._lock:
            self._known.pop(table_id, None)
            self._unsaved.discard(table_id)
        blob = self._services.blob
        blob.delete([stored.key for stored in blob.list(recorded_queries(table_id))])

    def _load(self, key: str) -> list[_Question]:
        """Read what is stored; what cannot be read is as good as forgotten."""
        data = self._services.blob.find(key)
        if data is None:
            return []
        try:
            return decode_record(data, "queries", key, list[_Question], what=f"queries {key}")
        except CorruptTableError:
            return []


def _latest(questions: Iterable[_Question]) -> list[_Question]:
    """Return the latest, each once, the latest first."""
    ordered = sorted(questions, key=lambda one: one.at)
    return list({one.text: one for one in ordered}.values())[::-1][:_NOTED]
