"""Files of other formats as frames, read so that they fit a table where they can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructField, StructType

from instar.errors import UsageError
from instar.schema import spark_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from instar.schema import Schema

__all__ = ["SUFFIXES", "file_format", "read_files"]

SUFFIXES: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_STRICT: Final = {"mode": "FAILFAST"}


def file_format(paths: Sequence[str]) -> str:
    """Guess a format from the names of files."""
    formats = {
        SUFFIXES[suffix] for path in paths for suffix in SUFFIXES if suffix in path.rpartition("/")[2].lower()
    }
    if len(formats) != 1:
        raise UsageError(f"cannot tell the format of {', '.join(paths)} from the names: say --format")
    return formats.pop()


def read_files(spark: SparkSession, paths: Sequence[str], kind: str, schema: Schema | None) -> DataFrame:
    """Read files; text takes the types of the schema's columns where it has them, and guesses the others.

    A value that is not of its column's type is an error, not a null.
    """
    reader = spark.read.options(**_STRICT)
    match kind:
        case "parquet":
            return reader.parquet(*paths)
        case "csv":
            reader = reader.options(header="true", enforceSchema="false")
            found = reader.option("inferSchema", schema is None).csv(list(paths)).schema
            return reader.schema(_typed(found, schema)).csv(list(paths))
        case "json":
            return reader.schema(_typed(reader.json(list(paths)).schema, schema)).json(list(paths))
    raise UsageError(f"there is no format {kind!r}: parquet, csv or json")


def _typed(found: StructType, schema: Schema | None) -> StructType:
    """Give columns the types that the table has for them; what must not be null is checked later."""
    if schema is None:
        return found
    known = {field.name.lower(): field.dataType for field in StructType.fromJson(spark_json(schema))}
    return StructType(
        [StructField(field.name, known.get(field.name.lower(), field.dataType)) for field in found]
    )
