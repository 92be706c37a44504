"""The primitive types: one row for each, with everything that instar knows about it.

What Arrow and Spark call it, what else people write for it, what it may be widened to, and how its values
are held and compared. A new primitive type is a row here, and a kernel for each function that takes it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

__all__ = ["PRIMITIVES", "PRIMITIVE_ROWS", "SPARK_NAMES", "Family", "PrimitiveRow", "names_of"]


class Family(Enum):
    """Types whose values are of one kind, and may be compared as they are held."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    """Doubles, which hold floats exactly; NaN apart."""
    TEXT = "text"
    """Bytes in the order of bytes, which is Spark's for strings too."""
    BYTES = "bytes"
    DATE = "date"
    """Days since 1970."""
    MOMENT = "moment"
    """Microseconds since 1970, in UTC."""
    LOCAL_MOMENT = "local moment"
    """Microseconds since 1970, in local time without a zone."""
    DAY_TIME = "day time"
    """Intervals in microseconds."""
    YEAR_MONTH = "year month"
    """Intervals in months."""


class PrimitiveRow(NamedTuple):
    """What instar knows about a type."""

    name: str
    """As Spark's DDL says it, in lower case."""
    family: Family
    arrow: tuple[str, ...]
    """The function of pyarrow that makes the type, and what it takes."""
    bits: int = 0
    """The size of the integer that holds a value, if one does."""
    spark: str | None = None
    """As Spark's JSON says it, if otherwise."""
    synonyms: tuple[str, ...] = ()
    """What else may be written in DDL."""
    wider: tuple[str, ...] = ()
    """The types that hold each of its values without loss."""
    digits: int = 0
    """The digits that Spark gives a decimal made of it."""
    is_said: bool = False
    """Whether Arrow's type alone does not say it, so that metadata has to."""


def _intervals(
    family: Family, units: tuple[str, ...], arrow: tuple[str, ...], bits: int
) -> list[PrimitiveRow]:
    """Name every interval over a span of units: `interval day`, `interval day to hour` and so on."""
    spans = [f"interval {unit}" for unit in units]
    for start, first in enumerate(units):
        spans += [f"interval {first} to {last}" for last in units[start + 1 :]]
    return [
        PrimitiveRow(name, family, arrow, bits, is_said=name != "interval day to second") for name in spans
    ]


_ROWS: Final = (
    PrimitiveRow("boolean", Family.BOOLEAN, ("bool_",)),
    PrimitiveRow(
        "tinyint",
        Family.INTEGER,
        ("int8",),
        8,
        spark="byte",
        synonyms=("byte",),
        wider=("smallint", "int", "bigint", "double"),
        digits=3,
    ),
    PrimitiveRow(
        "smallint",
        Family.INTEGER,
        ("int16",),
        16,
        spark="short",
        synonyms=("short",),
        wider=("int", "bigint", "double"),
        digits=5,
    ),
    PrimitiveRow(
        "int",
        Family.INTEGER,
        ("int32",),
        32,
        spark="integer",
        synonyms=("integer",),
        wider=("bigint", "double"),
        digits=10,
    ),
    PrimitiveRow("bigint", Family.INTEGER, ("int64",), 64, spark="long", synonyms=("long",), digits=20),
    PrimitiveRow("float", Family.REAL, ("float32",), synonyms=("real",), wider=("double",)),
    PrimitiveRow("double", Family.REAL, ("float64",)),
    PrimitiveRow("string", Family.TEXT, ("string",)),
    PrimitiveRow("binary", Family.BYTES, ("binary",)),
    PrimitiveRow("date", Family.DATE, ("date32",), 32),
    PrimitiveRow("timestamp", Family.MOMENT, ("timestamp", "us", "UTC"), 64, synonyms=("timestamp_ltz",)),
    PrimitiveRow("timestamp_ntz", Family.LOCAL_MOMENT, ("timestamp", "us"), 64),
    *_intervals(Family.DAY_TIME, ("day", "hour", "minute", "second"), ("duration", "us"), 64),
    *_intervals(Family.YEAR_MONTH, ("year", "month"), ("int32",), 32),
)

PRIMITIVE_ROWS: Final = {row.name: row for row in _ROWS}
PRIMITIVES: Final = frozenset(PRIMITIVE_ROWS)
SPARK_NAMES: Final = {row.spark: row.name for row in _ROWS if row.spark is not None}
"""The names in Spark's JSON that are not those of its DDL, and which those are."""


def names_of(*families: Family) -> frozenset[str]:
    """Return the names of the types of some families."""
    return frozenset(row.name for row in _ROWS if row.family in families)
