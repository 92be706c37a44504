"""Frames as relations of a catalog: what Spark plans where SQL names a table is what it plans for the frame.

Spark asks a catalog for a table, never for a plan. A table of the first version of its interfaces, though, it
looks up in a cache of plans before it looks for files. So the plan of a frame is put there, under a name that
nobody else has, and Spark is given a table of that name. Every query has its own, and it stays there for as
long as Spark may take to look.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from instar.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from instar.spark.native.gateway import Gateway

__all__ = ["Relations"]

_GIVEN: Final = 5
"""How many of the arguments of a table we give."""
_WAITING_SECONDS: Final = 60.0
_PROVIDER: Final = "instar-relation"
"""Not the name of any format: a plan that is gone is an error, and not something else that is read."""
_CACHE_SIZE: Final = "spark.sql.filesourceTableRelationCacheSize"


class Relations:
    """The plans of one session that wait for Spark to look them up."""

    def __init__(self, gateway: Gateway) -> None:
        jvm = gateway.jvm
        catalyst = jvm.org.apache.spark.sql.catalyst
        self._gateway = gateway
        self._plans = gateway.session.sessionState().catalog()
        self._name = catalyst.QualifiedTableName
        self._identifier = catalyst.TableIdentifier
        self._v1_table = jvm.org.apache.spark.sql.connector.catalog.V1Table
        self._catalog_table = catalyst.catalog.CatalogTable
        self._kind = catalyst.catalog.CatalogTableType.EXTERNAL()
        self._storage = catalyst.catalog.CatalogStorageFormat.empty()
        self._provider = gateway.some(_PROVIDER)
        self._others = list(_defaults(self._catalog_table))
        self._waiting: deque[tuple[float, Any]] = deque()
        self._lock = threading.Lock()
        self._running = False

    def table(self, catalog: str, name: str, frame: DataFrame) -> Any:  # noqa: ANN401 -- a Java object
        """Return a table that Spark reads as it reads a frame."""
        # The last two parts are what columns may be qualified with; the first makes it like no other.
        first = f"instar-{secrets.token_hex(8)}"
        key = self._name(first, catalog, name)
        self._plans.cacheTable(key, frame._jdf.queryExecution().analyzed())  # noqa: SLF001 -- no public way
        if self._plans.getCachedTable(key) is None:
            raise UsageError(
                f"tables of the catalog `{catalog}` cannot be read if {_CACHE_SIZE} is 0: set it to 1000, "
                "the default, or read with store.table(name).read(spark)"
            )
        self._wait(key)
        identifier = self._identifier(name, self._gateway.some(catalog), self._gateway.some(first))
        schema = frame._jdf.schema()  # noqa: SLF001 -- no public way
        made = self._catalog_table(
            identifier, self._kind, self._storage, schema, self._provider, *self._others
        )
        return self._v1_table(made)

    def _wait(self, key: Any) -> None:  # noqa: ANN401 -- a Java object
        with self._lock:
            self._waiting.append((time.monotonic() + _WAITING_SECONDS, key))
            if not self._running:
                self._running = True
                threading.Thread(target=self._let_go, name="instar-relations", daemon=True).start()

    def _let_go(self) -> None:
        """Forget one plan after another, until there is none: they hold leases."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                due, key = self._waiting.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            with suppress(Py4JError, OSError):  # a JVM that has gone has forgotten it
                self._plans.invalidateCachedTable(key)


def _defaults(catalog_table: Any) -> Any:  # noqa: ANN401 -- Java objects
    """Yield the values that Spark has for all arguments that we do not give."""
    at = _GIVEN + 1
    while True:
        try:
            yield getattr(catalog_table, f"apply$default${at}")()
        except (Py4JError, TypeError):
            return
        at += 1
