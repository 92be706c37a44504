"""instar: a table store for data whose schema keeps changing."""

from importlib.metadata import version as _version

from instar.api import Changes, Commit, Listen, Snapshot, Store, Table, register
from instar.api import open_store as open  # noqa: A004 -- `instar.open` is what people type
from instar.schema import Schema

__all__ = [
    "Changes",
    "Commit",
    "Listen",
    "Schema",
    "Snapshot",
    "Store",
    "Table",
    "__version__",
    "open",
    "register",
]

__version__ = _version("instar")
