"""`Schema`: an ordered set of columns, well-formed by construction.

So code that has a schema need not check again whether ids are unique or a name is ambiguous.
How one schema may follow another is in `rules.py`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import msgspec

from instar.errors import ColumnNotFoundError, InvalidSchemaError
from instar.schema.algebra import map_members, member_fields, slots, walk_fields
from instar.schema.html import html_table
from instar.schema.paths import format_path, parse_path
from instar.schema.text import format_fields, format_type
from instar.schema.types import Field, Struct, Type
from instar.schema.wellformed import find_problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Schema", "number_fields", "number_type"]


class Schema(msgspec.Struct, frozen=True, array_like=True, cache_hash=True):
    """The columns of a table at one moment. Two schemas are equal if ids, names and types all are."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        problem = find_problem(self.fields)
        if problem is not None:
            raise InvalidSchemaError(problem.message)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.fields)

    def __str__(self) -> str:
        """Print the columns as DDL."""
        return format_fields(self.fields)

    def __repr__(self) -> str:
        return f"Schema({str(self)!r})"

    def _repr_html_(self) -> str:
        rows = [
            ("\u2003" * depth + field.name, format_type(field.type), _null(field), field.id)
            for depth, field in self.walk()
        ]
        return html_table(("column", "type", "", "field"), rows, numbers=(3,))

    def field_ids(self) -> Iterator[int]:
        """Yield every id used in this schema, at every level."""
        return (field.id for field in walk_fields(self.fields))

    def find_column(self, path: str) -> Field | None:
        """Find a column or struct member by its path, as Spark resolves it: case does not matter."""
        fields = self.fields
        found: Field | None = None
        for step in parse_path(path):
            found = find_field(fields, step)
            if found is None:
                return None
            fields = found.type.fields if isinstance(found.type, Struct) else ()
        return found

    def find_member(self, path: str) -> Field | None:
        """Find a column or member by its path, in elements of lists and values of maps too."""
        return _find_member(Struct(self.fields), parse_path(path))

    def load_column(self, path: str) -> Field:
        """Return the column or struct member at a path, or raise an error that lists the columns."""
        found = self.find_column(path)
        if found is None:
            raise ColumnNotFoundError(path, known=tuple(self.paths()))
        return found

    def select(self, columns: Iterable[str]) -> Schema:
        """Keep only these top-level columns, in the order given: the projection of a reader."""
        known = index_fields(self.fields)
        return Schema(
            tuple(known.get(name.lower()) or self.load_column(format_path((name,))) for name in columns)
        )

    def paths(self) -> Iterator[str]:
        """Yield the path of everything that can evolve: columns, members, elements and values."""
        for field in self.fields:
            yield from _paths(field.type, (field.name,))

    def walk(self) -> Iterator[tuple[int, Field]]:
        """Yield every field with its depth, parents before children."""
        return _walk(self.fields, 0)

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Yield the columns and members that are not structs themselves, with their paths."""
        return _leaves(self.fields, ())


def find_field(fields: tuple[Field, ...], name: str) -> Field | None:
    """Find a field by name among siblings, as Spark resolves it."""
    return next((field for field in fields if field.name.lower() == name.lower()), None)


def index_fields(fields: tuple[Field, ...]) -> dict[str, Field]:
    """Return siblings by their names in lower case, to find many of them at once."""
    return {field.name.lower(): field for field in fields}


def number_fields(fields: Iterable[Field], ids: Iterator[int] | None = None) -> tuple[Field, ...]:
    """Give every field a new id, parents before children, by default counting from 1."""
    ids = count(1) if ids is None else ids
    return tuple(_numbered(field, ids) for field in fields)


def number_type(type_: Type, ids: Iterator[int]) -> Type:
    """Give every struct member inside a type a new id."""
    return map_members(type_, lambda member: _numbered(member, ids))


def _numbered(field: Field, ids: Iterator[int]) -> Field:
    return Field(next(ids), field.name, number_type(field.type, ids), field.nullable)


def _find_member(type_: Type, path: tuple[str, ...], found: Field | None = None) -> Field | None:
    if not path:
        return found
    step, *rest = path
    slot = next((slot for slot in slots(type_, keys=False) if slot.name.lower() == step.lower()), None)
    return None if slot is None else _find_member(slot.type, tuple(rest), slot.field)


def _walk(fields: Iterable[Field], depth: int) -> Iterator[tuple[int, Field]]:
    for field in fields:
        yield depth, field
        yield from _walk(member_fields(field.type), depth + 1)


def _leaves(fields: tuple[Field, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    for field in fields:
        if isinstance(field.type, Struct):
            yield from _leaves(field.type.fields, (*path, field.name))
        else:
            yield (*path, field.name), field


def _paths(type_: Type, path: tuple[str, ...]) -> Iterator[str]:
    yield format_path(path)
    for slot in slots(type_, keys=False):
        yield from _paths(slot.type, (*path, slot.name))


def _null(field: Field) -> str:
    return "" if field.nullable else "not null"
