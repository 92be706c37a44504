"""`CatalogTable`: a table, as Spark's commands see it; what they write, delete and describe goes through it.

Queries do not: `relations.py` gives them the plan of a snapshot.
"""

# ruff: noqa: N802, N815, ANN401 -- the names of Spark's interfaces, and Java objects

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from instar.errors import UsageError
from instar.spark.catalog.predicates import EVERYTHING, find_condition
from instar.spark.catalog.properties import schema_text, table_properties
from instar.spark.catalog.proxies import JavaProxy, answering

if TYPE_CHECKING:
    from collections.abc import Mapping

    from instar.spark.catalog.contract import StoredTable, WritableTable
    from instar.spark.native.gateway import Gateway

__all__ = ["CatalogTable", "TableInsert", "TableRead", "TableWrite", "TableWriter", "WrittenTable"]

_SQL = "org.apache.spark.sql"
_CONNECTOR = f"{_SQL}.connector"


class _Measured(JavaProxy):
    """Something that Spark asks for metrics, of which it has none."""

    def __init__(self, gateway: Gateway, table: WritableTable) -> None:
        self._gateway = gateway
        self._table = table

    def supportedCustomMetrics(self) -> Any:
        """Return the metrics of executors."""
        return self._gateway.array(self._gateway.jvm.org.apache.spark.sql.connector.metric.CustomMetric, ())

    def reportDriverMetrics(self) -> Any:
        """Return the metrics of the driver."""
        return self._gateway.array(
            self._gateway.jvm.org.apache.spark.sql.connector.metric.CustomTaskMetric, ()
        )


class WrittenTable(_Measured, ABC):
    """A table that rows can be written to."""

    @answering
    def schema(self) -> Any:
        """Return the columns as a Spark schema."""
        return self._schema()

    @answering
    def columns(self) -> Any:
        """Return the columns."""
        util = self._gateway.jvm.org.apache.spark.sql.connector.catalog.CatalogV2Util
        keep_ids = getattr(util, "structTypeToV2Columns$default$2")()
        return util.structTypeToV2Columns(self._schema(), keep_ids)

    @answering
    def properties(self) -> Any:
        """Return what is said of the table beside its columns."""
        return self._gateway.java_map(self._properties())

    @answering
    def partitioning(self) -> Any:
        """Return nothing: there are no partitions."""
        return self._gateway.array(self._gateway.jvm.org.apache.spark.sql.connector.expressions.Transform, ())

    @answering
    def constraints(self) -> Any:
        """Return nothing: there are no constraints."""
        return self._gateway.array(
            self._gateway.jvm.org.apache.spark.sql.connector.catalog.constraints.Constraint, ()
        )

    @answering
    def capabilities(self) -> Any:
        """Say what commands can do with it."""
        known = self._gateway.jvm.org.apache.spark.sql.connector.catalog.TableCapability
        return self._gateway.jvm.java.util.EnumSet.of(
            known.BATCH_READ, known.V1_BATCH_WRITE, known.TRUNCATE, known.OVERWRITE_BY_FILTER
        )

    @answering
    def newWriteBuilder(self, _info: Any) -> Any:
        """Begin to write rows."""
        return TableWriter(self._gateway, self._table)

    def name(self) -> str:
        """Return the name."""
        return self._table.name

    toString = name

    @abstractmethod
    def _schema(self) -> Any:
        """Return the columns as a Spark schema."""

    @abstractmethod
    def _properties(self) -> Mapping[str, str]:
        """Return what is said of the table beside its columns."""


class CatalogTable(WrittenTable):
    """A table to describe, to write to and to delete from."""

    interfaces = (
        f"{_CONNECTOR}.catalog.SupportsRead",
        f"{_CONNECTOR}.catalog.SupportsWrite",
        f"{_CONNECTOR}.catalog.SupportsDeleteV2",
    )
    _table: StoredTable

    def __init__(self, gateway: Gateway, table: StoredTable, location: str) -> None:
        super().__init__(gateway, table)
        self._state = table.state
        self._location = location

    def id(self) -> str:
        """Return what tells it from another table that has its name later."""
        return self._state.table_id

    def version(self) -> str:
        """Return the version that was loaded."""
        return str(self._state.seqno)

    @answering
    def newScanBuilder(self, _options: Any) -> Any:
        """Return what says of a table that a command changes how large it is: nothing."""
        return TableRead(self._gateway, self._table)

    @answering
    def canDeleteWhere(self, predicates: Any) -> bool:
        """Whether the rows can be found by these predicates."""
        return find_condition(self._gateway, predicates) is not None

    @answering
    def deleteWhere(self, predicates: Any, _options: Any = None) -> None:
        """Delete the rows that all predicates are true for."""
        condition = find_condition(self._gateway, predicates)
        if condition is None:
            raise _cannot_say(self._table.name)
        if condition == EVERYTHING:
            self._table.delete(EVERYTHING)
        else:
            self._table.delete(condition, self._gateway.spark)

    @answering
    def truncateTable(self, _options: Any = None) -> bool:
        """Delete all rows."""
        self._table.delete(EVERYTHING)
        return True

    def _schema(self) -> Any:
        return self._gateway.schema(schema_text(self._state))

    def _properties(self) -> Mapping[str, str]:
        return table_properties(self._state, self._location)


class TableRead(_Measured):
    """A scan that never runs: Spark asks for one of a table that it deletes from."""

    interfaces = (f"{_CONNECTOR}.read.ScanBuilder", f"{_CONNECTOR}.read.Scan")
    _table: StoredTable

    def build(self) -> Any:
        """Return the scan."""
        return self

    @answering
    def readSchema(self) -> Any:
        """Return the columns."""
        return self._gateway.schema(schema_text(self._table.state))

    def description(self) -> str:
        """Name the table."""
        return self._table.name

    @answering
    def columnarSupportMode(self) -> Any:
        """Say that this does not matter."""
        scan = self._gateway.jvm.java.lang.Class.forName(f"{_CONNECTOR}.read.Scan$ColumnarSupportMode")
        return scan.getEnumConstants()[0]

    @answering
    def toBatch(self) -> Any:
        """Refuse to be read: a command of Spark's would need rows of its own sort."""
        raise _cannot_say(self._table.name)

    toMicroBatchStream = toContinuousStream = toBatch


class TableWriter(_Measured):
    """Rows on their way into a table, and which rows go for them."""

    interfaces = (f"{_CONNECTOR}.write.SupportsOverwriteV2",)

    def __init__(self, gateway: Gateway, table: WritableTable) -> None:
        super().__init__(gateway, table)
        self._overwrites = False
        self._where: str | None = None

    @answering
    def build(self) -> Any:
        """Return the write."""
        return TableWrite(self._gateway, self._table, overwrites=self._overwrites, where=self._where)

    def truncate(self) -> Any:
        """Let all rows go."""
        self._overwrites = True
        return self

    @answering
    def canOverwrite(self, predicates: Any) -> bool:
        """Whether the rows that go can be found by these predicates."""
        return find_condition(self._gateway, predicates) is not None

    @answering
    def overwrite(self, predicates: Any) -> Any:
        """Let the rows go that all predicates are true for."""
        self._where = find_condition(self._gateway, predicates)
        if self._where is None:
            raise _cannot_say(self._table.name)
        self._overwrites = True
        return self

    @answering
    def buildForBatch(self) -> Any:
        """Refuse: rows are handed over as a frame."""
        raise UsageError(
            f"`{self._table.name}` is written as a frame: append to it with store.table(…).append"
        )

    buildForStreaming = buildForBatch


class TableWrite(_Measured):
    """A write that takes a whole frame."""

    interfaces = (f"{_CONNECTOR}.write.V1Write",)

    def __init__(
        self, gateway: Gateway, table: WritableTable, *, overwrites: bool, where: str | None
    ) -> None:
        super().__init__(gateway, table)
        self._overwrites = overwrites
        self._where = where

    def description(self) -> str:
        """Name the table."""
        return f"instar write to {self._table.name}"

    @answering
    def toInsertableRelation(self) -> Any:
        """Return what takes the frame."""
        return TableInsert(self._gateway, self._table, overwrites=self._overwrites, where=self._where)

    @answering
    def toBatch(self) -> Any:
        """Refuse, as the builder does."""
        raise UsageError(
            f"`{self._table.name}` is not a sink of streams in SQL: use writeStream.format('instar')"
        )

    toStreaming = toBatch


class TableInsert(JavaProxy):
    """Takes the frame of an `INSERT` and writes it as anybody does."""

    interfaces = (f"{_SQL}.sources.InsertableRelation",)

    def __init__(
        self, gateway: Gateway, table: WritableTable, *, overwrites: bool, where: str | None
    ) -> None:
        self._gateway = gateway
        self._table = table
        self._overwrites = overwrites
        self._where = where

    @answering
    def insert(self, data: Any, _overwrite: bool) -> None:  # noqa: FBT001 -- Spark's own argument
        """Write the rows in one commit."""
        frame = DataFrame(data, self._gateway.spark)
        if self._overwrites:
            self._table.overwrite(frame, self._where)
        else:
            self._table.append(frame)


def _cannot_say(name: str) -> UsageError:
    return UsageError(
        f"Spark cannot pass this condition on `{name}` to instar: give the statement to store.sql(spark, …)"
    )
