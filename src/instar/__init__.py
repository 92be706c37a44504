"""instar: a table store for data whose schema keeps changing.

What it exports is loaded when it is first asked for, so that importing instar takes no time.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from instar import errors as errors
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

    __version__: str

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

_HOMES = {
    "PartReport": "instar.table.read.report",
    "PassReport": "instar.stream.evolver",
    "ScanReport": "instar.table.read.report",
    "Schema": "instar.schema",
    "StreamCommit": "instar.stream",
}
"""Where a name is found, if not in `instar.api`."""


def _load(name: str) -> object:
    match name:
        case "__version__":
            return _import_module("importlib.metadata").version("instar")
        case "errors":
            return _import_module("instar.errors")
        case "open":
            return _import_module("instar.api").open_store
        case _ if name in __all__:
            return getattr(_import_module(_HOMES.get(name, "instar.api")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if not TYPE_CHECKING:  # type checkers see the imports above, and that there is nothing else

    def __getattr__(name: str) -> object:
        found = globals()[name] = _load(name)
        return found


def __dir__() -> list[str]:
    return [*__all__, "errors"]
