"""Schemas: what a table's columns are, how they may evolve, and how old data is read under new ones."""

from instar.schema.arrow import Names, arrow_field, arrow_schema, arrow_type, field_name, schema_from_arrow
from instar.schema.ddl import parse_schema_ddl, parse_type_ddl
from instar.schema.fingerprint import fingerprint
from instar.schema.given import SchemaLike, as_schema
from instar.schema.history import History
from instar.schema.migrate import Migration, migrate, plan_migration
from instar.schema.migration_type import MigrationType
from instar.schema.order import needs_consolidation, preserves_order, stays_sorted_by
from instar.schema.paths import format_path, parse_path
from instar.schema.reader import Fence, check_reader
from instar.schema.rules import PERMITTED, Change, ChangeKind, compare
from instar.schema.schema import Schema
from instar.schema.spark import schema_from_spark, spark_json
from instar.schema.text import format_type
from instar.schema.types import Decimal, Field, List, Map, Primitive, Struct, Type
from instar.schema.update import SchemaUpdate

__all__ = [
    "PERMITTED",
    "Change",
    "ChangeKind",
    "Decimal",
    "Fence",
    "Field",
    "History",
    "List",
    "Map",
    "Migration",
    "MigrationType",
    "Names",
    "Primitive",
    "Schema",
    "SchemaLike",
    "SchemaUpdate",
    "Struct",
    "Type",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "as_schema",
    "check_reader",
    "compare",
    "field_name",
    "fingerprint",
    "format_path",
    "format_type",
    "migrate",
    "needs_consolidation",
    "parse_path",
    "parse_schema_ddl",
    "parse_type_ddl",
    "plan_migration",
    "preserves_order",
    "schema_from_arrow",
    "schema_from_spark",
    "spark_json",
    "stays_sorted_by",
]
