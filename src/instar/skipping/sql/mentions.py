"""The columns that the text of a filter names, understood or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

if TYPE_CHECKING:
    from instar.schema import Schema

__all__ = ["find_mentions"]


def find_mentions(text: str, schema: Schema) -> frozenset[int]:
    """Return the ids of the top-level columns that a text names; all of them if it cannot be read."""
    ids = {field.name.lower(): field.id for field in schema.fields}
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return frozenset(ids.values())
    names = {column.parts[0].name.lower() for column in tree.find_all(exp.Column)}
    return frozenset(field_id for name, field_id in ids.items() if name in names)
