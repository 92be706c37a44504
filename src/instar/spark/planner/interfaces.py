"""The interfaces and classes of Spark's that a planned scan is made of, and which of them a session has.

They are found by looking, never by a version: a Spark that lacks one, or that has a method that is not known
here, does without the feature that needs it.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError

from instar.spark.native.relation import READ_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from instar.spark.native.gateway import Gateway

__all__ = ["Feature", "Interfaces", "interfaces_of"]

_SQL: Final = "org.apache.spark.sql"
_READ: Final = f"{_SQL}.connector.read"
_INTERNAL: Final = f"{_SQL}.internal.connector"
_FILES: Final = f"{_SQL}.execution.datasources"
_PARQUET_SCAN: Final = 12
"""How many arguments Spark's scan of Parquet takes."""
_LARGEST_CACHE: Final = 1 << 60
_LOOKUP: Final = {"recursiveFileLookup": "true", "ignoredPathSegmentRegex": "^[._]"}
_OBJECT: Final = frozenset(["equals", "hashCode", "toString"])


class Feature(Enum):
    """What the planner may do with a table; each by the interfaces that it takes."""

    SCAN = "scans"
    JOINS = "pruning by joins"
    ANSWERS = "answers from metadata"
    LIMITS = "limits"

    @property
    def interfaces(self) -> tuple[str, ...]:
        """The names of the interfaces."""
        return _INTERFACES[self]


_INTERFACES: Final[Mapping[Feature, tuple[str, ...]]] = {
    Feature.SCAN: (
        f"{_SQL}.connector.catalog.SupportsRead",
        f"{_READ}.SupportsPushDownRequiredColumns",
        f"{_INTERNAL}.SupportsPushDownCatalystFilters",
        f"{_READ}.SupportsReportStatistics",
        f"{_READ}.Batch",
        f"{_READ}.Statistics",
    ),
    Feature.JOINS: (f"{_INTERNAL}.SupportsRuntimeCatalystFiltering",),
    Feature.ANSWERS: (f"{_READ}.SupportsPushDownAggregates", f"{_READ}.LocalScan"),
    Feature.LIMITS: (f"{_READ}.SupportsPushDownLimit", f"{_READ}.SupportsPushDownTopN"),
}


class Interfaces:
    """Spark's classes, as one session has them."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        jvm = gateway.jvm
        self._class = jvm.java.lang.Class
        self._loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        self._show = jvm.scala.runtime.ScalaRunTime.stringOf
        self._missing: dict[Feature, str | None] = {}

    def why_not(self, feature: Feature, proxies: Iterable[type]) -> str | None:
        """Say why this Spark does not have a feature that these classes implement; None if it does."""
        if feature not in self._missing:
            self._missing[feature] = self._look(feature, list(proxies))
        return self._missing[feature]

    def _look(self, feature: Feature, proxies: Sequence[type]) -> str | None:
        for name in feature.interfaces:
            methods = self._methods(name)
            if methods is None:
                return f"it has no {name}"
            known = max((methods & set(dir(proxy)) for proxy in proxies), key=len, default=set())
            unknown = methods - known - _OBJECT
            if unknown:
                return f"its {name} has {', '.join(sorted(unknown))}, which is not known here"
        return self._parts_missing() if feature is Feature.SCAN else None

    def _methods(self, interface: str) -> set[str] | None:
        """Return the names of the methods of an interface; None if there is no such interface."""
        found = self.find_class(interface)
        if found is None:
            return None
        texts = str(self._show(found.getMethods())).removeprefix("Array(").split(", ")
        return {text.partition("(")[0].rpartition(".")[2] for text in texts if " static " not in text}

    def _parts_missing(self) -> str | None:
        for name in ("InMemoryFileIndex", "SharedInMemoryCache", "v2.DataSourceV2Relation", "PartitionSpec"):
            if self.find_class(f"{_FILES}.{name}") is None:
                return f"it has no {_FILES}.{name}"
        scan = self.find_class(f"{_FILES}.v2.parquet.ParquetScan")
        if scan is None or scan.getConstructors()[0].getParameterCount() != _PARQUET_SCAN:
            return f"its {_FILES}.v2.parquet.ParquetScan is another one"
        return None

    def find_class(self, name: str) -> Any | None:  # noqa: ANN401 -- a Java class
        """Return a class by its name, if there is one."""
        try:
            return self._class.forName(name, False, self._loader)  # noqa: FBT003 -- not to be initialised
        except Py4JError:
            return None

    def module(self, name: str) -> Any:  # noqa: ANN401 -- a Scala object
        """Return a Scala object, also one without static methods."""
        cls = self._class.forName(f"{name}$", True, self._loader)  # noqa: FBT003
        return cls.getField("MODULE$").get(None)

    def array(self, of: Any, items: Sequence[Any] = ()) -> Any:  # noqa: ANN401 -- Java objects
        """Return a Java array."""
        made = self.gateway.new_array(of, len(items))
        for at, item in enumerate(items):
            made[at] = item
        return made

    @cached_property
    def new_cache(self) -> Any:  # noqa: ANN401 -- a Java object
        """Listings that are handed to Spark, by a cache that no setting of a session turns off."""
        return self.gateway.jvm.org.apache.spark.sql.execution.datasources.SharedInMemoryCache(
            _LARGEST_CACHE, -1
        ).createForNewClient

    @cached_property
    def datasources(self) -> Any:  # noqa: ANN401 -- a Java package
        """The package of file sources."""
        return self.gateway.jvm.org.apache.spark.sql.execution.datasources

    @cached_property
    def no_items(self) -> Any:  # noqa: ANN401 -- a Scala sequence
        """A sequence of nothing."""
        return self.gateway.seq([])

    @cached_property
    def read_options(self) -> tuple[Any, Any]:
        """How files are read, as a Scala map and as options of a scan."""
        options = self.gateway.jvm.java.util.HashMap()
        for name, value in READ_OPTIONS.items():
            options.put(name, value)
        return self.gateway.options(READ_OPTIONS), self.option_map(options)

    @cached_property
    def lookup(self) -> Any:  # noqa: ANN401 -- a Scala map
        """How an index takes files; with a pattern that is not its usual one, it would ignore them."""
        return self.gateway.options(_LOOKUP)

    @cached_property
    def file_index(self) -> Any:  # noqa: ANN401 -- a Java class
        """The index over files that are known."""
        return self.datasources.InMemoryFileIndex

    @cached_property
    def parquet_scan(self) -> Any:  # noqa: ANN401 -- a Java class
        """The scan of Parquet."""
        return self.datasources.v2.parquet.ParquetScan

    @cached_property
    def parquet_utils(self) -> Any:  # noqa: ANN401 -- a Java class
        """What Spark knows of reading Parquet."""
        return self.datasources.parquet.ParquetUtils

    @cached_property
    def codegen(self) -> Any:  # noqa: ANN401 -- a Java class
        """Whether Spark compiles a plan."""
        return self.gateway.jvm.org.apache.spark.sql.execution.WholeStageCodegenExec

    @cached_property
    def relation(self) -> Any:  # noqa: ANN401 -- a Java class
        """A table in a plan."""
        return self.datasources.v2.DataSourceV2Relation

    @cached_property
    def dataset(self) -> Any:  # noqa: ANN401 -- a Java class
        """What a plan becomes."""
        return self.gateway.jvm.org.apache.spark.sql.classic.Dataset

    @cached_property
    def strategy(self) -> Any:  # noqa: ANN401 -- a Scala object
        """Translates filters for the reader of files."""
        return self.module(f"{_FILES}.DataSourceStrategy")

    @cached_property
    def no_partitions(self) -> Any:  # noqa: ANN401 -- a Java object
        """Says that there are no partition columns."""
        empty = self.gateway.schema('{"type": "struct", "fields": []}')
        return self.gateway.jvm.scala.Some(self.datasources.PartitionSpec(empty, self.gateway.seq([])))

    @cached_property
    def empty_schema(self) -> Any:  # noqa: ANN401 -- a Java object
        """A schema without columns."""
        return self.gateway.schema('{"type": "struct", "fields": []}')

    @cached_property
    def filter(self) -> Any:  # noqa: ANN401 -- a Java class
        """A filter for the reader of files."""
        return self.gateway.jvm.org.apache.spark.sql.sources.Filter

    @cached_property
    def no_variants(self) -> Any:  # noqa: ANN401 -- a Java array
        """Members of variants to read: none."""
        return self.array(self.gateway.jvm.org.apache.spark.sql.connector.read.VariantExtraction)

    @cached_property
    def option_map(self) -> Any:  # noqa: ANN401 -- a Java class
        """Options whose names are alike in any case."""
        return self.gateway.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap

    @cached_property
    def conf(self) -> Any:  # noqa: ANN401 -- a Java class
        """The settings of the query that is being planned."""
        return self.gateway.jvm.org.apache.spark.sql.internal.SQLConf

    @cached_property
    def optional_long(self) -> Any:  # noqa: ANN401 -- a Java class
        """A number or nothing."""
        return self.gateway.jvm.java.util.OptionalLong

    @cached_property
    def expressions(self) -> Any:  # noqa: ANN401 -- a Java package
        """The package of expressions."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def row(self) -> Any:  # noqa: ANN401 -- a Java class
        """A row as Spark holds it."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst.InternalRow

    @cached_property
    def ansi(self) -> Any:  # noqa: ANN401 -- a Scala value
        """The mode of casts that fail rather than give null."""
        return self.module(f"{_SQL}.catalyst.expressions.EvalMode").ANSI()

    @cached_property
    def attribute(self) -> Any:  # noqa: ANN401 -- a Java class
        """A column in an expression."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.AttributeReference

    @cached_property
    def member(self) -> Any:  # noqa: ANN401 -- a Java class
        """A member of a struct in an expression."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.GetStructField

    @cached_property
    def thread(self) -> Any:  # noqa: ANN401 -- a Java class
        """Threads of the JVM."""
        return self.gateway.jvm.java.lang.Thread

    @cached_property
    def readable(self) -> Any:  # noqa: ANN401 -- a Java object
        """What a table can do: be read."""
        capability = self.gateway.jvm.org.apache.spark.sql.connector.catalog.TableCapability
        return self.gateway.jvm.java.util.EnumSet.of(capability.BATCH_READ)

    @cached_property
    def catalog_util(self) -> Any:  # noqa: ANN401 -- a Scala object
        """Turns schemas into columns."""
        return self.module(f"{_SQL}.connector.catalog.CatalogV2Util")

    @cached_property
    def columnar(self) -> tuple[Any, Any]:
        """What a scan says that gives rows, and one that gives batches of columns."""
        modes = getattr(self.gateway.jvm.org.apache.spark.sql.connector.read, "Scan$ColumnarSupportMode")
        return modes.UNSUPPORTED, modes.SUPPORTED

    @cached_property
    def connector(self) -> Any:  # noqa: ANN401 -- a Java package
        """The package of Spark's interfaces."""
        return self.gateway.jvm.org.apache.spark.sql.connector

    def references(self, names: Sequence[str]) -> Any:  # noqa: ANN401 -- a Java array
        """Return columns by their names, all in a few calls: as a bucketed table would name them."""
        if not names:
            return self.nothing["references"]
        seq = self.gateway.seq
        spec = self.gateway.jvm.org.apache.spark.sql.catalyst.catalog.BucketSpec(1, seq(names), seq([]))
        helper = self.gateway.jvm.org.apache.spark.sql.connector.catalog.CatalogV2Implicits.BucketSpecHelper
        return helper(spec).asTransform().references()

    @cached_property
    def in_set(self) -> Any:  # noqa: ANN401 -- a Java class
        """A test whether a value is one of many."""
        return self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.InSet

    @cached_property
    def wrap_array(self) -> Any:  # noqa: ANN401 -- a Java method
        """Make a Scala sequence of an array."""
        return self.gateway.jvm.scala.Predef.genericWrapArray

    @cached_property
    def nothing(self) -> Mapping[str, Any]:
        """Empty arrays, by what they would hold."""
        connector = self.connector
        return {
            "transforms": self.array(connector.expressions.Transform),
            "constraints": self.array(connector.catalog.constraints.Constraint),
            "metrics": self.array(connector.metric.CustomMetric),
            "task metrics": self.array(connector.metric.CustomTaskMetric),
            "predicates": self.array(connector.expressions.filter.Predicate),
            "references": self.array(connector.expressions.NamedReference),
        }


_interfaces: WeakKeyDictionary[Gateway, Interfaces] = WeakKeyDictionary()


def interfaces_of(gateway: Gateway) -> Interfaces:
    """Return the classes of a session, looked up once."""
    found = _interfaces.get(gateway)
    if found is None:
        found = _interfaces[gateway] = Interfaces(gateway)
    return found
