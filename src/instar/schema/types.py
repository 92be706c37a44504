"""Fields, types and schemas as plain immutable values.

A field has a permanent id and a name that may change; nothing here knows about Arrow, Spark or
histories. A whole schema is in `schema.py`, and how to walk through a type in `algebra.py`.
"""

from __future__ import annotations

from typing import Final, Union

import msgspec

from instar.schema.primitives import PRIMITIVES, Family, names_of

__all__ = [
    "INTERVAL_DAY_TIME",
    "INTERVAL_YEAR_MONTH",
    "MAX_PRECISION",
    "PRIMITIVES",
    "Decimal",
    "Field",
    "List",
    "Map",
    "Primitive",
    "Struct",
    "Type",
]

INTERVAL_DAY_TIME: Final = names_of(Family.DAY_TIME)
INTERVAL_YEAR_MONTH: Final = names_of(Family.YEAR_MONTH)

MAX_PRECISION: Final = 38
"""The digits that Spark and Arrow's 128-bit decimals can hold."""


class Primitive(msgspec.Struct, frozen=True, array_like=True, tag="primitive"):
    """A type without parameters, by its Spark DDL name; intervals include their span of units."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVES:
            raise ValueError(f"{self.name!r} is not a primitive type")


class Decimal(msgspec.Struct, frozen=True, array_like=True, tag="decimal"):
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= MAX_PRECISION and 0 <= self.scale <= self.precision):
            wrong = f"decimal({self.precision},{self.scale})"
            raise ValueError(f"{wrong} needs 1 <= precision <= {MAX_PRECISION} and 0 <= scale <= precision")


class List(msgspec.Struct, frozen=True, array_like=True, tag="list"):
    """A sequence of elements. The element is structural: it has no id of its own."""

    element: Type
    element_nullable: bool = True


class Map(msgspec.Struct, frozen=True, array_like=True, tag="map"):
    """Keys to values, both structural. A key is never null and never changes its type."""

    key: Type
    value: Type
    value_nullable: bool = True


class Field(msgspec.Struct, frozen=True, array_like=True):
    """A column or a member of a struct: the id is permanent, the name may change."""

    id: int
    name: str
    type: Type
    nullable: bool = True


class Struct(msgspec.Struct, frozen=True, array_like=True, tag="struct"):
    """Named members, each with an id that is unique in the whole table."""

    fields: tuple[Field, ...]


Type = Union[Primitive, Decimal, List, Map, Struct]  # noqa: UP007 -- resolved by msgspec
