"""Files of other formats as frames, read so that they fit a table where they can."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.functions import col, input_file_name
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from instar.errors import DataMismatchError, UsageError
from instar.schema import Field, Schema, spark_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Type

__all__ = ["naming_misfits", "read_files"]

_STRICT: Final = {"mode": "FAILFAST"}
_CSV: Final = {"header": "true", "enforceSchema": "false", "escape": '"'}
"""A quote inside quotes is written twice, as everywhere but in Spark."""
_RECORD: Final = "_instar_record"
_FILE: Final = "_instar_file"


def read_files(
    spark: SparkSession,
    paths: Sequence[str],
    kind: str,
    schema: Schema | None,
    *,
    types: Mapping[str, Type] | None = None,
    delimiter: str = ",",
) -> DataFrame:
    """Read files; text takes the types of the schema's columns where it has them, and guesses the others.

    What columns of CSV are may be given as `types`, where that is known better than Spark guesses it.
    A value that is not of its column's type is an error, not a null.
    """
    reader = spark.read.options(**_STRICT)
    match kind:
        case "parquet":
            return reader.parquet(*paths)
        case "csv":
            reader = reader.options(**_CSV, sep=delimiter)
            if types is None:
                found = _widened(reader.option("inferSchema", "true").csv(list(paths)).schema)
            else:
                fields = tuple(Field(at, name, type_) for at, (name, type_) in enumerate(types.items(), 1))
                found = StructType.fromJson(spark_json(Schema(fields)))
            return reader.schema(_typed(found, schema)).csv(list(paths))
        case "json":
            return reader.schema(_typed(reader.json(list(paths)).schema, schema)).json(list(paths))
    raise UsageError(f"Spark reads no files of the format {kind}: parquet, csv or json")


@contextmanager
def naming_misfits(frame: DataFrame, paths: Sequence[str], kind: str) -> Iterator[None]:
    """Name the column and the value that do not fit, where Spark only says that something does not."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        misfit = _find_misfit(frame, paths, kind) if kind in {"csv", "json"} else None
        if misfit is None:
            raise
        raise misfit from error


def _find_misfit(frame: DataFrame, paths: Sequence[str], kind: str) -> DataMismatchError | None:
    """Read files again, with null for what does not fit and the record that it is in, and find the first."""
    schema = StructType([*frame.schema, StructField(_RECORD, StringType())])
    reader = frame.sparkSession.read.options(**_CSV, columnNameOfCorruptRecord=_RECORD).schema(schema)
    rows = reader.format(kind).load(list(paths))
    row = rows.where(col(_RECORD).isNotNull()).withColumn(_FILE, input_file_name()).head()
    if row is None:
        return None
    given = _parse_record(row[_RECORD], kind, frame.columns)
    for field in frame.schema:
        value = given.get(field.name)
        if value not in {None, ""} and row[field.name] is None:
            where = f"in the record {row[_RECORD].strip()!r} of {row[_FILE]}"
            return DataMismatchError(
                field.name, f"{value!r} is not of its type {field.dataType.simpleString()}, {where}"
            )
    return None


def _parse_record(text: str, kind: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of one record by name, as they are written; none if it is no record at all."""
    if kind == "csv":
        return dict(zip(names, next(csv.reader([text]), []), strict=False))
    try:
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _widened(found: StructType) -> StructType:
    """Let whole numbers be as wide as anywhere else that text is read."""
    return StructType(
        [
            StructField(it.name, LongType() if isinstance(it.dataType, IntegerType) else it.dataType)
            for it in found
        ]
    )


def _typed(found: StructType, schema: Schema | None) -> StructType:
    """Give columns the types that the table has for them; what must not be null is checked later."""
    if schema is None:
        return found
    known = {field.name.lower(): field.dataType for field in StructType.fromJson(spark_json(schema))}
    return StructType(
        [StructField(field.name, known.get(field.name.lower(), field.dataType)) for field in found]
    )
