"""`StoreCatalog`: a store as a catalog of Spark's. It has one namespace, which has no name.

A name with slashes is one name, in backticks. What a statement does to a table is in `tables.py` and
`changes.py`; here is which table is meant, and whether it is to be read.
"""

# ruff: noqa: N802, N815, ANN401 -- the names of Spark's interfaces, and Java objects

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from instar.errors import TableNotFoundError, UsageError
from instar.schema import as_schema, format_path
from instar.spark.catalog.changes import alter
from instar.spark.catalog.listing import list_identifiers, list_summaries
from instar.spark.catalog.properties import read_definition
from instar.spark.catalog.proxies import JavaProxy, answering
from instar.spark.catalog.relations import Relations
from instar.spark.catalog.staging import StagedTable
from instar.spark.catalog.statements import is_merge
from instar.spark.catalog.tables import CatalogTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from instar.spark.catalog.contract import CatalogStore, StoredTable
    from instar.spark.native.gateway import Gateway

__all__ = ["StoreCatalog"]

_CATALOG: Final = "org.apache.spark.sql.connector.catalog"
_READING: Final = "org.apache.spark.sql.catalyst.analysis.RelationResolution"
"""Who asks for a table that a query reads, or that rows are written to. All others want to know of it."""
_INSERTING: Final = "DataFrameWriter.insertInto"
"""Who takes it for granted that there is a table."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class _Asked(NamedTuple):
    """Which rows of a table Spark wants, and what it is going to do with it."""

    version: str | None = None
    micros: int | None = None
    writes: frozenset[str] = frozenset()


class StoreCatalog(JavaProxy):
    """The tables of a store, for one session."""

    interfaces = (f"{_CATALOG}.StagingTableCatalog", f"{_CATALOG}.SupportsNamespaces")

    def __init__(self, gateway: Gateway, store: CatalogStore, name: str) -> None:
        self.store = store
        self._gateway = gateway
        self._name = name
        self._relations = Relations(gateway)

    def initialize(self, _name: str, _options: Any) -> None:
        """Do nothing: it is made ready before Spark knows it."""

    def name(self) -> str:
        """Return what SQL calls it."""
        return self._name

    @answering
    def defaultNamespace(self) -> Any:
        """Return the one namespace."""
        return self._gateway.strings(())

    @answering
    def capabilities(self) -> Any:
        """Return nothing: no defaults, generated columns or constraints."""
        return self._gateway.jvm.java.util.HashSet()

    tableStateOptionKeys = changelogStateOptionKeys = capabilities

    @answering
    def listTables(self, namespace: Any) -> Any:
        """Return the names of all tables."""
        return list_identifiers(self._gateway, namespace, self._names(namespace))

    @answering
    def listTableSummaries(self, namespace: Any) -> Any:
        """Return the names of all tables, each with its kind."""
        return list_summaries(self._gateway, namespace, self._names(namespace))

    @answering
    def loadTable(self, identifier: Any, *asked: Any) -> Any:
        """Return a table: for a query, what it reads; for all others, what they describe or change."""
        table = self._find(identifier)
        wanted = _read_asked(asked)
        calling = self._gateway.calling() if table is None or not wanted.writes else ""
        if table is None:
            if (_READING in calling or _INSERTING in calling) and not len(identifier.namespace()):
                # Spark would go on and look for files, because there is also a format of this name.
                self._load(identifier)
            return None
        is_read = _READING in calling
        if "UPDATE" in wanted.writes or (wanted.writes and is_merge(self._gateway.statement())):
            raise UsageError(
                f"Spark's SQL cannot update `{table.name}` or merge into it: give the statement to "
                "store.sql(spark, …), or use table.update and table.merge"
            )
        if not is_read:
            return self._entry(table)
        rows = table.snapshot(_moment(wanted.micros), version=_number(table.name, wanted.version))
        return self._relations.table(self._name, table.name, rows.to_spark(self._gateway.spark))

    @answering
    def loadChangelog(self, identifier: Any, *_asked: Any) -> Any:
        """Refuse: changes are read as a stream, or listened to."""
        raise UsageError(
            f"the changes of `{identifier.name()}` are not a table of SQL: use table.listen, or "
            "readStream.format('instar')"
        )

    def invalidateTable(self, _identifier: Any) -> None:
        """Do nothing: nothing is kept."""

    @answering
    def tableExists(self, identifier: Any) -> bool:
        """Whether there is a table."""
        return self._find(identifier) is not None

    @answering
    def createTable(self, identifier: Any, *given: Any) -> Any:
        """Create a table, from its columns, partitions and properties."""
        return self._create(identifier, given[0])

    @answering
    def createTableLike(self, identifier: Any, info: Any, _source: Any) -> Any:
        """Create a table with the columns of another."""
        return self._create(identifier, info)

    @answering
    def stageCreate(self, identifier: Any, *given: Any) -> Any:
        """Return a table that will be created with its rows."""
        return self._stage(identifier, given[0], replace=False)

    @answering
    def stageReplace(self, identifier: Any, *given: Any) -> Any:
        """Return a table that will take the place of another, which must be there."""
        self._load(identifier)
        return self._stage(identifier, given[0], replace=True)

    @answering
    def stageCreateOrReplace(self, identifier: Any, *given: Any) -> Any:
        """Return a table that will take the place of another, if there is one."""
        return self._stage(identifier, given[0], replace=True)

    def _stage(self, identifier: Any, info: Any, *, replace: bool) -> StagedTable:
        name = self._checked(identifier)
        schema, _, properties = _definition(info)
        create = self._creator(name, info, replace=replace)
        return StagedTable(self._gateway, name, json.dumps(schema), properties, create)

    def _create(self, identifier: Any, info: Any) -> CatalogTable:
        return self._entry(self._creator(self._checked(identifier), info)(None))

    def _creator(
        self, name: str, info: Any, *, replace: bool = False
    ) -> Callable[[DataFrame | None], StoredTable]:
        """Return what creates a table, with rows if it is given any; what cannot be is refused at once."""
        schema, partitions, properties = _definition(info)
        if properties.get("location", "").removeprefix("file:").endswith(self.store.location):
            del properties["location"]  # as SHOW CREATE TABLE says it
        definition = read_definition(schema, properties)
        options = dict(definition.options)
        for transform in partitions:
            if str(transform.name()) != "cluster_by":
                raise UsageError(
                    "tables have no partitions: queries skip parts by the bounds of all columns. Leave "
                    "PARTITIONED BY out, or say CLUSTER BY (…)"
                )
            options["cluster_by"] = [format_path(tuple(it.fieldNames())) for it in transform.references()]
        columns = as_schema(json.dumps(schema))

        def create(data: DataFrame | None) -> StoredTable:
            return self.store.create_table(
                name,
                columns,
                order_by=definition.order_by,
                key=definition.key,
                options=options,
                comments=definition.comments,
                data=data,
                replace=replace,
            )

        return create

    @answering
    def supportedCustomMetrics(self) -> Any:
        """Return the metrics of writes: none."""
        return self._gateway.array(self._gateway.jvm.org.apache.spark.sql.connector.metric.CustomMetric, ())

    def useNullableQuerySchema(self) -> bool:
        """Let the columns of CREATE TABLE AS be nullable, whatever the query says."""
        return True

    @answering
    def alterTable(self, identifier: Any, changes: Any) -> Any:
        """Change a table."""
        table = self._load(identifier)
        alter(table, changes)
        return self._entry(table)

    @answering
    def dropTable(self, identifier: Any) -> bool:
        """Drop a table; False if there is none."""
        table = self._find(identifier)
        if table is None:
            return False
        self.store.drop_table(table.name)
        return True

    @answering
    def purgeTable(self, identifier: Any) -> bool:
        """Refuse: whether bytes go is for a vacuum to say."""
        raise UsageError(
            f"cannot drop `{identifier.name()}` with PURGE: drop it without, then vacuum the store, which "
            "deletes what nobody reads any more"
        )

    @answering
    def renameTable(self, identifier: Any, new_identifier: Any) -> None:
        """Give a table another name."""
        name = str(new_identifier.name())
        if [str(part) for part in new_identifier.namespace()] != [self._name]:  # the prefix may be there
            name = self._checked(new_identifier)
        self.store.rename_table(self._load(identifier).name, name)

    @answering
    def listNamespaces(self, *_parent: Any) -> Any:
        """Return nothing: there is only the one without a name."""
        return self._gateway.jvm.java.lang.reflect.Array.newInstance(
            self._gateway.jvm.java.lang.Class.forName("[Ljava.lang.String;"), 0
        )

    @answering
    def namespaceExists(self, namespace: Any) -> bool:
        """Whether this is the one namespace."""
        return not len(namespace)

    @answering
    def loadNamespaceMetadata(self, _namespace: Any) -> Any:
        """Return where the store is."""
        found = self._gateway.jvm.java.util.HashMap()
        found.put("location", self.store.location)
        return found

    @answering
    def createNamespace(self, *_given: Any) -> None:
        """Refuse: a name with slashes is one name."""
        raise UsageError(
            f"the catalog `{self._name}` has no schemas: a table may be called `billing/events`, in backticks"
        )

    alterNamespace = dropNamespace = createNamespace

    def toString(self) -> str:
        """Name the store."""
        return f"{self._name} ({self.store.location})"

    def _names(self, namespace: Any) -> list[str]:
        return [] if len(namespace) else self.store.tables()

    def _entry(self, table: StoredTable) -> CatalogTable:
        return CatalogTable(self._gateway, table, self.store.location)

    def _find(self, identifier: Any) -> StoredTable | None:
        """Open a table, if there is one."""
        if len(identifier.namespace()):
            return None
        try:
            return self.store.table(str(identifier.name()))
        except TableNotFoundError:
            return None

    def _load(self, identifier: Any) -> StoredTable:
        return self.store.table(self._checked(identifier))

    def _checked(self, identifier: Any) -> str:
        """Return the name that a table is to have."""
        name = str(identifier.name())
        if len(identifier.namespace()):
            parts = [*map(str, identifier.namespace()), name]
            raise UsageError(
                f"the catalog `{self._name}` has no schemas, so there is no `{'.'.join(parts)}`: call the "
                f"table `{'/'.join(parts)}`, in backticks"
            )
        return name


def _read_asked(given: tuple[Any, ...]) -> _Asked:
    """Read what Spark says of a table that it asks for: of several ways, one for each sort of argument."""
    asked = _Asked()
    for one in given:
        if isinstance(one, str):
            asked = asked._replace(version=one)
        elif isinstance(one, int):
            asked = asked._replace(micros=one)
        else:
            asked = _read_context(asked, one)
    return asked


def _read_context(asked: _Asked, given: Any) -> _Asked:
    kind = str(given.getClass().getSimpleName()) if hasattr(given, "getClass") else ""
    if kind.endswith("Set"):
        return asked._replace(writes=frozenset(str(one.toString()) for one in given))
    if kind != "TableContext":  # options, of which there are none
        return asked
    asked = asked._replace(writes=frozenset(str(one.toString()) for one in given.writePrivileges()))
    travel = given.timeTravel()
    if not travel.isPresent():
        return asked
    moment = travel.get()
    if str(moment.getClass().getSimpleName()) == "AsOfVersion":
        return asked._replace(version=str(moment.version()))
    return asked._replace(micros=int(moment.micros()))


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


def _number(table: str, version: str | None) -> int | None:
    if version is not None and not version.isdecimal():
        raise UsageError(
            f"`{table}` has no version {version!r}: versions are numbers, as DESCRIBE HISTORY in store.sql "
            "and `instar log` tell them"
        )
    return None if version is None else int(version)


def _definition(info: Any) -> tuple[dict[str, Any], list[Any], dict[str, str]]:
    """Return the columns, partitions and properties of a table to create."""
    schema = json.loads(info.schema().json())
    properties = {str(name): str(value) for name, value in dict(info.properties()).items()}
    return schema, list(info.partitions()), properties
