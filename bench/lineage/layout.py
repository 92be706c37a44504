"""What the fields of dataset versions take, in a row for each field of each version and in ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from bench.lineage.seeds import OLD_LAYOUT, add_old_layout
from bench.report import Column, Section

if TYPE_CHECKING:
    from instar.lineage import Database

__all__ = ["measure_layout"]

_NEW: Final = ("dataset_schema_versions", "dataset_schema_versions_field_mapping")

_SQLITE_SIZE: Final = (
    "SELECT sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name WHERE m.tbl_name = :t"
)


def measure_layout(databases: dict[str, Database]) -> Section:
    """Compare rows and bytes of both layouts in databases that hold the same versions."""
    rows = []
    for name, database in databases.items():
        add_old_layout(database)
        old_rows, old_bytes = _size(database, (OLD_LAYOUT,))
        new_rows, new_bytes = _size(database, _NEW)
        mapping, _ = _size(database, _NEW[1:])
        rows.append(
            {
                "what": name,
                "rows_ratio": old_rows / new_rows,
                "bytes_ratio": old_bytes / new_bytes,
                "old_rows": old_rows,
                "new_rows": mapping,
                "old_bytes": old_bytes,
                "new_bytes": new_bytes,
            }
        )
    return Section(
        "Fields of dataset versions: a row for each field of each version, and each schema once",
        {
            "what": Column("database"),
            "rows_ratio": Column("rows, old/new", ",.0f"),
            "bytes_ratio": Column("bytes, old/new", ",.1f"),
            "old_rows": Column("mapping rows, old", ","),
            "new_rows": Column("mapping rows, new", ","),
            "old_bytes": Column("bytes, old", ","),
            "new_bytes": Column("bytes, new", ","),
        },
        rows,
        [
            "20 columns, a run every 10 minutes; with indexes; the new one includes the schemas themselves",
            "One dataset ran for 30 days, the others for a day: the old layout grows with days, ours not",
        ],
    )


def _size(database: Database, tables: tuple[str, ...]) -> tuple[int, int]:
    rows = size = 0
    with database.reading() as connection:
        for table in tables:
            rows += connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0
            if database.is_sqlite:
                size += connection.scalar(text(_SQLITE_SIZE), {"t": table}) or 0
            else:
                size += connection.scalar(text("SELECT pg_total_relation_size(:t)"), {"t": table}) or 0
    return rows, size
