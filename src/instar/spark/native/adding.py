"""Adding up diffs on Spark: how often each row is there, by an encoding of rows that is ours.

Spark's own grouping is wrong for maps that hold nulls, and lets a filter tell -0.0 from 0.0 before the two
are added up. So rows are grouped by columns in which equal rows are the same to every expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it

from instar.errors import CountOverflowError, NegativeCountError
from instar.parts.consolidate import MOST_COPIES
from instar.schema import List, Map, Primitive, Struct, field_name
from instar.schema.algebra import walk_types
from instar.spark.native.gateway import gateway_of
from instar.spark.native.relation import looks_physical, shown_column
from instar.spark.native.relay import count_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from instar.errors import InstarError
    from instar.schema import Field, Type

__all__ = ["add_up"]

_COUNT: Final = "_count"
_EXACT: Final = "decimal(19,0)"
"""What diffs are added up in: no sum of 64-bit numbers leaves it, in whatever order they come."""
_PIECE: Final = 1_000_000
"""How many copies of a row are made at once."""


def add_up(
    updates: DataFrame, diff: Column, table: str, fields: Sequence[Field], others: Sequence[Field] = ()
) -> DataFrame:
    """Return each row as often as the sum of its diffs says, with the reader's names.

    The frame has physical columns; `others` tell rows apart and are not shown. A sum below zero is an error,
    and so is one of more copies than can be made, whatever the session's settings are.
    """
    grouped = [_grouped(field).alias(_name(field)) for field in (*fields, *others)]
    mapped = [field for field in fields if _holds(field.type, Map)]
    kept = [F.max_by(name, F.lit(1)).alias(name) for name in map(_physical, mapped)]  # any of equal ones
    counted = updates.groupBy(*grouped).agg(F.sum(diff.cast(_EXACT)).alias(_COUNT), *kept)
    for name in (_physical(field) for field in mapped if not field.nullable):
        counted = counted.withColumn(name, _never_null(counted, name))
    shown = [shown_column(field) for field in fields]
    pieces = counted.where(F.col(_COUNT) != 0).withColumn(_COUNT, F.explode(_pieces(table, shown)))
    copies = pieces.withColumn(_COUNT, F.explode(F.array_repeat(F.lit(True), F.col(_COUNT))))  # noqa: FBT003
    return copies.select(shown)


def _pieces(table: str, shown: Sequence[Column]) -> Column:
    """Return numbers that together are the count, each small enough for an array; or fail."""
    count = F.col(_COUNT)
    row = F.to_json(F.struct(*shown))
    facts = F.struct(F.lit(table).alias("table"), count.cast("string").alias("count"), row.alias("row"))

    def fail(kind: type[InstarError]) -> Column:
        return F.raise_error(F.concat(F.lit(count_mark(kind)), F.to_json(facts))).cast("bigint")

    checked = (
        F.when(count < 0, fail(NegativeCountError))
        .when(count > MOST_COPIES, fail(CountOverflowError))
        .otherwise(count.cast("bigint"))
    )
    whole = F.array_repeat(F.lit(_PIECE), F.floor(checked / _PIECE).cast("int"))
    rest = (checked % _PIECE).cast("int")
    return F.when(count < _PIECE, F.array(checked.cast("int"))).otherwise(F.concat(whole, F.array(rest)))


def _physical(field: Field) -> str:
    return field_name(field.id)


def _name(field: Field) -> str:
    """Return what a field is grouped as: under its own name, if that is also what is shown."""
    return f"{_physical(field)}_entries" if _holds(field.type, Map) else _physical(field)


def _never_null(frame: DataFrame, name: str) -> Column:
    """Tell Spark what it forgets when it picks one of several values: that none of them is null."""
    jvm = gateway_of(frame.sparkSession).jvm
    convert = jvm.org.apache.spark.sql.classic.ExpressionUtils
    value = convert.expression(F.col(name)._jc)  # noqa: SLF001 -- PySpark has no public way to it
    return Column(convert.column(jvm.org.apache.spark.sql.catalyst.expressions.KnownNotNull(value)))


def _grouped(field: Field) -> Column:
    physical = looks_physical(field.type)

    def same(column: Column, type_: Type, *, nullable: bool) -> Column:
        """Return an expression with one value for all that are equal, so that nothing tells them apart.

        -0.0 becomes 0.0, and a map the array of its entries, in order. Everything else is as it is, so that
        filters on it reach the files.
        """
        if not _holds(type_, Map) and not _holds(type_, Primitive, "float", "double"):
            return column
        match type_:
            case Struct(fields=members):
                names = [field_name(member.id) if physical else member.name for member in members]
                made = F.struct(
                    *(
                        same(column.getField(name), member.type, nullable=member.nullable).alias(name)
                        for member, name in zip(members, names, strict=True)
                    )
                )
                return F.when(column.isNotNull(), made) if nullable else made
            case List(element=element, element_nullable=may_be_null):
                return F.transform(column, lambda item: same(item, element, nullable=may_be_null))
            case Map(key=key, value=value, value_nullable=may_be_null):

                def entry(item: Column) -> Column:
                    name = same(item.getField("key"), key, nullable=False)
                    content = same(item.getField("value"), value, nullable=may_be_null)
                    return F.struct(name.alias("key"), content.alias("value"))

                return F.array_sort(F.transform(F.map_entries(column), entry))
        return column + F.lit(0).cast("float" if type_ == Primitive("float") else "double")

    return same(F.col(_physical(field)), field.type, nullable=field.nullable)


def _holds(type_: Type, kind: type, *names: str) -> bool:
    """Whether a type is of a kind, and of one of the names if there are any, at any level."""
    return any(
        isinstance(inside, kind) and (not names or getattr(inside, "name", None) in names)
        for inside in walk_types(type_)
    )
