"""What users hold: a store, its tables, and what they answer."""

from instar.api.open import open_store
from instar.api.store import Store
from instar.api.table import CommitInfo, Table

__all__ = ["CommitInfo", "Store", "Table", "open_store"]
