"""The tables of a store: creating, finding and dropping them by name."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from instar.errors import CorruptTableError, FormatTooNewError, InvalidNameError
from instar.schema import as_schema
from instar.schema.schema import Schema, number_fields
from instar.state import Created
from instar.state.commands import column_ids, create, drop, resolve_columns
from instar.storage.keys import encode_key
from instar.table.log.table_log import TableLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.errors import InstarError
    from instar.schema import SchemaLike
    from instar.state import ConfigValue
    from instar.table.services import Services

__all__ = [
    "INTERNAL",
    "UNREADABLE",
    "check_table_name",
    "create_table",
    "drop_table",
    "find_tables",
    "list_tables",
    "log_names",
]

UNREADABLE: Final = (CorruptTableError, FormatTooNewError)
"""What is wrong with one table, and no reason not to go on with the others."""

INTERNAL: Final = "@"
"""What the keys of logs that belong to no table begin with."""
_READERS: Final = 16
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that control, format or separate, and show nothing of their own."""


def check_table_name(name: str) -> None:
    """Raise unless a table may have this name: segments joined by `/`, each visible and not hidden.

    Names that look the same are the same: they are in Unicode's normal form NFC, and have no characters
    that cannot be seen, nor white space at an end of a segment.
    """
    if not isinstance(name, str):
        raise InvalidNameError(name, f"a name is a str, and this is {type(name).__name__}")
    encode_key(name)
    if not unicodedata.is_normalized("NFC", name):
        raise InvalidNameError(name, "it is not in Unicode's normal form NFC; unicodedata.normalize makes it")
    if any(unicodedata.category(character) in _UNSEEN for character in name):
        raise InvalidNameError(name, "it has a character that cannot be seen")
    if any(segment != segment.strip() for segment in name.split("/")):
        raise InvalidNameError(name, "a part of it begins or ends with white space")
    if name.startswith(INTERNAL):
        raise InvalidNameError(name, f"a store keeps names that begin with {INTERNAL} for itself")


def create_table(
    services: Services,
    name: str,
    schema: SchemaLike,
    *,
    order_by: Sequence[str] = (),
    key: Sequence[str] = (),
    options: Mapping[str, ConfigValue | Sequence[str]] | None = None,
) -> TableLog:
    """Create a table, in one commit."""
    check_table_name(name)
    given = as_schema(schema)
    first = Schema(number_fields(given.fields))
    chosen = {
        name: value for name, value in resolve_columns(first, options or {}).items() if value is not None
    }
    step = Created(services.new_id(), first, column_ids(first, order_by), column_ids(first, key), chosen)
    log = TableLog(services, name)
    log.commit(lambda state: create(state, name, step))
    return log


def drop_table(services: Services, name: str) -> None:
    """End a table, in one commit; a vacuum removes what it held."""
    check_table_name(name)
    log = TableLog(services, name)
    log.load()
    log.commit(lambda state: drop(log.check_exists(state)))


def list_tables(services: Services, prefix: str = "") -> list[str]:
    """Return the names of the tables that begin with a prefix, in order, reading one commit of each.

    One whose last commit cannot be read is listed: opening it will say why.
    """

    def exists(name: str) -> bool:
        try:
            return TableLog(services, name).exists()
        except UNREADABLE:
            return True

    names = log_names(services, prefix)
    with ThreadPoolExecutor(_READERS) as pool:
        return [name for name, there in zip(names, pool.map(exists, names), strict=True) if there]


def find_tables(
    services: Services, prefix: str = "", unreadable: dict[str, InstarError] | None = None
) -> list[TableLog]:
    """Open every table whose name begins with a prefix, in the order of their names.

    Errors of those that cannot be read are put into `unreadable`, if it is given, and raised otherwise.
    """

    def load(log: TableLog) -> bool:
        try:
            state = log.refresh()
        except UNREADABLE as error:
            if unreadable is None:
                raise
            unreadable[log.name] = error
            return False
        return state is not None and not state.dropped

    logs = [TableLog(services, name) for name in log_names(services, prefix)]
    with ThreadPoolExecutor(_READERS) as pool:
        return [log for log, there in zip(logs, pool.map(load, logs), strict=True) if there]


def log_names(services: Services, prefix: str = "") -> list[str]:
    """Return the names that have a log, those of dropped tables too."""
    keys = services.consensus.keys(services.log_prefix + prefix)
    names = (key.removeprefix(services.log_prefix) for key in keys)
    return [name for name in names if not name.startswith(INTERNAL)]
