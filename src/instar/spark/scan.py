"""Snapshots as DataFrames, read by Spark's own Parquet reader.

Fields are found by their ids, at every level, and columns get the reader's names. Parts that must be
consolidated are read with their times and diffs and added up.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 -- as everybody calls it
from pyspark.sql.types import StructType

from instar.schema import Field, List, Map, Schema, Struct, Type, field_name, spark_json
from instar.schema.spark import type_json
from instar.spark.file_index import FileGroup, Listing, PartIndex
from instar.spark.gateway import gateway_of
from instar.spark.relay import install
from instar.state.chunk import FILES, TIMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, SparkSession

    from instar.state.manifest import Columns
    from instar.table.snapshot import SnapshotPlan

__all__ = [
    "Parts",
    "merge_frame",
    "merge_listing",
    "scan_frame",
    "scan_listing",
    "snapshot_frame",
    "total_bytes",
]

_PHYSICAL: Final = re.compile(r"f\d+", re.IGNORECASE)
_OPTIONS: Final = {"spark.sql.parquet.fieldId.read.enabled": "true"}
_NO_PARTITIONS: Final = json.dumps({"type": "struct", "fields": []})
_BATCH_TS: Final = "_batch_ts"
_BATCH_DIFF: Final = "_batch_diff"
_COUNT: Final = "_count"


class Parts(NamedTuple):
    """Where a frame gets its files from whenever Spark asks: a listing for a filter, and all bytes."""

    list_parts: Callable[[Sequence[str]], Listing]
    size: Callable[[], int]


def snapshot_frame(
    spark: SparkSession, plan: SnapshotPlan, locate: Callable[[str], str], keep_alive: object
) -> DataFrame:
    """Return the rows of a snapshot. `locate` turns a part's key into a path for Spark."""
    label = f"instar:/{plan.state.name}@{plan.state.seqno}"
    fields = plan.reader.schema.fields
    scan = scan_frame(spark, label, fields, _fixed(scan_listing(plan, locate), plan.scan, keep_alive))
    if plan.merge[FILES].num_rows == 0:
        return scan
    read = {field.id for field in fields}
    others = tuple(field for field in plan.state.history.latest.fields if field.id not in read)
    parts = _fixed(merge_listing(plan, locate), plan.merge, keep_alive)
    merge = merge_frame(
        spark, plan.state.name, f"{label}/merge", fields, parts, others=others, as_of=plan.as_of
    )
    return scan.unionAll(merge)


def scan_frame(spark: SparkSession, label: str, fields: Sequence[Field], parts: Parts) -> DataFrame:
    """Return the rows of parts as they are."""
    frame = _relation(spark, label, fields, _NO_PARTITIONS, parts)
    return frame.select([_named(field) for field in fields])


def merge_frame(
    spark: SparkSession,
    table: str,
    label: str,
    fields: Sequence[Field],
    parts: Parts,
    *,
    others: Sequence[Field] = (),
    as_of: int | None = None,
) -> DataFrame:
    """Add up the diffs of equal rows; a row that was retracted more often than added is an error.

    `others` are fields that tell rows apart and are not shown. Without `as_of`, all updates count.
    """
    grouped = (*fields, *others)
    partitions = json.dumps(
        {"type": "struct", "fields": [_field_json(name, "string") for name in (_BATCH_TS, _BATCH_DIFF)]}
    )
    extra = [_field_json(name, "long") for name in ("_ts", "_diff")]
    frame = _relation(spark, label, grouped, partitions, parts, extra)
    if as_of is not None:
        frame = frame.where(F.coalesce(F.col("_ts"), F.col(_BATCH_TS).cast("long")) <= as_of)
    diff = F.coalesce(F.col("_diff"), F.col(_BATCH_DIFF).cast("long"))
    counted = frame.groupBy(*[field_name(field.id) for field in grouped]).agg(F.sum(diff).alias(_COUNT))
    message = f"instar: `{table}` holds a row that was retracted more often than it was added"
    times = F.when(F.col(_COUNT) < 0, F.raise_error(F.lit(message)).cast("int")).otherwise(
        F.col(_COUNT).cast("int")
    )
    repeated = counted.where(F.col(_COUNT) != 0).withColumn(
        _COUNT,
        F.explode(F.array_repeat(F.lit(True), times)),  # noqa: FBT003 -- a column of trues
    )
    return repeated.select([_named(field) for field in fields])


def scan_listing(plan: SnapshotPlan, locate: Callable[[str], str]) -> list[FileGroup]:
    """List the files that are read as they are."""
    files = _files(plan.scan, locate)
    return [FileGroup((), files)] if files else []


def merge_listing(plan: SnapshotPlan, locate: Callable[[str], str]) -> list[FileGroup]:
    """Group files by the time and diff that all their rows have, which are not in the files themselves."""
    files = _files(plan.merge, locate)
    times = plan.merge[TIMES].to_pylist()

    def constants(at: int) -> tuple[str, str]:
        row = times[at]
        return str(row["upper"] - 1 if row["ts_min"] is None else row["ts_min"]), str(row["diff_min"])

    order = sorted(range(len(files)), key=constants)
    return [FileGroup(values, [files[at] for at in members]) for values, members in groupby(order, constants)]


def total_bytes(columns: Columns) -> int:
    """Return the size of all parts."""
    return pc.sum(columns[FILES].column("size")).as_py() or 0


def _fixed(groups: list[FileGroup], columns: Columns, keep_alive: object) -> Parts:
    """Answer always the same, and keep alive what that needs."""
    listing, size = Listing(groups), total_bytes(columns)
    return Parts(lambda _: (keep_alive, listing)[1], lambda: size)


def _files(columns: Columns, locate: Callable[[str], str]) -> list[tuple[str, int]]:
    files = columns[FILES]
    keys, sizes = files.column("key").to_pylist(), files.column("size").to_pylist()
    return [(locate(key), size) for key, size in zip(keys, sizes, strict=True)]


def _relation(
    spark: SparkSession,
    label: str,
    fields: Sequence[Field],
    partitions: str,
    parts: Parts,
    extra: Sequence[dict[str, Any]] = (),
) -> DataFrame:
    """Return a frame over physical columns: `f<id>` at the top, the reader's own names inside structs."""
    install()
    gateway = gateway_of(spark)
    index = PartIndex(gateway, label, partitions, *parts)
    schema = {"type": "struct", "fields": [*(_physical_json(field) for field in fields), *extra]}
    relation = gateway.relation(
        index,
        gateway.schema(partitions),
        gateway.schema(json.dumps(schema)),
        gateway.none(),
        gateway.parquet(),
        gateway.options(_OPTIONS),
        gateway.session,
    )
    return DataFrame(gateway.session.baseRelationToDataFrame(relation), spark)


def _named(field: Field) -> Column:
    """Give a physical column the reader's name, and its members too where Spark was not told them."""
    column = F.col(field_name(field.id))
    if _looks_physical(field.type):
        column = column.cast(StructType.fromJson(spark_json(Schema((field,))))[0].dataType)
    return column.alias(field.name)


def _looks_physical(type_: Type) -> bool:
    """Whether a member's name could be taken for a physical one.

    Spark pushes filters on members down by name. A member called `f7` would meet another field's
    statistics, so such a struct is read under physical names and renamed after.
    """
    match type_:
        case Struct(fields=members):
            return any(_PHYSICAL.fullmatch(member.name) or _looks_physical(member.type) for member in members)
        case List(element=element):
            return _looks_physical(element)
        case Map(key=key, value=value):
            return _looks_physical(key) or _looks_physical(value)
    return False


def _physical_json(field: Field) -> dict[str, Any]:
    rename = _looks_physical(field.type)
    return _member_json(field, field_name(field.id), rename=rename)


def _member_json(field: Field, name: str, *, rename: bool) -> dict[str, Any]:
    return {
        "name": name,
        "type": _type_json(field.type, rename=rename),
        "nullable": field.nullable,
        "metadata": {"parquet.field.id": field.id},
    }


def _type_json(type_: Type, *, rename: bool) -> str | dict[str, Any]:
    match type_:
        case Struct(fields=members):
            names = [field_name(member.id) if rename else member.name for member in members]
            return {
                "type": "struct",
                "fields": [
                    _member_json(member, name, rename=rename)
                    for member, name in zip(members, names, strict=True)
                ],
            }
        case List(element=element, element_nullable=nullable):
            return {
                "type": "array",
                "elementType": _type_json(element, rename=rename),
                "containsNull": nullable,
            }
        case Map(key=key, value=value, value_nullable=nullable):
            return {
                "type": "map",
                "keyType": _type_json(key, rename=rename),
                "valueType": _type_json(value, rename=rename),
                "valueContainsNull": nullable,
            }
    return type_json(type_)


def _field_json(name: str, type_: str) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": {}}
