"""Fences: whether a reader with its own schema may continue, after all changes of the table.

A reader's schema must be a valid migration of the table's history, as if it were the next schema,
except that a reader may choose the order of its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from instar.schema.migration_type import MigrationType
from instar.schema.rules import Change, ChangeKind, compare

if TYPE_CHECKING:
    from instar.schema.history import History
    from instar.schema.schema import Schema

__all__ = ["Fence", "check_reader"]

_PHRASES: Final = {
    ChangeKind.RECREATED: "was dropped by schema {by}",
    ChangeKind.MADE_REQUIRED: "may hold nulls since schema {by}",
    ChangeKind.NARROWED: "is widened from {new} to {old} since schema {by}",
    ChangeKind.RETYPED: "is {old} since schema {by}, not {new}",
    ChangeKind.KEY_CHANGED: "has keys of {old} since schema {by}, not {new}",
    ChangeKind.ADDED_REQUIRED: "is not null for this reader, but the table never had it",
    ChangeKind.MOVED: "is in another place of the table since schema {by}",
}


class Fence(msgspec.Struct, frozen=True):
    """One reason why a reader cannot continue: the column, and the schema that changed it."""

    kind: ChangeKind
    path: str
    ids: tuple[int, ...]
    by_schema: int
    old: str | None
    new: str | None

    def __str__(self) -> str:
        phrase = _PHRASES[self.kind].format(by=self.by_schema, old=self.old, new=self.new)
        return f"column `{self.path}` (field {self.ids[-1]}) {phrase}"


def check_reader(history: History, reader: Schema) -> tuple[Fence, ...]:
    """Return every fence; empty means that the reader may continue."""
    obstacles = _obstacles(history.migration_type, reader)
    if not obstacles:
        return ()
    since = _standing_since(history, reader)
    return tuple(
        Fence(
            change.kind,
            change.path,
            change.ids,
            since[change.kind, change.ids, change.path],
            change.old,
            change.new,
        )
        for change in obstacles
    )


def _obstacles(table: MigrationType, reader: Schema) -> tuple[Change, ...]:
    return tuple(
        change
        for change in compare(table, reader)
        if not change.permitted and change.kind is not ChangeKind.REORDERED
    )


def _standing_since(history: History, reader: Schema) -> dict[tuple[ChangeKind, tuple[int, ...], str], int]:
    """Find for each obstacle the schema since which it exists without a break."""
    since: dict[tuple[ChangeKind, tuple[int, ...], str], int] = {}
    table = MigrationType.start(history.schemas[0])
    for schema_id, schema in enumerate(history.schemas):
        table = table.extend(schema) if schema_id else table
        standing = {(change.kind, change.ids, change.path) for change in _obstacles(table, reader)}
        since = {obstacle: since.get(obstacle, schema_id) for obstacle in standing}
    return since
