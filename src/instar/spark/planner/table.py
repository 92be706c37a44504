"""`PlannedTable`: a table in one state, as Spark's `Table`, and the frame over it.

`planned_table(spark, source, columns, label)` gives the table of a `SnapshotSource` of whole parts, whose
`newScanBuilder` a table of a catalog can return from its own. `columns` decides under which names Spark
knows the columns: `physical_columns` are called `f<id>`, as relations over files are, and `named_columns` as
people call them. `is_planned` says whether a session wants this, and whether the source can be read so.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from instar.errors import UsageError
from instar.schema import Schema, spark_json
from instar.spark.native.filters import Filters
from instar.spark.native.gateway import gateway_of
from instar.spark.native.names import column_name
from instar.spark.native.relation import physical_json
from instar.spark.native.relay import install, relayed
from instar.spark.planner.answers import AnswerScan
from instar.spark.planner.builder import ScanBuilder
from instar.spark.planner.columns import Columns
from instar.spark.planner.guards import fall_back, why_unsafe
from instar.spark.planner.interfaces import Feature, interfaces_of
from instar.spark.planner.objects import PlannerObject
from instar.spark.planner.renaming import renamed
from instar.spark.planner.scan import PartBatch, PartScan, PartStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from instar.schema import Field
    from instar.spark.native.file_index import TableOrigin
    from instar.spark.native.gateway import Gateway
    from instar.spark.native.scan_source import SnapshotSource
    from instar.spark.planner.interfaces import Interfaces
    from instar.table.log.part_set import PartSet

__all__ = [
    "PlannedTable",
    "is_planned",
    "named_columns",
    "physical_columns",
    "planned_frame",
    "planned_table",
    "why_not_planned",
]

_SETTING: Final = "instar.planner"
_AUTO: Final = "auto"
_FILES: Final = "files"
_ATTRIBUTE: Final = re.compile(r"\b(\w+)#\d+L?\b")


def physical_columns(fields: Sequence[Field], widened: frozenset[int]) -> Columns:
    """Return columns that are called as in files; on `widened` ones Spark pushes no filters into these."""
    stored = [physical_json(field, column_name(field.id, widened)) for field in fields]
    return Columns(stored, stored)


def named_columns(fields: Sequence[Field], widened: frozenset[int]) -> Columns:
    """Return columns that are called as their fields are."""
    shown = spark_json(Schema(tuple(fields)))["fields"]
    return Columns(shown, physical_columns(fields, widened).stored)


class PlannedTable(PlannerObject):
    """Parts that are read as they are: none of them adopted, and no row of them retracted."""

    def __init__(self, gateway: Gateway, source: SnapshotSource, columns: Columns, label: str) -> None:
        super().__init__(Feature.SCAN.interfaces[:1])
        self.gateway = gateway
        self.source = source
        self.whole = columns
        self.label = label
        self.interfaces: Interfaces = interfaces_of(gateway)
        self._schema = gateway.schema(columns.shown_json)
        self.stored_schema = self._schema if columns.is_physical else gateway.schema(columns.stored_json)
        """The columns as files have them."""
        self._width = self._schema.defaultSize()
        self._references: dict[tuple[str, ...], Any] = {}

    @property
    def identity(self) -> str:
        """The table in its state, and the columns."""
        return f"{self.source.identity} {self.whole.shown_json}"

    def filters(self, sequence: Any) -> Filters:  # noqa: ANN401 -- a Scala sequence
        """Return filters on columns as files have them."""
        return Filters(self.gateway, renamed(self.interfaces, self.whole, sequence))

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields by the names that Spark knows them under."""
        known = self.source.fields_by_id
        return {
            shown["name"]: known[stored["metadata"]["parquet.field.id"]]
            for shown, stored in zip(self.whole.shown, self.whole.stored, strict=True)
        }

    def told(self, text: str) -> str:
        """Return an expression as Spark prints it with the names that people know."""
        columns = self.origin().columns
        return _ATTRIBUTE.sub(lambda found: columns.get(found[1], found[1]), text)

    def implemented(self, feature: Feature) -> tuple[str, ...]:
        """Return the interfaces of a feature, if this Spark has them."""
        return feature.interfaces if why_not_planned(self.gateway, feature) is None else ()

    def references(self, columns: Columns) -> Any:  # noqa: ANN401 -- a Java array
        """Return those of some columns that may have bounds, as Spark refers to them."""
        names = tuple(own["name"] for own in columns.shown if isinstance(own["type"], str))
        if names not in self._references:
            self._references[names] = self.interfaces.references(names)
        return self._references[names]

    def origin(self) -> TableOrigin:
        """Return the table by the names that others know, with its columns as Spark knows them."""
        own = self.source.origin()
        names = zip(self.whole.shown, self.whole.stored, strict=True)
        return own._replace(columns={shown["name"]: own.columns[stored["name"]] for shown, stored in names})

    def estimate(self, parts: PartSet, schema: Any) -> int:  # noqa: ANN401 -- Spark's schema
        """Estimate how many bytes parts have of some columns."""
        return int(parts.bytes * schema.defaultSize() / max(self._width, 1))

    # Spark's interface.

    def name(self) -> str:
        """Return what plans call it."""
        return self.label

    def id(self) -> None:
        """Say that there is no other name."""

    def schema(self) -> Any:  # noqa: ANN401
        """Return the columns."""
        return self._schema

    @relayed
    def columns(self) -> Any:  # noqa: ANN401
        """Return the columns, one by one."""
        return self.interfaces.catalog_util.structTypeToV2Columns(self._schema, False)  # noqa: FBT003

    def partitioning(self) -> Any:  # noqa: ANN401
        """Say that there are no partition columns."""
        return self.interfaces.nothing["transforms"]

    @relayed
    def properties(self) -> Any:  # noqa: ANN401
        """Return no properties."""
        return self.gateway.jvm.java.util.HashMap()

    def capabilities(self) -> Any:  # noqa: ANN401
        """Say that it can be read."""
        return self.interfaces.readable

    def constraints(self) -> Any:  # noqa: ANN401
        """Return no constraints."""
        return self.interfaces.nothing["constraints"]

    def version(self) -> None:
        """Say that the state is no matter of Spark's."""

    @relayed
    def newScanBuilder(self, _: Any) -> ScanBuilder:  # noqa: ANN401, N802
        """Return what Spark tells filters and columns to."""
        return ScanBuilder(self)


def why_not_planned(gateway: Gateway, feature: Feature = Feature.SCAN) -> str | None:
    """Say why this session has no planned scans, or no feature of them; None if it has."""
    proxies = (PlannedTable, ScanBuilder, PartScan, PartBatch, PartStatistics, AnswerScan)
    return interfaces_of(gateway).why_not(feature, proxies)


def is_planned(spark: SparkSession, source: SnapshotSource) -> bool:
    """Whether scans of a source are planned in this session: if it is asked for, and they can be."""
    gateway = gateway_of(spark)
    asked = gateway.settings([_SETTING]).get(_SETTING, _FILES)
    if asked not in (_AUTO, _FILES):
        raise UsageError(f"the Spark setting {_SETTING} cannot be {asked!r}: it is {_AUTO!r} or {_FILES!r}")
    if asked == _FILES or source.layouts():
        return False
    why = why_not_planned(gateway) or why_unsafe(interfaces_of(gateway))
    if why is not None:
        fall_back(interfaces_of(gateway), why)
    return why is None


def planned_table(spark: SparkSession, source: SnapshotSource, columns: Columns, label: str) -> PlannedTable:
    """Return the table of a source, to be given to Spark."""
    install()
    return PlannedTable(gateway_of(spark), source, columns, label)


def planned_frame(spark: SparkSession, table: PlannedTable) -> DataFrame:
    """Return a frame over the columns of a table."""
    gateway, interfaces = table.gateway, table.interfaces
    none = gateway.none()
    relation = interfaces.relation.create(table, none, none, interfaces.option_map.empty(), none)
    return DataFrame(interfaces.dataset.ofRows(gateway.session, relation), spark)
