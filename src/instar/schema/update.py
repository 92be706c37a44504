"""`SchemaUpdate`: the steps behind `table.evolve()`, each by the path of a column.

Steps build the next schema from the latest one, and the rules are checked on the result. How a
schema without ids is matched by name is in `matching.py`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from instar.arguments import checked_methods
from instar.errors import ColumnNotFoundError, IncompatibleSchemaError, UsageError
from instar.schema.ddl import parse_type_ddl
from instar.schema.given import SchemaLike, as_schema
from instar.schema.matching import match_by_name
from instar.schema.paths import format_path, parse_path, quote_name
from instar.schema.schema import Schema, find_field, number_type
from instar.schema.types import Field, List, Map, Struct, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from instar.schema.history import History
    from instar.schema.rules import Change

__all__ = ["SchemaUpdate"]

_Fields = tuple[Field, ...]
_Slot = tuple[Type, bool]  # a type, and whether it may be null: a field, an element or a map value


@checked_methods
class SchemaUpdate:
    """Changes to a table's latest schema, collected and then committed as one."""

    def __init__(
        self, history: History, commit: Callable[[Schema], int] | None = None, table: str | None = None
    ) -> None:
        self._history = history
        self._commit = commit
        self._table = table
        self._ids = count(history.next_field_id)
        self._fields = history.latest.fields

    def __repr__(self) -> str:
        steps = ", ".join(f"{change.path}: {change.kind.value}" for change in self.changes if change.path)
        return f"SchemaUpdate({steps or 'no change yet'}; .commit() makes it the latest schema)"

    @property
    def schema(self) -> Schema:
        """The latest schema with the steps so far."""
        return Schema(self._fields)

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the steps so far change, permitted or not."""
        return self._history.compare(self.schema)

    def add_column(
        self,
        path: str,
        type: str | Type,  # noqa: A002 -- the word a caller expects
        *,
        first: bool = False,
        before: str | None = None,
        after: str | None = None,
    ) -> Self:
        """Add a nullable column at the end of its struct, or where `first`, `before` or `after` say."""
        if first + (before is not None) + (after is not None) > 1:
            raise UsageError("a new column has one place: give only one of first, before and after")
        new_type, nullable = parse_type_ddl(type) if isinstance(type, str) else (type, True)
        *parent, name = parse_path(path)
        field = Field(next(self._ids), name, number_type(new_type, self._ids), nullable)

        def add(fields: _Fields) -> _Fields:
            if find_field(fields, name) is not None:
                raise UsageError(
                    f"there is already a column `{path}`: drop or rename it first, or choose another name"
                )
            at = 0 if first else len(fields)
            sibling = before if before is not None else after
            if sibling is not None:
                at = fields.index(self._sibling(fields, sibling)) + (after is not None)
            return (*fields[:at], field, *fields[at:])

        return self._edit_siblings(tuple(parent), add, path)

    def drop_column(self, path: str) -> Self:
        """Delete a column: its values are no longer read, and its id is never used again."""
        *parent, name = parse_path(path)

        def drop(fields: _Fields) -> _Fields:
            dropped = self._sibling(fields, name, path)
            if len(fields) == 1:
                what = f"struct `{format_path(tuple(parent))}`" if parent else "the table"
                raise UsageError(f"cannot drop `{path}`, the last column of {what}: add another column first")
            return tuple(field for field in fields if field is not dropped)

        return self._edit_siblings(tuple(parent), drop, path)

    def rename_column(self, path: str, name: str) -> Self:
        """Give a column another name; `name` is a bare name, not a path."""
        *parent, old = parse_path(path)
        if parent and name.lower().startswith(f"{format_path(tuple(parent))}.".lower()):
            bare = parse_path(name)[-1]
            raise UsageError(
                f"cannot rename `{path}` to `{name}`: a new name has no path in front. Give {bare!r}"
            )

        def rename(fields: _Fields) -> _Fields:
            renamed = self._sibling(fields, old, path)
            return tuple(replace(field, name=name) if field is renamed else field for field in fields)

        return self._edit_siblings(tuple(parent), rename, path)

    def make_nullable(self, path: str) -> Self:
        """Let a column, a list's element (`tags.element`) or a map's value (`props.value`) be null."""
        return self._edit_slot(path, lambda type_, _: (type_, True))

    def widen_column(self, path: str, type: str | Type) -> Self:  # noqa: A002 -- the word a caller expects
        """Widen a column, element or value to a type that holds every value of the old one."""
        wider = parse_type_ddl(type)[0] if isinstance(type, str) else type
        return self._edit_slot(path, lambda _, nullable: (number_type(wider, self._ids), nullable))

    def evolve_to(self, target: SchemaLike) -> Self:
        """Take the steps that lead to a schema, matched by name, or by ids for an instar `Schema`."""
        schema = as_schema(target)
        if isinstance(target, Schema):
            self._fields = schema.fields
        else:
            self._fields = match_by_name(self._fields, schema.fields, self._ids)
        return self

    def check(self) -> tuple[Change, ...]:
        """Return every violation of the rules; empty means that the steps may be committed."""
        return self._history.check(self.schema)

    def commit(self) -> int:
        """Make the new schema the table's latest, and return its id."""
        if self._commit is None:
            raise UsageError("this update belongs to no table: take its schema instead")
        violations = self.check()
        if violations:
            raise IncompatibleSchemaError(self._table, violations)
        return self._commit(self.schema)

    def _edit_siblings(self, parent: tuple[str, ...], edit: Callable[[_Fields], _Fields], path: str) -> Self:
        def edit_struct(type_: Type, nullable: bool) -> _Slot:  # noqa: FBT001 -- the two halves of a slot
            if not isinstance(type_, Struct):
                raise UsageError(f"`{format_path(parent)}` is not a struct, so it has no member `{path}`")
            return Struct(edit(type_.fields)), nullable

        self._fields = self._descend(self._fields, parent, edit_struct) if parent else edit(self._fields)
        return self

    def _edit_slot(self, path: str, edit: Callable[[Type, bool], _Slot]) -> Self:
        self._fields = self._descend(self._fields, parse_path(path), edit)
        return self

    def _descend(
        self, fields: _Fields, steps: tuple[str, ...], edit: Callable[[Type, bool], _Slot]
    ) -> _Fields:
        """Rebuild the fields with the slot at the end of a path edited."""

        def slot(type_: Type, nullable: bool, rest: tuple[str, ...]) -> _Slot:  # noqa: FBT001 -- as above
            if not rest:
                return edit(type_, nullable)
            match type_, rest[0].lower():
                case Struct(fields=members), _:
                    return Struct(siblings(members, rest)), nullable
                case List(element=element, element_nullable=element_nullable), "element":
                    return List(*slot(element, element_nullable, rest[1:])), nullable
                case Map(key=key, value=value, value_nullable=value_nullable), "value":
                    return Map(key, *slot(value, value_nullable, rest[1:])), nullable
                case Map(), "key":
                    raise UsageError(
                        f"`{format_path(steps)}` is a map's key, which never changes: add a new map column"
                    )
            raise ColumnNotFoundError(format_path(steps), known=tuple(self.schema.paths()))

        def siblings(members: _Fields, rest: tuple[str, ...]) -> _Fields:
            found = self._sibling(members, rest[0], format_path(steps))
            type_, nullable = slot(found.type, found.nullable, rest[1:])
            edited = replace(found, type=type_, nullable=nullable)
            return tuple(edited if member is found else member for member in members)

        return siblings(fields, steps)

    def _sibling(self, fields: _Fields, name: str, path: str | None = None) -> Field:
        found = find_field(fields, name)
        if found is None:
            known = tuple(self.schema.paths()) if path else tuple(quote_name(field.name) for field in fields)
            raise ColumnNotFoundError(path or name, known=known)
        return found
