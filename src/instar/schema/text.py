"""Fields and types as Spark DDL text, which `ddl.py` reads back."""

from __future__ import annotations

from instar.schema.paths import quote_name
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type

__all__ = ["format_field", "format_fields", "format_type"]


def format_fields(fields: tuple[Field, ...]) -> str:
    """Print columns as DDL text that reads back the same, but for the ids."""
    return ", ".join(format_field(field) for field in fields)


def format_field(field: Field) -> str:
    """Print one column as in DDL."""
    return f"{quote_name(field.name)} {format_type(field.type)}{_not_null(field.nullable)}"


def format_type(type_: Type) -> str:
    """Print a type as in DDL."""
    match type_:
        case Primitive(name=name):
            return name
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case List(element=element, element_nullable=nullable):
            return f"array<{format_type(element)}{_not_null(nullable)}>"
        case Map(key=key, value=value, value_nullable=nullable):
            return f"map<{format_type(key)}, {format_type(value)}{_not_null(nullable)}>"
        case Struct(fields=members):
            return (
                "struct<"
                + ", ".join(
                    f"{quote_name(member.name)}: {format_type(member.type)}{_not_null(member.nullable)}"
                    for member in members
                )
                + ">"
            )


def _not_null(nullable: bool) -> str:  # noqa: FBT001 -- a one-line suffix
    return "" if nullable else " not null"
