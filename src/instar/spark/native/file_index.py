"""`PartIndex`: a table's parts as Spark's `FileIndex`, asked anew by every query with its complete filter.

Spark asks an index of Java's (`relations.java`), which asks this one only for files. Where that cannot be
compiled, Spark calls the methods here through Py4J, under the names that its own interface has.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from instar.spark.native.filters import Filters
from instar.spark.native.positions import readers_of
from instar.spark.native.relay import relayed
from instar.spark.native.settings import READ_OPTIONS
from instar.spark.native.taken import ROW_INDEX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from instar.spark.native.adopted import FileLayout
    from instar.spark.native.gateway import Gateway
    from instar.table.read.report import ScanReport

__all__ = ["FileGroup", "FileSource", "Keeper", "Listing", "PartIndex", "TableOrigin", "find_index"]

_numbers = itertools.count(1)
_indexes: WeakValueDictionary[int, PartIndex] = WeakValueDictionary()


class FileGroup(NamedTuple):
    """Files, as (path, size), that share the values of the partition columns.

    The first of these columns may have numbers of each file's own.
    """

    values: tuple[object, ...]
    files: list[tuple[str, int]]
    numbers: Sequence[tuple[int, ...]] = ()


class Listing(NamedTuple):
    """What a query reads; `keeper` lives as long as a plan of Spark's knows the listing."""

    groups: Sequence[FileGroup]
    keeper: Keeper | None = None


class Keeper:
    """Something that a listing needs, such as a lease: its end in the JVM is its end here."""

    def run(self) -> None:
        """Do nothing: the JVM only has to hold it."""

    def toString(self) -> str:  # noqa: N802 -- Java's name
        """Say what this is."""
        return "instar lease"

    class Java:
        """The smallest interface that there is."""

        implements = ("java.lang.Runnable",)


class TableOrigin(NamedTuple):
    """Which table files belong to: its store, its name for lineage, its columns by their names in files."""

    namespace: str
    name: str
    columns: Mapping[str, str]


class FileSource(ABC):
    """Where an index gets its files from."""

    options: Mapping[str, str] = MappingProxyType({})
    """Options of the relation over these files."""

    @abstractmethod
    def files(self, filters: Filters) -> Listing:
        """Return what a query with these filters reads."""

    @abstractmethod
    def size(self) -> int:
        """Return the size of all files, whatever a filter leaves of them."""

    def adopted(self) -> Mapping[FileLayout, FileSource]:
        """Return the adopted files among them by their layouts, which are read by relations of their own."""
        return {}

    def has_own(self) -> bool:
        """Whether there are, or may be, files that are not adopted."""
        return True

    def report(self, filters: Filters) -> ScanReport | None:  # noqa: ARG002 -- for those that have one
        """Report on a scan with these filters, if there is anything to say of it."""
        return None

    def origin(self) -> TableOrigin | None:
        """Return the table that the files belong to, if it is one that others know."""
        return None


class PartIndex:
    """Answers Spark's questions about files from a listing that is made when it asks.

    `label` is what `explain()` shows for the location. The index keeps its source alive, and so its lease.
    """

    def __init__(self, gateway: Gateway, label: str, partition_schema: str, source: FileSource) -> None:
        self._gateway = gateway
        self._label = label
        self._partition_schema = partition_schema
        self._source = source
        self._number = next(_numbers) & 0x7FFF_FFFF
        _indexes[self._number] = self

    def rootPaths(self) -> Any:  # noqa: ANN401, N802 -- Spark's interface, here and below
        """Name the table and its state."""
        return self._gateway.seq([self._gateway.path(self._label)])

    @relayed
    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:  # noqa: ANN401, N802
        """Return the parts that a query with these filters reads."""
        return self._listed(Filters(self._gateway, partition_filters, data_filters))

    @relayed
    def inputFiles(self) -> Any:  # noqa: ANN401, N802
        """Return all paths."""
        groups = self._source.files(Filters(self._gateway)).groups
        return self._gateway.strings([path for group in groups for path, _ in group.files])

    @relayed
    def sizeInBytes(self) -> int:  # noqa: N802
        """Return what a join needs to know before it broadcasts a table."""
        return self._source.size()

    def partitionSchema(self) -> Any:  # noqa: ANN401, N802
        """Return the columns whose values come with a file instead of from it."""
        return self._gateway.schema(self._partition_schema)

    @relayed
    def apply(self, question: str, filters: Any) -> Any:  # noqa: ANN401 -- Scala sequences
        """Answer an index of Java's, which knows the rest: list files, or tell all paths or their size."""
        if question == "size":
            return self._source.size()
        if question == "paths":
            return self.inputFiles()
        return self._listed(Filters.asked(self._gateway, question, filters))

    def relation(self, schema: str) -> Any:  # noqa: ANN401 -- a Java object
        """Return Spark's relation over the files, whose columns are told as JSON."""
        gateway, options = self._gateway, self._source.options
        if gateway.relations is None:
            return gateway.relation(
                self,
                self.partitionSchema(),
                gateway.schema(schema),
                gateway.none(),
                gateway.parquet(),
                gateway.options({**READ_OPTIONS, **options}),
                gateway.session,
            )
        readers = readers_of(gateway) if ROW_INDEX in schema else None
        more = "\0".join(text for option in options.items() for text in option)
        return gateway.relations.relation(
            self, self._number, self._label, self._partition_schema, schema, more, readers and readers.format
        )

    def _listed(self, filters: Filters) -> Any:  # noqa: ANN401 -- a Scala sequence
        groups, keeper = self._source.files(filters)
        return self._gateway.directories.of(groups, keeper)

    def report(self, filters: Filters) -> ScanReport | None:
        """Report on a scan with these filters, if there is anything to say of it."""
        return self._source.report(filters)

    def origin(self) -> TableOrigin | None:
        """Return the table that the files belong to, if it is one that others know."""
        return self._source.origin()

    def refresh(self) -> None:
        """Do nothing: every listing is fresh."""

    def metadataOpsTimeNs(self) -> Any:  # noqa: ANN401, N802
        """Measure nothing."""
        return self._gateway.none()

    def toString(self) -> str:  # noqa: N802
        """Name the table."""
        return self._label

    def hashCode(self) -> int:  # noqa: N802
        """Return the number by which `find_index` knows this one."""
        return self._number

    def equals(self, other: object) -> bool:
        """Whether Spark may reuse the scan of one for the other: only if it is the same."""
        return self is other

    class Java:
        """What Py4J makes of it in the JVM."""

        implements = ("org.apache.spark.sql.execution.datasources.FileIndex", "java.util.function.BiFunction")


def find_index(location: Any) -> PartIndex | None:  # noqa: ANN401 -- a Java object
    """Return the index that Spark knows as a location, if it is one."""
    found = _indexes.get(location.hashCode())
    return found if found is not None and location.toString() == found.toString() else None
