"""`ScanBuilder`: what Spark's optimizer tells a scan before it is built: filters and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from instar.spark.native.filters import Filters
from instar.spark.native.relay import relayed
from instar.spark.planner.interfaces import Feature
from instar.spark.planner.objects import PlannerObject
from instar.spark.planner.scan import PartScan

if TYPE_CHECKING:
    from instar.spark.planner.table import PlannedTable

__all__ = ["ScanBuilder"]


class ScanBuilder(PlannerObject):
    """One for each place of a plan that reads a table."""

    def __init__(self, table: PlannedTable) -> None:
        super().__init__(Feature.SCAN.interfaces[1:3])
        self._table = table
        self._columns = table.whole
        self._filters = Filters(table.gateway)

    @property
    def identity(self) -> str:
        """No two are equal."""
        return str(self._number)

    @relayed
    def pushFilters(self, filters: Any) -> Any:  # noqa: ANN401, N802 -- Spark's interface, here and below
        """Take note of filters; Spark applies all of them to rows as well."""
        self._filters = self._table.filters(filters)
        return filters

    def pushedFilters(self) -> Any:  # noqa: ANN401, N802
        """Say that Spark can leave out none of the filters."""
        return self._table.interfaces.nothing["predicates"]

    @relayed
    def pruneColumns(self, schema: Any) -> None:  # noqa: ANN401, N802
        """Take note of the columns that are read."""
        self._columns = self._table.whole.narrowed(schema.json())

    @relayed
    def build(self) -> PartScan:
        """Return the scan."""
        return PartScan(self._table, self._columns, self._filters)
