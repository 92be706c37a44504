"""instar in the league, in process and on Spark; and Spark without instar, on plain Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from unittest.mock import patch

import instar
from bench.engines import Place
from bench.engines.ours import connect
from bench.skipping.contenders import Found, NotExpressibleError
from bench.skipping.filters import SCHEMA, league_rows
from instar.errors import UsageError
from instar.parts import conform
from instar.table import TableLog, begin_write
from instar.table.write.store import store_parts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from bench.skipping.contenders import Field
    from bench.skipping.filters import Filter
    from instar import Table
    from instar.table.write.store import StoredPart, StoringPlan

__all__ = ["Ours", "OursOnSpark", "PlainSpark"]

_TABLE = "league"


class Ours:
    """A table of instar, read in process."""

    name: ClassVar = "instar"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = False

    def __init__(self, field: Field) -> None:
        location = field.directory / "instar"
        self.table = _make(location)
        self.data = location / "tables" / self.table.state.table_id / "parts"
        assert self.data.is_dir()

    def find(self, condition: Filter) -> Found:
        """Read into Arrow; what is too hard for that is refused."""
        try:
            rows = self.table.snapshot().to_arrow(condition.sql)
        except UsageError as error:
            raise NotExpressibleError from error
        return Found(set(rows.column("id").to_pylist()))

    def explain(self, condition: Filter) -> int:
        """Return how many parts `Table.explain` says that a filter needs."""
        return self.table.explain(condition.sql).read


class OursOnSpark:
    """The same table in a query of Spark."""

    name: ClassVar = "instar on Spark"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = True

    def __init__(self, field: Field) -> None:
        location = field.directory / "instar"
        self._table = instar.open(str(location)).table(_TABLE)
        self._spark = _session(field)
        self.data = location / "tables" / self._table.state.table_id / "parts"

    def find(self, condition: Filter) -> Found:
        """Ask as any query does."""
        return Found(_ids(self._frame(condition)))

    def explain(self, condition: Filter) -> int:
        """Return how many parts `instar.scan_reports` says that a query reads."""
        return sum(report.read for report in instar.scan_reports(self._frame(condition)))

    def _frame(self, condition: Filter) -> DataFrame:
        return self._table.read(self._spark).where(condition.sql)


class PlainSpark:
    """Spark on the files as they are."""

    name: ClassVar = "Spark on Parquet"
    nan_is_greatest: ClassVar = True
    needs_spark: ClassVar = True

    def __init__(self, field: Field) -> None:
        self.data = field.parquet
        self._frame = _session(field).read.parquet(str(field.parquet))

    def find(self, condition: Filter) -> Found:
        """Ask the frame that has listed the files."""
        return Found(_ids(self._frame.where(condition.sql)))


def _make(location: Path) -> Table:
    """Make the table by one append. Its files need not last, and none is opened to check the skipping."""
    table = instar.open(str(location)).create_table(_TABLE, SCHEMA)
    table.configure(skipping_sample=0.0)
    services = connect(Place(str(location)))

    def put(plan: StoringPlan) -> Iterator[StoredPart]:
        for number, rows in enumerate(league_rows()):
            (batch,) = rows.to_batches()
            yield from store_parts(plan, conform(batch, plan.schema), str(number))

    with patch("os.fsync"), begin_write(services, TableLog(services, _TABLE)) as write:
        write.commit(put(write.plan(table.schema)), 0)
    services.close()
    return table


def _session(field: Field) -> SparkSession:
    assert field.spark is not None
    return field.spark


def _ids(frame: DataFrame) -> set[int]:
    return {row.id for row in frame.select("id").collect()}
