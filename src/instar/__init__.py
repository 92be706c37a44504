"""instar: a table store for data whose schema keeps changing."""

from importlib.metadata import version as _version

from instar.api import (
    Changes,
    Commit,
    Evolver,
    Listen,
    Snapshot,
    Store,
    Stream,
    StreamSnapshot,
    StreamTable,
    Table,
    register,
    scan_reports,
)
from instar.api import open_store as open  # noqa: A004 -- `instar.open` is what people type
from instar.schema import Schema
from instar.stream import StreamCommit
from instar.stream.evolver import PassReport
from instar.table.read.report import PartReport, ScanReport

__all__ = [
    "Changes",
    "Commit",
    "Evolver",
    "Listen",
    "PartReport",
    "PassReport",
    "ScanReport",
    "Schema",
    "Snapshot",
    "Store",
    "Stream",
    "StreamCommit",
    "StreamSnapshot",
    "StreamTable",
    "Table",
    "__version__",
    "open",
    "register",
    "scan_reports",
]

__version__ = _version("instar")
