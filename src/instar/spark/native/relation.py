"""Parts as a relation of Spark's: its own Parquet reader, over files that a `PartIndex` lists.

Columns are called `f<id>` at the top, and have the reader's own names inside structs. The reader finds
fields by their ids, at every level; those of files that others wrote by name (`adopted.py`).
"""

from __future__ import annotations

import json
import re
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from instar.schema import Field, Schema, Type, field_name, spark_json
from instar.schema.algebra import member_fields, walk_fields
from instar.schema.paths import quote_name
from instar.schema.spark import type_json
from instar.spark.native.adopted import stored_json, told_json, value_column
from instar.spark.native.file_index import PartIndex
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import column_name
from instar.spark.native.relay import install
from instar.spark.native.taken import NUMBER, ROW_INDEX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, SparkSession

    from instar.schema.spark import TypeJson
    from instar.spark.native.adopted import FileLayout
    from instar.spark.native.file_index import FileSource
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.taken import Leaving

__all__ = [
    "METADATA",
    "any_looks_physical",
    "column_texts",
    "field_json",
    "looks_physical",
    "parts_frame",
    "physical_json",
    "plan_of",
    "show",
    "shown_column",
    "shown_frame",
    "struct_json",
]

METADATA: Final = "_metadata"
"""The column by which Spark tells where a row is from."""
_PHYSICAL: Final = re.compile(r"f\d+", re.IGNORECASE)


def parts_frame(  # noqa: PLR0913 -- each is something that a frame may have
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: FileSource,
    *,
    widened: frozenset[int] = frozenset(),
    partitions: Sequence[dict[str, Any]] = (),
    extra: Sequence[dict[str, Any]] = (),
    leave_out: Leaving | None = None,
    places: tuple[str, str] | None = None,
) -> DataFrame:
    """Return a frame over physical columns: fields, `extra` ones, and `partitions` that come with files.

    `leave_out` leaves out rows by where they are. Under two names, `places`, the number of a
    row's file and its position there are columns too. `widened` are the ids of fields that Spark must not
    push filters on, see `widened_decimals`.
    """
    install()
    gateway = gateway_of(spark)
    adopted = [
        _adopted_frame(
            spark,
            gateway,
            label,
            fields,
            files,
            layout,
            partitions,
            extra=extra,
            leave_out=leave_out,
            places=places,
        )
        for layout, files in source.adopted().items()
    ]
    if adopted and not source.has_own():
        return reduce(DataFrame.unionByName, adopted)
    index = [] if leave_out is None and places is None else [field_json(ROW_INDEX, "long")]
    relation = _relation(gateway, label, fields, source, widened, partitions, (*extra, *index))
    frame = DataFrame(gateway.session.baseRelationToDataFrame(relation), spark)
    if leave_out is not None:
        frame = leave_out(frame)
    if places is not None:
        frame = frame.select("*", *_place_columns(*places))
    if index and adopted:
        frame = frame.drop(ROW_INDEX)
    renamed = {column_name(field_id, widened): field_name(field_id) for field_id in sorted(widened)}
    frame = frame.withColumnsRenamed(renamed) if renamed else frame
    return reduce(DataFrame.unionByName, [frame, *adopted])


def _relation(
    gateway: Gateway,
    label: str,
    fields: Sequence[Field],
    source: FileSource,
    widened: frozenset[int],
    partitions: Sequence[dict[str, Any]],
    others: Sequence[dict[str, Any]],
) -> Any:  # noqa: ANN401 -- a Java object
    """Return Spark's relation over files of our own: fields, and other columns that are in files."""
    physical = [physical_json(field, column_name(field.id, widened)) for field in fields]
    index = PartIndex(gateway, label, struct_json(partitions), source)
    return index.relation(struct_json([*physical, *others]))


def _place_columns(part: str, row: str) -> list[Column]:
    """Return the number of a row's file, and the row's position there, under two names."""
    return [F.col(NUMBER).cast("int").alias(part), F.col(ROW_INDEX).alias(row)]


def _adopted_frame(  # noqa: PLR0913 -- as above
    spark: SparkSession,
    gateway: Gateway,
    label: str,
    fields: Sequence[Field],
    source: FileSource,
    layout: FileLayout,
    partitions: Sequence[dict[str, Any]],
    *,
    extra: Sequence[dict[str, Any]],
    leave_out: Leaving | None,
    places: tuple[str, str] | None,
) -> DataFrame:
    """Return the same columns of files that others wrote, which are found by name."""
    index = [] if leave_out is None and places is None else [field_json(ROW_INDEX, "long")]
    schema = struct_json([*stored_json(layout), *index])
    told = struct_json([*partitions, *told_json(layout)])
    relation = PartIndex(gateway, f"{label} adopted", told, source).relation(schema)
    frame = DataFrame(gateway.session.baseRelationToDataFrame(relation), spark)
    if leave_out is not None:
        frame = leave_out(frame)
    values = [(field, value_column(layout, field, physical=looks_physical(field.type))) for field in fields]
    return frame.select(
        *[
            (own if field.nullable else gateway.not_null(own)).alias(field_name(field.id))
            for field, own in values
        ],
        *[F.lit(None).cast(column["type"]).alias(column["name"]) for column in extra],
        *[F.col(column["name"]) for column in partitions],
        *([] if places is None else _place_columns(*places)),
    )


def plan_of(frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
    """Return the plan of a frame."""
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 -- PySpark has no public way to it


def struct_json(fields: Sequence[dict[str, Any]]) -> str:
    """Return a schema as Spark's JSON."""
    return json.dumps({"type": "struct", "fields": list(fields)})


def shown_frame(
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    source: FileSource,
    *others: str,
    widened: frozenset[int] = frozenset(),
    partitions: Sequence[dict[str, Any]] = (),
    leave_out: Leaving | None = None,
    places: tuple[str, str] | None = None,
) -> DataFrame:
    """Return what `parts_frame` does, under the reader's names, and other columns as they are."""
    gateway = gateway_of(spark)
    condition = None if leave_out is None else leave_out.condition
    has_condition = leave_out is None or condition is not None
    if gateway.relations is None or source.adopted() or not has_condition or any_looks_physical(fields):
        frame = parts_frame(
            spark,
            label,
            fields,
            source,
            widened=widened,
            partitions=partitions,
            leave_out=leave_out,
            places=places,
        )
        return show(frame, fields, *(places or ()), *others)
    install()
    index = [] if leave_out is None and places is None else [field_json(ROW_INDEX, "long")]
    relation = _relation(gateway, label, fields, source, widened, partitions, index)
    told = [] if places is None else [f"int({NUMBER}) AS `{places[0]}`", f"{ROW_INDEX} AS `{places[1]}`"]
    texts = column_texts(gateway, fields, others, widened, told)
    # Spark analyses it once, where each call of a frame's would have it analysed again.
    return DataFrame(gateway.relations.frame(relation, condition, texts), spark)


def show(frame: DataFrame, fields: Sequence[Field], *others: str) -> DataFrame:
    """Return a frame of physical columns under the reader's names, and other columns as they are."""
    if any_looks_physical(fields):
        have = {column.name: column.dataType for column in frame.schema}
        return frame.select(*[_shown(field, have[field_name(field.id)]) for field in fields], *others)
    spark = frame.sparkSession
    return DataFrame(frame._jdf.selectExpr(column_texts(gateway_of(spark), fields, others)), spark)  # noqa: SLF001 -- PySpark makes a call of each text


def column_texts(
    gateway: Gateway,
    fields: Sequence[Field],
    others: Sequence[str],
    widened: frozenset[int] = frozenset(),
    told: Sequence[str] = (),
) -> Any:  # noqa: ANN401 -- a Java array
    """Return columns as SQL, all in one call into the JVM: each column that is made here takes dozens.

    `told` are texts already.
    """
    named = [f"{column_name(field.id, widened)} AS {quote_name(field.name)}" for field in fields]
    return gateway.strings([*named, *told, *map(quote_name, others)])


def any_looks_physical(fields: Sequence[Field]) -> bool:
    """Whether a name somewhere inside of fields looks like one that files have."""
    return any(looks_physical(field.type) for field in fields)


def shown_column(field: Field) -> Column:
    """Give a physical column the reader's name, and its members too where Spark was not told them."""
    column = F.col(field_name(field.id))
    if looks_physical(field.type):
        column = column.cast(StructType.fromJson(spark_json(Schema((field,))))[0].dataType)
    return column.alias(field.name)


def _shown(field: Field, have: DataType) -> Column:
    """Return what `shown_column` does; what may be null stays so, as it does beside adopted files."""
    if not looks_physical(field.type):
        return shown_column(field)
    wanted = StructType.fromJson(spark_json(Schema((field,))))[0].dataType
    return F.col(field_name(field.id)).cast(_as_nullable(wanted, have)).alias(field.name)


def _as_nullable(wanted: DataType, have: DataType) -> DataType:
    """Return a type that has the names of one and may be null where the other may."""
    match wanted, have:
        case StructType(), StructType():
            pairs = zip(wanted.fields, have.fields, strict=True)
            return StructType(
                [
                    StructField(one.name, _as_nullable(one.dataType, other.dataType), other.nullable)
                    for one, other in pairs
                ]
            )
        case ArrayType(), ArrayType():
            return ArrayType(_as_nullable(wanted.elementType, have.elementType), have.containsNull)
        case MapType(), MapType():
            key = _as_nullable(wanted.keyType, have.keyType)
            return MapType(key, _as_nullable(wanted.valueType, have.valueType), have.valueContainsNull)
    return wanted


def looks_physical(type_: Type) -> bool:
    """Whether a member's name could be taken for a physical one.

    Spark pushes filters on members down by name. A member called `f7` would meet another field's
    statistics, so such a struct is read under physical names and renamed after.
    """
    return any(_PHYSICAL.fullmatch(field.name) for field in walk_fields(member_fields(type_)))


def physical_json(field: Field, name: str) -> dict[str, Any]:
    """Return a field as the reader of files needs it, as Spark's JSON, with ids at every level."""
    rename = looks_physical(field.type)

    def member(inside: Field, type_: TypeJson) -> dict[str, Any]:
        return _member_json(inside, type_, field_name(inside.id) if rename else inside.name)

    return _member_json(field, type_json(field.type, member), name)


def _member_json(field: Field, type_: TypeJson, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": type_,
        "nullable": field.nullable,
        "metadata": {"parquet.field.id": field.id},
    }


def field_json(name: str, type_: str | dict[str, Any]) -> dict[str, Any]:
    """Return a column that is not a field of the table, as Spark's JSON."""
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}
