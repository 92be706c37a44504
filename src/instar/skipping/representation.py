"""Kinds of types: which values a type has, and how the interpreter holds them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from instar.schema import Decimal, Primitive, Type
from instar.schema.primitives import PRIMITIVE_ROWS, Family
from instar.schema.types import INTERVAL_DAY_TIME, INTERVAL_YEAR_MONTH

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "INTEGERS",
    "Representation",
    "comparable",
    "is_day_time",
    "is_year_month",
    "limits",
    "name_of",
    "representation_of",
    "scale_of",
]


class Representation(Enum):
    """How the possible values of a type are held."""

    WHOLE = "whole"
    """As exact integers: numbers, decimals (unscaled), dates, timestamps, intervals."""
    REAL = "real"
    """As doubles, which hold floats exactly; NaN apart."""
    TEXT = "text"
    """As bytes in the order of bytes, which is Spark's for strings too."""
    TRUTH = "truth"
    OPAQUE = "opaque"
    """Not at all: it is only known whether there is a value."""


INTEGERS: Final = {row.name: row.bits for row in PRIMITIVE_ROWS.values() if row.family is Family.INTEGER}
"""The integer types and their bits."""

_HELD: Final = {
    Family.BOOLEAN: Representation.TRUTH,
    Family.REAL: Representation.REAL,
    Family.TEXT: Representation.TEXT,
    Family.BYTES: Representation.TEXT,
}
"""How values of a family are held, if not as integers."""


def name_of(type_: Type | None) -> str:
    """Return the name of a type without parameters, and nothing for others."""
    return type_.name if isinstance(type_, Primitive) else ""


def is_day_time(type_: Type | None) -> bool:
    """Tell whether values are intervals in microseconds."""
    return name_of(type_) in INTERVAL_DAY_TIME


def is_year_month(type_: Type | None) -> bool:
    """Tell whether values are intervals in months."""
    return name_of(type_) in INTERVAL_YEAR_MONTH


def representation_of(type_: Type | None) -> Representation:
    """Return how values of a type are held."""
    match type_:
        case Decimal():
            return Representation.WHOLE
        case Primitive(name=name):
            return _HELD.get(PRIMITIVE_ROWS[name].family, Representation.WHOLE)
    return Representation.OPAQUE


def limits(type_: Type | None) -> tuple[int, int]:
    """Return the least and the greatest of the integers that hold a type's values."""
    if isinstance(type_, Decimal):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    bits = (isinstance(type_, Primitive) and PRIMITIVE_ROWS[type_.name].bits) or 64
    return -(1 << bits - 1), (1 << bits - 1) - 1


def scale_of(type_: Type | None) -> int:
    """Return the digits after the point of a number that is held as an integer."""
    return type_.scale if isinstance(type_, Decimal) else 0


def comparable(types: Iterable[Type | None]) -> bool:
    """Tell whether values of these types are held alike, so that they may be compared as they are."""
    distinct = set(types)
    if len(distinct) == 1:
        return representation_of(next(iter(distinct))) is not Representation.OPAQUE
    families = {PRIMITIVE_ROWS[type_.name].family for type_ in distinct if isinstance(type_, Primitive)}
    primitive = all(isinstance(type_, Primitive) for type_ in distinct)
    return primitive and len(families) == 1
