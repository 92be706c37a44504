"""The tables of TPC-H twice: in instar with a history of schemas, and as plain Parquet files.

The plain files hold the same rows in the same order, one file for each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from bench.measure import steps

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from instar import Store, Table

__all__ = ["Tables", "copy_plain", "store_tables"]

_PIECES: Final = 4
"""One for each schema of the history, where there are enough rows to divide."""
_ENOUGH: Final = 1000


@dataclass(frozen=True)
class Tables:
    """What was stored."""

    tables: Mapping[str, Table]
    plain: Mapping[str, Path]
    files: int
    bytes: int
    plain_bytes: int

    @property
    def size(self) -> str:
        """How large both are."""
        return f"{self.bytes / 1e9:.2f} GB, plain {self.plain_bytes / 1e9:.2f} GB,"


def store_tables(spark: SparkSession, store: Store, folder: Path, rows: Mapping[str, pa.Table]) -> Tables:
    """Store every table in both ways."""
    tables = {name: _store(store, name, given) for name, given in steps(rows.items(), "storing", len(rows))}
    return copy_plain(spark, tables, folder)


def copy_plain(spark: SparkSession, tables: Mapping[str, Table], folder: Path) -> Tables:
    """Copy tables to plain files, one for each part."""
    plain = {name: folder / f"{name}.plain" for name in tables}
    for name, table in steps(tables.items(), "copying to plain Parquet", len(tables)):
        _copy(spark, table, plain[name])
    files = [path for directory in plain.values() for path in directory.glob("*.parquet")]
    parts = sum(table.state.totals.parts for table in tables.values())
    assert len(files) == parts, f"{parts} parts were copied to {len(files)} files"
    return Tables(
        tables,
        plain,
        parts,
        sum(table.state.totals.bytes for table in tables.values()),
        sum(path.stat().st_size for path in files),
    )


def _store(store: Store, name: str, rows: pa.Table) -> Table:
    """Append the rows piece by piece, under a schema each: renamed, dropped, widened and added columns."""
    narrow = pa.schema([_narrow(field) for field in rows.schema])
    renamed = {field.name: f"old_{field.name}" for field in rows.schema}
    first = [field.with_name(renamed[field.name]) for field in narrow]
    table = store.create_table(name, pa.schema([*first, pa.field("legacy", pa.string())]))
    pieces = _PIECES if rows.num_rows >= _ENOUGH else 1
    cuts = [rows.num_rows * at // pieces for at in range(pieces + 1)]
    for step in range(_PIECES):
        _evolve(table, step, renamed, rows.schema)
        if step < pieces:
            piece = rows.slice(cuts[step], cuts[step + 1] - cuts[step])
            table.append(_under(table, step, piece, narrow))
    return table


def _evolve(table: Table, step: int, renamed: Mapping[str, str], final: pa.Schema) -> None:
    match step:
        case 1:
            update = table.evolve().drop_column("legacy")
            for new, old in renamed.items():
                update.rename_column(old, new)
            update.commit()
        case 2:
            update = table.evolve()
            for field in final:
                if _narrow(field).type != field.type:
                    update.widen_column(field.name, _ddl(field.type))
            update.commit()
        case 3:
            table.evolve().add_column("added", "string").commit()


def _narrow(field: pa.Field) -> pa.Field:
    """Return a column as it is before it is widened."""
    if field.type == pa.int64():
        return field.with_type(pa.int32())
    return field.with_type(pa.decimal128(12, 2)) if pa.types.is_decimal(field.type) else field


def _ddl(type_: pa.DataType) -> str:
    return "bigint" if type_ == pa.int64() else f"decimal({type_.precision},{type_.scale})"


def _under(table: Table, step: int, piece: pa.Table, narrow: pa.Schema) -> pa.Table:
    """Return rows as the schema of a step has them."""
    rows = piece.cast(narrow) if step < 2 else piece  # noqa: PLR2004 -- the step that widens
    missing = list(table.schema.names)[len(rows.column_names) :]
    for name in missing:
        rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    return rows.rename_columns(list(table.schema.names))


def _copy(spark: SparkSession, table: Table, folder: Path) -> None:
    """Write each part as a plain file, under the names and types of the latest schema."""
    shown = table.read(spark)
    ids = {field.name: f"f{field.id}" for field in table.schema.fields}
    for path in sorted(shown.inputFiles()):
        frame = spark.read.parquet(path)
        columns = [
            f"cast({ids[name] if ids[name] in frame.columns else 'null'} as {type_}) as {name}"
            for name, type_ in shown.dtypes
        ]
        writer = frame.selectExpr(*columns).coalesce(1).write.mode("append")
        writer.option("compression", "zstd").parquet(str(folder))
