"""Errors about names that do not exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from instar.errors.base import InstarError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ColumnNotFoundError",
    "EntityNotFoundError",
    "InputNotFoundError",
    "NotFoundError",
    "SchemaNotFoundError",
    "StoreNotFoundError",
    "StreamNotFoundError",
    "TableNotFoundError",
]

_NAMED: Final = 30
"""How many columns an error lists."""


class NotFoundError(InstarError):
    """The thing that was named does not exist."""

    code = "not-found"


class StoreNotFoundError(NotFoundError):
    """There is no store at the location."""

    code = "store-not-found"

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__(
            f"there is no instar store at {location}. Create one with `instar init {location}`, "
            "or check the path."
        )


class TableNotFoundError(NotFoundError):
    """There is no table of that name in the store, or it was dropped, renamed or replaced."""

    code = "table-not-found"

    def __init__(
        self,
        name: str,
        *,
        dropped: bool = False,
        renamed: str | None = None,
        replaced: bool = False,
        vacuumed: bool = False,
        known: Sequence[str] = (),
        may_create: bool = False,
    ) -> None:
        self.name = name
        self.dropped = dropped
        self.renamed = renamed
        self.replaced = replaced
        self.vacuumed = vacuumed
        close = get_close_matches(name, known, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        make = " Or add --create to create it." if may_create else ""
        why = "does not exist"
        if vacuumed:
            why = "was dropped, and a vacuum has removed what it held"
        elif renamed is not None:
            why = f"was renamed to `{renamed}`"
        elif replaced:
            why = "was dropped or replaced, and another table has its name now"
            hint = " store.table opens that one."
        elif dropped:
            why = "was dropped"
            hint = f" `instar undrop {name}` or store.undrop_table brings it back."
        super().__init__(f"table `{name}` {why}.{hint} `instar tables` lists all tables.{make}")


class StreamNotFoundError(NotFoundError):
    """There is no stream of that name in the store, or it was dropped."""

    code = "stream-not-found"

    def __init__(self, name: str, *, dropped: bool = False, lost: str | None = None) -> None:
        self.name = name
        self.dropped = dropped
        self.lost = lost
        why = "was dropped" if dropped else "does not exist"
        if lost is not None:
            why = f"was dropped, and what its table `{lost}` held is gone"
        super().__init__(f"stream `{name}` {why}. `instar stream list` lists all streams.")


class EntityNotFoundError(NotFoundError):
    """Lineage knows no such dataset, job, run, version or tag."""

    code = "entity-not-found"

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {name!r} is not known. Check the spelling, or send an event that names it.")


class SchemaNotFoundError(NotFoundError):
    """The table's history has no schema of that id."""

    code = "schema-not-found"

    def __init__(self, table: str, schema_id: int, *, latest: int) -> None:
        self.table = table
        self.schema_id = schema_id
        self.latest = latest
        super().__init__(f"table `{table}` has no schema {schema_id}: its schemas are 0 to {latest}.")


class InputNotFoundError(NotFoundError):
    """There is no file or directory of that name, and nothing matches the pattern."""

    code = "input-not-found"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"there is no file {path}. Check the path; nothing was read.")


class ColumnNotFoundError(NotFoundError):
    """The schema has no column at that path."""

    code = "column-not-found"

    def __init__(self, path: str, *, known: Sequence[str]) -> None:
        self.path = path
        self.known = tuple(known)
        close = get_close_matches(path, self.known, n=1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        named = path if "`" in path else f"`{path}`"
        more = f" and {len(self.known) - _NAMED:,} more" if len(self.known) > _NAMED else ""
        listed = f"{', '.join(self.known[:_NAMED])}{more}"
        super().__init__(f"there is no column {named}: the columns are {listed}.{hint}")
