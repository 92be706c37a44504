"""A schema however the caller gives it: DDL text, Spark's `StructType` or its JSON, Arrow, or ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol, Union, runtime_checkable

import pyarrow as pa

from instar.errors import InvalidSchemaError
from instar.schema.arrow import schema_from_arrow
from instar.schema.ddl import parse_schema_ddl
from instar.schema.schema import Schema
from instar.schema.spark import schema_from_spark
from instar.schema.wellformed import TOO_DEEP

if TYPE_CHECKING:
    from typing import Any

__all__ = ["SchemaLike", "as_schema"]


@runtime_checkable
class SparkSchema(Protocol):
    """What we need of a Spark `StructType`."""

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802 -- Spark's name
        """Return the schema as Spark's JSON."""


SchemaLike = Union[str, Schema, pa.Schema, SparkSchema]  # noqa: UP007 -- pa.Schema may be untyped


def as_schema(given: SchemaLike) -> Schema:
    """Read a schema. Only a `Schema` speaks by field id; in all other forms ids are provisional."""
    if isinstance(given, Schema):
        return given
    if isinstance(given, str):
        return _from_json(given) if given.lstrip().startswith("{") else parse_schema_ddl(given)
    if isinstance(given, pa.Schema):
        return schema_from_arrow(given)
    if isinstance(given, SparkSchema):
        return schema_from_spark(given.jsonValue())
    frame = hasattr(given, "__arrow_c_stream__") or hasattr(given, "columns")
    way = ". For a frame, give pyarrow.table(frame).schema, then append the frame" if frame else ""
    msg = (
        f"cannot read a schema from {type(given).__name__}: give DDL text, a Spark StructType or its JSON, "
        f"a pyarrow Schema or an instar Schema{way}"
    )
    raise InvalidSchemaError(msg)


def _from_json(text: str) -> Schema:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"this is not JSON: {error.msg}"
        raise InvalidSchemaError(problem, text=text, position=error.pos) from None
    except RecursionError:
        raise InvalidSchemaError(TOO_DEEP) from None
    return schema_from_spark(value)
