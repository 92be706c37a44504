"""`./dev bench stale`: what becomes of readers and writers whose schema has changed since they began.

Each engine is tried once, by what its users hold: a handle, or a statement over a name. Nothing is timed.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import instar
from bench.ducklake import DuckLakeError, Lake, find_ducklake
from bench.measure import machine
from bench.report import Column, Report, Section
from instar.errors import InstarError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["DEFAULT", "FULL", "QUICK", "run"]

DEFAULT = FULL = QUICK = None
"""There is only one size."""

READER: Final = "a reader whose column was dropped since"
WRITER: Final = "a writer with values in a column that was dropped since"
CHANGES: Final = "rename, drop and widen without rewriting a file, at every level"
_QUESTIONS: Final = (READER, WRITER, CHANGES)
_STOPPED: Final = "is stopped"
_DDL: Final = "id bigint, v bigint, n int, s struct<x: int, y: int>"
_ROWS: Final = pa.table(
    {
        "id": pa.array([1, 2]),
        "v": pa.array([5, 6]),
        "n": pa.array([1, 2], pa.int32()),
        "s": pa.array([{"x": 1, "y": 2}] * 2, pa.struct({"x": pa.int32(), "y": pa.int32()})),
    }
)


def run(_plan: None, command: str, directory: Path | None) -> Report:
    """Try every engine that is here, in a new directory below the given one."""
    report = Report(command, machine())
    told: dict[str, Mapping[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="instar-bench-", dir=directory) as scratch:
        for name, (is_here, attempt) in _ENGINES.items():
            if is_here():
                told[name] = attempt(Path(scratch) / name)
            else:
                report.skipped.append(f"{name}, which is not installed here")
    rows = [{"what": what, **{name: found[what] for name, found in told.items()}} for what in _QUESTIONS]
    columns = {"what": Column(""), **{name: Column(name) for name in told}}
    report.sections.append(Section("What becomes of old readers and writers", columns, rows))
    return report


def _kept(table: pa.Table) -> str:
    """Say what was read of a column that is gone."""
    if "v" not in table.column_names:
        return "reads without it"
    return "reads its old snapshot" if table.column("v").to_pylist() == [5, 6] else "reads other values"


def _instar(directory: Path) -> Mapping[str, str]:
    with instar.open(directory) as store, instar.open(directory) as other:
        store.create_table("t", _DDL).append(_ROWS)
        reader, writer = store.table("t"), store.table("t")
        schema = reader.schema
        files = sorted(directory.rglob("*.parquet"))
        other.table("t").evolve().rename_column("s.x", "z").drop_column("s.y").widen_column(
            "s.z", "bigint"
        ).widen_column("n", "bigint").drop_column("v").commit()
        changes = "yes" if sorted(directory.rglob("*.parquet")) == files else "rewrites files"
        found = {CHANGES: changes}
        try:
            found[READER] = _kept(reader.snapshot(schema=schema).to_arrow())
        except InstarError:
            found[READER] = _STOPPED
        try:
            writer.append(_ROWS, schema=0)
            found[WRITER] = "accepted, values lost"
        except InstarError:
            found[WRITER] = _STOPPED
    return found


def _delta(directory: Path) -> Mapping[str, str]:
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 -- peers may be absent
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 -- as above

    place, rows = str(directory), _ROWS.drop_columns("s")
    write_deltalake(place, rows)
    reader, writer = DeltaTable(place), DeltaTable(place)
    # Its only way to drop a column is to write the table anew.
    write_deltalake(place, rows.drop_columns("v"), mode="overwrite", schema_mode="overwrite")
    found = {READER: _kept(pa.table(reader.to_pyarrow_table())), CHANGES: "no"}
    try:
        write_deltalake(writer, rows, mode="append")
        found[WRITER] = _fate(pa.table(DeltaTable(place).to_pyarrow_table()))
    except DeltaError:
        found[WRITER] = _STOPPED
    return found


def _iceberg(directory: Path) -> Mapping[str, str]:
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 -- peers may be absent
    from pyiceberg.types import LongType  # noqa: PLC0415 -- as above

    directory.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{directory}/catalog.db", warehouse=directory.as_uri())
    catalog.create_namespace("bench")
    catalog.create_table("bench.t", _ROWS.schema).append(_ROWS)
    reader, writer = catalog.load_table("bench.t"), catalog.load_table("bench.t")
    files = sorted(directory.rglob("*.parquet"))
    with catalog.load_table("bench.t").update_schema() as change:
        change.rename_column("s.x", "z").delete_column("s.y").delete_column("v")
        change.update_column("n", LongType())
    changes = "yes" if sorted(directory.rglob("*.parquet")) == files else "rewrites files"
    writer.append(_ROWS)
    return {
        READER: _kept(reader.scan().to_arrow()),
        WRITER: _fate(catalog.load_table("bench.t").scan().to_arrow()),
        CHANGES: changes,
    }


def _fate(table: pa.Table) -> str:
    """Say what became of the values that a writer brought."""
    return "accepted, values kept" if "v" in table.column_names else "accepted, values lost"


def _ducklake(directory: Path) -> Mapping[str, str]:
    with Lake(directory) as lake:
        lake.ask("create table lake.t (id bigint, v bigint, n int, s struct(x int, y int))")
        rows = "select i, i + 5, i, {'x': i, 'y': i} from range(100) r(i)"
        lake.ask(f"insert into lake.t {rows}")
        files = sorted(lake.files.rglob("*.parquet"))
        lake.ask("prepare reading as select v from lake.t")
        lake.ask("begin")
        lake.ask(f"insert into lake.t {rows}")
        for change in (
            "rename s.x to z",
            "alter s type struct(z bigint, y int)",
            "drop column s.y",
            "alter n type bigint",
            "drop column v",
        ):
            lake.ask(f"alter table lake.t {change}", user=1)
        found = {}
        try:
            lake.ask("commit")
            found[WRITER] = "accepted, values lost"
        except DuckLakeError:
            found[WRITER] = _STOPPED
        try:
            lake.ask("execute reading")
            found[READER] = "reads its old snapshot"
        except DuckLakeError:
            found[READER] = _STOPPED
        (count,) = lake.ask("select count(s.z) from lake.t")[0]
        assert count == 100, count  # noqa: PLR2004 -- as many as were committed
        left = [file for file in files if file.exists()]
        found[CHANGES] = "yes" if left == files else "rewrites files"
    return found


_ENGINES: Final[Mapping[str, tuple[Callable[[], Any], Callable[[Path], Mapping[str, str]]]]] = {
    "instar": (lambda: True, _instar),
    "delta-rs": (lambda: find_spec("deltalake"), _delta),
    "pyiceberg": (lambda: find_spec("pyiceberg"), _iceberg),
    "DuckLake": (find_ducklake, _ducklake),
}
