"""The tables of the old layout, in an early database of instar or in one of Marquez, and which of them it is.

Only columns that both have are named here, except where a comment says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, MetaData, String, Table, Uuid, inspect

from instar.errors import UsageError
from instar.lineage.models import DatasetFieldRow, DatasetVersionRow

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = [
    "DATASETS",
    "FIELDS",
    "JOURNAL",
    "OLD_MAPPING",
    "OLD_METADATA",
    "OLD_TABLE",
    "SCHEMA_MAPPING",
    "SCHEMA_VERSIONS",
    "VERSIONS",
    "MappingLayout",
    "find_layout",
    "has_old_table",
    "is_marquez",
]

OLD_TABLE: Final = "dataset_versions_field_mapping"


class MappingLayout(StrEnum):
    """Whose tables they are."""

    INSTAR = "instar"
    MARQUEZ = "marquez"


_SHARED: Final = MetaData()
_UUID: Final = Uuid()

DATASETS: Final = Table(
    "datasets",
    _SHARED,
    Column("uuid", _UUID, primary_key=True),
    Column("namespace_name", String),  # Marquez only
    Column("name", String),
)
FIELDS: Final = Table(
    "dataset_fields",
    _SHARED,
    Column("uuid", _UUID, primary_key=True),
    Column("dataset_uuid", _UUID),
    Column("name", String),
    Column("type", String),
    Column("members", String),  # instar only
)
VERSIONS: Final = Table(
    "dataset_versions",
    _SHARED,
    Column("uuid", _UUID, primary_key=True),
    Column("dataset_uuid", _UUID),
    Column("created_at"),  # a number in instar, a timestamp in Marquez
    Column("dataset_schema_version_uuid", _UUID),
    Column("declared_schema_version_uuid", _UUID),  # instar only
)
SCHEMA_VERSIONS: Final = Table(
    "dataset_schema_versions",
    _SHARED,
    Column("uuid", _UUID, primary_key=True),
    Column("dataset_uuid", _UUID),
    Column("created_at"),
    Column("fingerprint", String),  # instar only
)
SCHEMA_MAPPING: Final = Table(
    "dataset_schema_versions_field_mapping",
    _SHARED,
    Column("dataset_schema_version_uuid", _UUID, primary_key=True),
    Column("dataset_field_uuid", _UUID, primary_key=True),
)

OLD_METADATA: Final = MetaData()
"""What an early database of instar has beside the tables of today; migrations know nothing of it."""

OLD_MAPPING: Final = Table(
    OLD_TABLE,
    OLD_METADATA,
    Column(
        "dataset_version_uuid",
        _UUID,
        ForeignKey(DatasetVersionRow.uuid, ondelete="CASCADE"),
        primary_key=True,
    ),
    Column(
        "dataset_field_uuid", _UUID, ForeignKey(DatasetFieldRow.uuid, ondelete="CASCADE"), primary_key=True
    ),
    Index(f"{OLD_TABLE}_index", "dataset_field_uuid"),
)

JOURNAL: Final = Table(
    "instar_backfill",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("step", String(16), nullable=False),
    Column("cursor", _UUID),
    Column("cursor_dataset", _UUID),
    Column("cursor_at", BigInteger),
    Column("total", BigInteger, nullable=False),
    Column("versions", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("converted", BigInteger, nullable=False),
    Column("mismatches", BigInteger, nullable=False),
)
"""How far the backfill has come; one row, written with each batch."""


def has_old_table(connection: Connection) -> bool:
    """Say whether the database still has the table of the old layout."""
    return inspect(connection).has_table(OLD_TABLE)


def is_marquez(connection: Connection) -> bool:
    """Say whether these are tables that Marquez made."""
    return connection.dialect.name == "postgresql" and inspect(connection).has_table("flyway_schema_history")


def find_layout(connection: Connection) -> MappingLayout | None:
    """Return whose old layout a database has, or None if it has none."""
    if not has_old_table(connection):
        return None
    columns = {column["name"] for column in inspect(connection).get_columns(VERSIONS.name)}
    if "dataset_schema_version_uuid" not in columns:
        raise UsageError(
            "this database of Marquez is too old for schema versions: let Marquez 0.48 or newer upgrade it"
        )
    return MappingLayout.INSTAR if "declared_schema_version_uuid" in columns else MappingLayout.MARQUEZ
