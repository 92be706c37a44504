"""The peers in the league: the same rows in the same files, asked in the words that each has."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from bench.ducklake import Lake
from bench.skipping.contenders import Found, NotExpressibleError
from bench.skipping.filters import league_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl
    from pyiceberg.table import Table as IcebergTable

    from bench.skipping.contenders import Field
    from bench.skipping.filters import Filter

__all__ = ["DeltaRs", "DuckDb", "DuckLake", "PolarsOnDelta", "PolarsOnIceberg", "PyIceberg", "write_parquet"]

_NOW = re.compile(r"now\(\) - interval \d+ hours")
_INTERVAL = re.compile(r"interval (\d+ hours)")


def write_parquet(directory: Path) -> Path:
    """Write the league's rows as plain files, one a part."""
    directory.mkdir(parents=True)
    for number, rows in enumerate(league_rows()):
        pq.write_table(rows, directory / f"{number:04d}.parquet")
    return directory


class DeltaRs:
    """delta-rs, with the query engine that it carries."""

    name: ClassVar = "delta-rs"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        from deltalake import DeltaTable, Schema, write_deltalake  # noqa: PLC0415 -- peers may be absent

        self.data = field.directory / "delta"
        for number, rows in enumerate(league_rows()):
            if number == 0:
                DeltaTable.create(str(self.data), Schema.from_arrow(rows.schema))
                self._table = DeltaTable(str(self.data))
            write_deltalake(self._table, rows, mode="append")

    def find(self, condition: Filter) -> Found:
        """Ask in the dialect of DataFusion."""
        from deltalake import QueryBuilder  # noqa: PLC0415

        sql = condition.sql.replace("st.x", "st['x']").replace("year(ts)", "date_part('year', ts)")
        sql = _INTERVAL.sub(r"interval '\1'", sql)
        query = QueryBuilder().register("league", self._table)
        rows = pa.table(query.execute(f"select id from league where {sql}").read_all())
        return Found(set(rows.column("id").to_pylist()))


class PyIceberg:
    """pyiceberg, whose filters compare a column with a literal."""

    name: ClassVar = "pyiceberg"
    nan_is_greatest: ClassVar = False
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        self.data = field.parquet
        self._table = _iceberg_table(field)

    def find(self, condition: Filter) -> Found:
        """Ask with literals in the place of `now()`, and with dates as its parser has them."""
        from pyparsing import ParseException  # noqa: PLC0415 -- it comes with pyiceberg

        text = _NOW.sub(f"'{_since(condition).isoformat()}'", condition.sql)
        text = re.sub(r"^ts >= timestamp'([0-9-]+)'", r"ts >= '\1T00:00:00+00:00'", text)
        try:
            scan = self._table.scan(row_filter=text, selected_fields=("id",))
        except ParseException as error:
            raise NotExpressibleError from error
        return Found(set(scan.to_arrow().column("id").to_pylist()))


class PolarsOnDelta:
    """Polars, which reads the table of delta-rs."""

    name: ClassVar = "Polars on Delta"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        self.data = field.directory / "delta"

    def find(self, condition: Filter) -> Found:
        """Ask for what Polars can scan lazily."""
        import polars as pl  # noqa: PLC0415 -- peers may be absent

        return Found(_polars_ids(pl.scan_delta(str(self.data)), condition))


class PolarsOnIceberg:
    """Polars, which reads the table of pyiceberg."""

    name: ClassVar = "Polars on Iceberg"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        self.data = field.parquet
        self._table = _iceberg_table(field)

    def find(self, condition: Filter) -> Found:
        """Ask for what Polars can scan lazily."""
        import polars as pl  # noqa: PLC0415 -- peers may be absent

        return Found(_polars_ids(pl.scan_iceberg(self._table), condition))


class DuckDb:
    """DuckDB on the files as they are: it opens all of them, and then reads the row groups that it needs."""

    name: ClassVar = "DuckDB on Parquet"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        import duckdb  # noqa: PLC0415 -- peers may be absent

        self.data = field.parquet
        self._connection = duckdb.connect()
        self._connection.execute("set timezone = 'UTC'")

    def find(self, condition: Filter) -> Found:
        """Ask for the rows, and for the profile of the same query."""
        query = f"select id from read_parquet('{self.data}/*.parquet') where {condition.sql}"
        ids = {id_ for (id_,) in self._connection.execute(query).fetchall()}
        plan = self._connection.execute(f"explain (analyze, format json) {query}").fetchall()[0][1]
        return Found(ids, _row_groups(json.loads(plan)))


class DuckLake:
    """DuckLake, which keeps what it knows of its files in a database."""

    name: ClassVar = "DuckLake"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        self._lake = Lake(field.directory / "ducklake")
        self.data = self._lake.files / "main" / "league"
        files = sorted(field.parquet.iterdir())
        self._lake.ask(f"create table lake.league as from '{files[0]}' limit 0")
        for file in files:
            self._lake.ask(f"insert into lake.league from '{file}'")

    def find(self, condition: Filter) -> Found:
        """Ask for the rows."""
        rows = self._lake.ask(f"select id from lake.league where {condition.sql}")
        return Found({id_ for (id_,) in rows})

    def close(self) -> None:
        """Let go of the process."""
        self._lake.close()


def _row_groups(profile: Mapping[str, Any]) -> int | None:
    """Return how many row groups a query has scanned, as DuckDB tells it."""
    found: int | None = profile.get("query", {}).get("total_row_groups_scanned")
    return found


def _polars_ids(frame: pl.LazyFrame, condition: Filter) -> set[int]:
    import polars as pl  # noqa: PLC0415 -- peers may be absent

    ts = pl.col("ts")
    own = {
        "ts >= timestamp'2025-03-01'": ts >= datetime(2025, 3, 1, tzinfo=UTC),
        "cast(ts as date) = date'2025-01-15'": ts.dt.date() == date(2025, 1, 15),
        "date_trunc('day', ts) = timestamp'2025-01-15'": (
            ts.dt.truncate("1d") == datetime(2025, 1, 15, tzinfo=UTC)
        ),
        "year(ts) = 2025": ts.dt.year() == 2025,  # noqa: PLR2004
        "st.x > 19000": pl.col("st").struct.field("x") > 19_000,  # noqa: PLR2004
    }
    if _NOW.search(condition.sql):
        where = ts >= _since(condition)
    elif condition.sql in own:
        where = own[condition.sql]
    else:
        where = pl.sql_expr(condition.sql)
    found = frame.filter(where).select("id").collect()
    return set(found.get_column("id").to_list())


def _iceberg_table(field: Field) -> IcebergTable:
    """Make the table of the plain files, or open it if another contender has."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 -- peers may be absent

    home = field.directory / "iceberg"
    home.mkdir(exist_ok=True)
    catalog = SqlCatalog("bench", uri=f"sqlite:///{home}/catalog.db", warehouse=home.as_uri())
    if not catalog.table_exists("bench.league"):
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.league", next(iter(league_rows())).schema)
        table.add_files([path.as_uri() for path in sorted(field.parquet.iterdir())])
    return catalog.load_table("bench.league")


def _since(condition: Filter) -> datetime:
    return datetime.fromtimestamp(condition.since / 1e6, UTC)
