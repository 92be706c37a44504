"""Tables that Spark stages: `CREATE TABLE AS`, `REPLACE TABLE [AS]` and `CREATE OR REPLACE TABLE [AS]`.

Nothing of a staged table is in the store before its one commit, which has its rows, if there are any. So a
statement that fails leaves what there was, and nobody sees a table without its rows, or no table at all.
"""

# ruff: noqa: N802, ANN401 -- the names of Spark's interfaces, and Java objects

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from instar.spark.catalog.proxies import answering
from instar.spark.catalog.tables import WrittenTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from instar.spark.native.gateway import Gateway

__all__ = ["StagedTable"]

_CATALOG: Final = "org.apache.spark.sql.connector.catalog"


class _NewTable:
    """A table that is not there: the first rows that are written to it create it."""

    def __init__(self, name: str, create: Callable[[DataFrame | None], object]) -> None:
        self.name = name
        self.is_created = False
        self._create = create

    def append(self, data: DataFrame | None) -> None:
        """Create the table, with rows if there are any."""
        self._create(data)
        self.is_created = True

    def overwrite(self, data: DataFrame, _where: str | None = None) -> None:
        """Do the same: a table that replaces another has no rows that could stay."""
        self.append(data)


class StagedTable(WrittenTable):
    """A table that is about to be created, perhaps in the place of another."""

    interfaces = (f"{_CATALOG}.StagedTable", f"{_CATALOG}.SupportsWrite")
    _table: _NewTable

    def __init__(
        self,
        gateway: Gateway,
        name: str,
        schema: str,
        properties: Mapping[str, str],
        create: Callable[[DataFrame | None], object],
    ) -> None:
        super().__init__(gateway, _NewTable(name, create))
        self._columns = schema
        self._said = properties

    def version(self) -> None:
        """Return nothing: it is not there."""

    id = version

    @answering
    def commitStagedChanges(self) -> None:
        """Create the table, unless its rows have done so."""
        if not self._table.is_created:
            self._table.append(None)

    def abortStagedChanges(self) -> None:
        """Do nothing: nothing has been done."""

    def _schema(self) -> Any:
        return self._gateway.schema(self._columns)

    def _properties(self) -> Mapping[str, str]:
        return self._said
