"""What users hold: a store, its tables, and what they answer."""

from instar.api.evolver import Evolver
from instar.api.listen import Changes, Listen
from instar.api.open import open_store
from instar.api.sessions import register, scan_reports
from instar.api.snapshot import Snapshot
from instar.api.store import Store
from instar.api.stream import Stream, StreamSnapshot, StreamTable
from instar.api.table import Table
from instar.api.writing import Commit
from instar.table.log.history import CommitInfo

__all__ = [
    "Changes",
    "Commit",
    "CommitInfo",
    "Evolver",
    "Listen",
    "Snapshot",
    "Store",
    "Stream",
    "StreamSnapshot",
    "StreamTable",
    "Table",
    "open_store",
    "register",
    "scan_reports",
]
