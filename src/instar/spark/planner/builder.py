"""`ScanBuilder`: what Spark's optimizer tells a scan before it is built.

Filters, columns, limits and aggregations come in this order. What metadata decides for every row that is left
is not asked of rows again, and a whole aggregation may be answered without a row.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from instar.spark.native.filters import Filters
from instar.spark.native.relay import relayed
from instar.spark.planner.answers import AnswerScan, find_answers
from instar.spark.planner.interfaces import Feature
from instar.spark.planner.objects import PlannerObject
from instar.spark.planner.scan import PartScan
from instar.table.read.answers import Order, first_parts, top_parts
from instar.table.read.audit import Skipping

if TYPE_CHECKING:
    from instar.spark.native.scan_source import Chosen
    from instar.spark.planner.answers import FoundValue
    from instar.spark.planner.table import PlannedTable
    from instar.table.log.part_set import PartSet
    from instar.table.read.audit import Policy

__all__ = ["ScanBuilder"]


class ScanBuilder(PlannerObject):
    """One for each place of a plan that reads a table."""

    def __init__(self, table: PlannedTable) -> None:
        implemented = (table.implemented(Feature.ANSWERS)[:1], table.implemented(Feature.LIMITS))
        super().__init__([*Feature.SCAN.interfaces[1:3], *(name for names in implemented for name in names)])
        self._table = table
        self._columns = table.whole
        self._filters = Filters(table.gateway)
        self._chosen: Chosen | None = None
        self._selected: Chosen | None = None
        self._answers: list[FoundValue] | None = None

    @property
    def identity(self) -> str:
        """No two are equal."""
        return str(self._number)

    @cached_property
    def _policy(self) -> Policy:
        return self._table.source.policy(self._table.source.plan)

    @property
    def _may_answer(self) -> bool:
        """Whether metadata is believed for more than skipping: not while that is off, or checked."""
        return self._policy.mode is Skipping.ON

    @relayed
    def pushFilters(self, filters: Any) -> Any:  # noqa: ANN401, N802 -- Spark's interface, here and below
        """Take note of filters, and return what Spark has to apply to rows: all, unless all are proved."""
        self._filters = self._table.filters(filters)
        source = self._table.source
        if not self._filters or not self._may_answer:
            return filters
        chosen = source.choose(source.plan, self._filters, policy=self._policy)
        if not source.is_certain(source.plan, self._filters, chosen.parts):
            self._selected = chosen
            return filters
        self._chosen = chosen
        return self._table.interfaces.no_items

    def pushedFilters(self) -> Any:  # noqa: ANN401, N802
        """Name no filters: what is left out was never in question."""
        return self._table.interfaces.nothing["predicates"]

    @relayed
    def pruneColumns(self, schema: Any) -> None:  # noqa: ANN401, N802
        """Take note of the columns that are read."""
        self._columns = self._table.whole.narrowed(schema.json())

    @relayed
    def supportCompletePushDown(self, aggregation: Any) -> bool:  # noqa: ANN401, N802
        """Say whether metadata has the whole answer to an aggregation."""
        return self._find(aggregation) is not None

    @relayed
    def pushAggregation(self, aggregation: Any) -> bool:  # noqa: ANN401, N802
        """Take an aggregation over, if metadata has the whole answer."""
        self._answers = self._find(aggregation)
        return self._answers is not None

    def _find(self, aggregation: Any) -> list[FoundValue] | None:  # noqa: ANN401 -- Spark's `Aggregation`
        source = self._table.source
        if not self._may_answer:
            return None
        return find_answers(source.chunks, source.plan, self._parts(), self._table.fields, aggregation)

    def _parts(self) -> PartSet:
        """Return the parts whose rows are all wanted: Spark asks only if it has no filter left."""
        return self._decided().parts

    def _decided(self) -> Chosen:
        if self._chosen is None:
            self._chosen = self._table.source.choose(self._table.source.plan, Filters(self._table.gateway))
        return self._chosen

    @relayed
    def pushLimit(self, rows: int) -> bool:  # noqa: N802
        """Read only as many parts as have so many rows; Spark cuts off the rest."""
        decided = self._decided()
        self._chosen = decided._replace(parts=first_parts(decided.parts, rows))
        return True

    @relayed
    def pushTopN(self, orders: Any, rows: int) -> bool:  # noqa: ANN401, N802
        """Read only parts that may have some of the first rows; Spark sorts, and cuts off the rest."""
        order = orders[0]
        column = order.expression()
        if column.getClass().getSimpleName() != "FieldReference" or len(column.fieldNames()) != 1:
            return False
        field = self._table.fields.get(column.fieldNames()[0])
        source = self._table.source
        if field is None or not self._may_answer:
            return False
        ascending = str(order.direction().toString()) == "ASC"
        nulls_first = str(order.nullOrdering().toString()) == "NULLS FIRST"
        decided = self._decided()
        sort = Order(ascending, nulls_first)
        parts = top_parts(source.chunks, source.plan.state, decided.parts, field, sort, rows)
        self._chosen = decided._replace(parts=parts)
        return True

    def isPartiallyPushed(self) -> bool:  # noqa: N802
        """Say that Spark has to cut off rows itself."""
        return True

    @relayed
    def build(self) -> PartScan | AnswerScan:
        """Return the scan, or the answer."""
        if self._answers is not None:
            return AnswerScan(self._table.interfaces, self._table.label, self._answers)
        return PartScan(self._table, self._columns, self._filters, self._chosen, self._selected)
