"""What the columns of a relation over parts are called, and why some are not called as they are in files.

A column has the name of its field in the files, `f<id>`, or `f<id>w` if Spark must not push filters on it
into files. Spark finds the columns of a file by id when it reads them, and by name when it filters them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, field_name

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from instar.schema import Field, History

__all__ = ["COLUMN_NAME", "by_column_name", "column_name", "widened_decimals"]

COLUMN_NAME: Final = re.compile(r"f\d+w?")


def column_name(field_id: int, widened: Container[int] = ()) -> str:
    """Return what the column of a field is called."""
    return f"{field_name(field_id)}w" if field_id in widened else field_name(field_id)


def by_column_name(fields: Sequence[Field]) -> Mapping[str, Field]:
    """Return fields by every name that their columns may have."""
    return {column_name(field.id, widened): field for field in fields for widened in ((), (field.id,))}


def widened_decimals(history: History, fields: Sequence[Field]) -> frozenset[int]:
    """Return the ids of decimals that some parts hold with fewer digits, and as many behind the point.

    Spark pushes a filter into a file if its literal has as many digits behind the point as the file's
    column. It then cuts the literal to the 32 or 64 bits of that column, and skips rows that the filter is
    true for; if the column is a byte array, and the literal too long for it, the query fails.
    """
    wide = {field.id: field.type for field in fields if isinstance(field.type, Decimal)}
    return frozenset(
        field.id
        for schema in history.schemas
        for field in schema.fields
        if isinstance(field.type, Decimal)
        and field.id in wide
        and field.type.scale == wide[field.id].scale
        and field.type.precision < wide[field.id].precision
    )
