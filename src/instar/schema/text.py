"""Fields and types as Spark DDL text, which `ddl.py` reads back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instar.schema.algebra import fold_type
from instar.schema.paths import quote_name
from instar.schema.types import Decimal

if TYPE_CHECKING:
    from instar.schema.algebra import Slot
    from instar.schema.types import Field, Primitive, Type

__all__ = ["format_field", "format_fields", "format_type"]


def format_fields(fields: tuple[Field, ...]) -> str:
    """Print columns as DDL text that reads back the same, except for the ids."""
    return ", ".join(format_field(field) for field in fields)


def format_field(field: Field) -> str:
    """Print one column as in DDL."""
    return f"{quote_name(field.name)} {format_type(field.type)}{_not_null(field)}"


def format_type(type_: Type) -> str:
    """Print a type as in DDL."""
    return fold_type(
        type_,
        leaf=_format_leaf,
        list_=lambda slot, element: f"array<{element}{_not_null(slot)}>",
        map_=lambda _, key, slot, value: f"map<{key}, {value}{_not_null(slot)}>",
        struct=_format_struct,
    )


def _format_struct(members: list[tuple[Field, str]]) -> str:
    made = (f"{quote_name(field.name)}: {type_}{_not_null(field)}" for field, type_ in members)
    return f"struct<{', '.join(made)}>"


def _format_leaf(type_: Primitive | Decimal) -> str:
    return f"decimal({type_.precision},{type_.scale})" if isinstance(type_, Decimal) else type_.name


def _not_null(slot: Slot | Field) -> str:
    return "" if slot.nullable else " not null"
